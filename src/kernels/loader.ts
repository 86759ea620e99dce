import { range } from "./lists.ts";
import type { Elements } from "../elements/elements.ts";
import type { Scalar } from "../elements/scalar.ts";
import type { ModuleBuilder, TensorAccess, TensorSplit } from "./module.ts";
import type { TilePolicy } from "./policy.ts";

/** How an operand's tile is loaded: what decides which thread loads what, how the tile lies, and what that costs. */
export interface TileAccess {
  /** Elements of one load. Eight are halves in four words, for tiles of matrix units. */
  readonly vector: 1 | 4 | 8;
  /** What loads give and the tile holds; u32 of eight halves. */
  readonly value: Scalar;
  /** The side of the tile along which neighbouring threads load neighbours in memory: coalesced. A vector's elements, too, by default. */
  readonly along: "place" | "depth";
  /** The side along which a vector's elements lie, where that is not {@linkcode along}. */
  readonly vectorAlong?: "place" | "depth";
  /** Elements from a place to the next in memory, where that is known and places are not contiguous. */
  readonly pitch?: number;
  /** Contiguous runs of equal length in which the tile's depth lies in memory; one where absent. */
  readonly runs?: number;
  /** Taps that share what is loaded: of one step, or of several; each has its own where absent. */
  readonly sharedTaps?: TapRow | TapRing;
}

/** State of a loader that moves with the steps, as statements. */
export interface LoaderState {
  /** Declares it, given `first_step`. */
  readonly begin: string;
  /** Of each step before its loads. */
  readonly step?: string;
  /** Moves it to the next step. */
  readonly advance: string;
  /** Sets it at the begin of each row, where steps go row by row. */
  readonly rowBegin?: string;
}

/**
 * A loader brings one operand of a product from storage into its workgroup tile: an iterator, as CUTLASS calls it. It is text: the
 * mainloop decides which thread loads what and asks the loader for the code of each part.
 *
 * A tile is `depth` rows of `extent` places (rows of A or columns of B). A thread's loads have *place
 * slots* (places fixed for the whole loop) and *depth slots* (depth coordinates that move each step).
 */
export interface TileLoader {
  readonly access: TileAccess;
  /** Absent where it is the other operand's. */
  readonly state?: LoaderState;
  /** Declares what is fixed for a place slot; `place` is the index in the whole operand, `group` is in scope. */
  place(slot: number, place: string): string;
  /** Declares what a depth slot needs this step; `row` is the depth within the tile, or within run `run` where the text knows that. */
  depth(slot: number, row: string, run?: number): string;
  /** Declares what a place slot needs this step. */
  placeStep?(slot: number): string;
  /**
   * Assigns the value, of so many elements as `vector` says, to `target`; zero where depth or padding lies outside, or, with a
   * predicate for each load, whether it does not to `keep_{target}`.
   */
  load(placeSlot: number, depthSlot: number, target: string): string;
  /**
   * What of a loaded value is stored, where the mask is not part of the load: a mask at the load makes the hardware wait for it
   * before the products that should hide it. `per-load`: the mask is of the step of a load, a variable `keep_{target}` beside each
   * of its registers.
   */
  readonly mask?: "per-load" | ((placeSlot: number, value: string) => string);
  /**
   * Whether what stays fixed for its places takes so many registers that software pipelining leaves fewer workgroups to a
   * multiprocessor: backward-filter of windows in nchw has 8 warps for 12 on an H200, and up to 20 % less speed.
   */
  readonly highRegisterPressure?: boolean;
}

/** State of a loop that counts its steps, `{operand}_step`. */
export function stepState(operand: "a" | "b"): LoaderState {
  return {
    begin: `  var ${operand}_step = first_step;`,
    advance: `      ${operand}_step += 1u;`,
  };
}

/** State of a loop that counts its depth, `{operand}_deep`. */
export function deepState(operand: "a" | "b", tileDepth: number): LoaderState {
  return {
    begin: `  var ${operand}_deep = first_step * ${tileDepth}u;`,
    advance: `      ${operand}_deep += ${tileDepth}u;`,
  };
}

/**
 * Taps along the last axis that share a step's loads: the tile holds the places that all of them meet, and for each place the depth of
 * one tap.
 */
export interface TapRow extends Taps {
  readonly kind: "row";
}

/** Taps along an axis, and places from one to the next. */
export interface Taps {
  readonly taps: number;
  readonly dilation: number;
}

/** A sliding window: taps that use what earlier steps loaded. */
export interface TapRing extends Taps {
  readonly kind: "ring";
  /**
   * Where rows of steps follow each other and each multiplies its own taps alone: steps of a row, and those before its first tap's
   * place lies in it. Taps beyond a row's ends are left out. Absent where what is loaded between rows is zero.
   */
  readonly row?: RingRow | undefined;
}

/** A row of as many steps as the input's row has places; its taps begin `padding` places before that. */
export interface RingRow {
  readonly steps: number;
  readonly padding: number;
}

/** The taps of a ring that lie inside the row at its step `step`. */
export function tapsInRow({ taps, dilation, row }: TapRing, step: number): readonly number[] {
  return range(taps).filter((tap) => {
    if (row === undefined) return true;
    const place = step + tap * dilation - row.padding;
    return place >= 0 && place < row.steps;
  });
}

/** Mean share of a ring's taps that lie inside the row. */
export function shareInRow(ring: TapRing): number {
  const { taps, row } = ring;
  if (row === undefined) return 1;
  const steps = range(row.steps).map((step) => tapsInRow(ring, step).length);
  return steps.reduce((sum, count) => sum + count, 0) / (taps * row.steps);
}

/** Steps or places from the first tap to the last. */
export function tapReach({ taps, dilation }: Taps): number {
  return (taps - 1) * dilation;
}

/** Places and depth of the tile that is loaded, for a product tile of `extent` places and depth `depth`. */
export function loadedTile(
  { sharedTaps }: Pick<TileAccess, "sharedTaps">,
  extent: number,
  depth: number,
): [extent: number, depth: number] {
  if (sharedTaps === undefined) return [extent, depth];
  return sharedTaps.kind === "ring"
    ? [extent / sharedTaps.taps, depth]
    : [extent + tapReach(sharedTaps), depth / sharedTaps.taps];
}

/** The taps of a step that share its loads, where there are such. */
export function tapRowOf({ sharedTaps }: Pick<TileAccess, "sharedTaps">): TapRow | undefined {
  return sharedTaps?.kind === "row" ? sharedTaps : undefined;
}

/** The taps that share loads of several steps, where there are such. */
export function tapRingOf({ sharedTaps }: Pick<TileAccess, "sharedTaps">): TapRing | undefined {
  return sharedTaps?.kind === "ring" ? sharedTaps : undefined;
}

/** Elements of a load: eight halves on matrix units where all strides are multiples of eight. */
export function policyVector(
  { matrix }: Pick<TilePolicy, "matrix">,
  vector: 1 | 4,
  steps: readonly number[],
): TileAccess["vector"] {
  const halves = matrix?.unit.component === "f16" && vector === 4;
  return halves && steps.every((elements) => elements % 8 === 0) ? 8 : vector;
}

/** Binds the tensor that a loader of such vectors reads: eight halves are four words. */
export function loadedTensor(
  module: ModuleBuilder,
  name: string,
  vector: TileAccess["vector"],
  split: TensorSplit,
  { storage, tile }: Pick<Elements, "storage" | "tile">,
  kind: "read" | "ordered" = "read",
): TensorAccess {
  return vector === 8
    ? module.tensor(name, kind, 4, split, "u32", "u32")
    : module.tensor(name, kind, vector, split, storage, tile);
}

/** One load of a thread: `row` and `place` are its coordinates inside the tile. */
export interface TileLoad {
  readonly placeSlot: number;
  readonly depthSlot: number;
  /** Whether the load lies in the tile, for threads that do not divide it evenly. */
  readonly guard?: string;
}

/** Which elements of a tile a thread loads; indexes are WGSL over the thread index `t`. */
export interface LoadSchedule {
  /** Place within the tile of each place slot. */
  readonly places: readonly string[];
  /** Depth within the tile of each depth slot. */
  readonly depths: readonly string[];
  /** Run and depth within it of each depth slot, where all threads' loads of a slot lie in the same run. */
  readonly inRuns?: readonly { readonly run: number; readonly row: string }[];
  readonly loads: readonly TileLoad[];
}

/** Which side of a tile the elements of a loader's vector lie along. */
export function vectorSide(
  { along, vectorAlong }: Pick<TileAccess, "along" | "vectorAlong">,
): "place" | "depth" {
  return vectorAlong ?? along;
}

/** Vectors of a tile: along the side on which neighbouring threads lie, and along the other. */
function tileVectors(
  loader: Pick<TileAccess, "along" | "vector" | "vectorAlong">,
  extent: number,
  depth: number,
): [number, number] {
  const vector = (side: "place" | "depth") => vectorSide(loader) === side ? loader.vector : 1;
  const [places, depths] = [extent / vector("place"), depth / vector("depth")];
  return loader.along === "place" ? [places, depths] : [depths, places];
}

/** Bytes of the largest vectors: what a thread loads and stores at once. */
export const VECTOR_BYTES = 16;

/** Bytes that the first-level cache looks up at once. */
const LINE_BYTES = 128;

/**
 * Whether neighbouring places share a cache line, with vectors of 16 bytes. Else each takes a lookup of its own. Without a known pitch
 * they do not.
 */
export function sharesLines(
  { along, vector, pitch }: Pick<TileAccess, "along" | "vector" | "pitch">,
): boolean {
  return along === "depth" && pitch !== undefined &&
    2 * pitch * VECTOR_BYTES / vector <= LINE_BYTES;
}

/** Threads whose stores of 16 bytes fill all banks of workgroup memory once. */
const PHASE = 8;

/** Whether neighbouring rows of so many vectors of 16 bytes, with 16 bytes between rows, conflict in banks. */
export function sharesBanks(vectors: number): boolean {
  return vectors === 2 || vectors === 4;
}

/**
 * WGSL of the `index`-th row in an order without bank conflicts, a swizzle: rows of two vectors 0, 2, 4, 6, 1, 3, 5, 7, of four 0, 4, 1,
 * 5, and so on; other rows in order.
 */
export function bankedRow(index: string, vectors: number): string {
  return sharesBanks(vectors) ? turned(index, PHASE / vectors) : index;
}

/** WGSL of the index of row `row` in that order. */
export function bankedIndex(row: string, vectors: number): string {
  return sharesBanks(vectors) ? turned(row, vectors) : row;
}

/** Transposes each eight consecutive indices, which lie in `columns` columns. */
function turned(index: string, columns: number): string {
  const other = PHASE / columns;
  return `(${index}) / ${PHASE}u * ${PHASE}u + (${index}) % ${columns}u * ${other}u + (${index}) % ${PHASE}u / ${columns}u`;
}

/** What of an access decides which thread loads what. */
type DealtLoader = Pick<TileAccess, "along" | "vector" | "vectorAlong" | "runs">;

/** Whether threads take whole rows of the tile, or of each of its runs, and so share index arithmetic. */
export function dealsRows(
  loader: DealtLoader,
  extent: number,
  depth: number,
  threads: number,
): boolean {
  const [inner] = tileVectors(loader, extent, depth);
  return dealsRuns(loader, extent, depth, threads) || dealsWhole(inner, threads);
}

/** Whether threads take whole rows of so many vectors, or whole parts of one. */
function dealsWhole(inner: number, threads: number): boolean {
  return threads % inner === 0 || inner % threads === 0;
}

/** Whether runs are dealt out one by one: where the threads divide a run into whole rows evenly. */
function dealsRuns(
  { runs = 1, ...loader }: DealtLoader,
  extent: number,
  depth: number,
  threads: number,
): boolean {
  const [inner, outer] = tileVectors(loader, extent, depth / runs);
  return runs > 1 && Number.isInteger(inner) && Number.isInteger(outer) &&
    dealsWhole(inner, threads) && (inner >= threads || outer % (threads / inner) === 0);
}

/**
 * Deals the tile out to the threads so that loads are coalesced. Where threads do not divide the tile evenly, the last load of some is
 * guarded, or duplicates their first one, which is then stored twice.
 *
 * @param banked Whether vectors have 16 bytes, and rows 16 bytes between them: rows then come in an order without bank conflicts.
 * @throws {Error} if the tile has no whole number of vectors: a policy that no kernel can use.
 */
export function scheduleLoads(
  { runs = 1, ...loader }: DealtLoader,
  extent: number,
  depth: number,
  threads: number,
  { banked = false, duplicateLoad = false }: {
    readonly banked?: boolean;
    readonly duplicateLoad?: boolean;
  } = {},
): LoadSchedule {
  if (dealsRuns({ runs, ...loader }, extent, depth, threads)) {
    const deep = depth / runs;
    const one = scheduleLoads(loader, extent, deep, threads, { banked, duplicateLoad });
    const all = range(runs);
    return {
      places: one.places,
      depths: all.flatMap((run) => one.depths.map((row) => `${row} + ${run * deep}u`)),
      inRuns: all.flatMap((run) => one.depths.map((row) => ({ run, row }))),
      loads: all.flatMap((run) =>
        one.loads.map((load) => ({
          ...load,
          depthSlot: load.depthSlot + run * one.depths.length,
        }))
      ),
    };
  }
  const [inner, outer] = tileVectors(loader, extent, depth);
  if (!Number.isInteger(inner) || !Number.isInteger(outer)) {
    throw new Error(`Cannot deal a tile of ${extent} x ${depth} by ${loader.vector}`);
  }
  const scaled = (index: string, side: "place" | "depth") =>
    loader.vector === 1 || vectorSide(loader) !== side ? index : `(${index}) * ${loader.vector}u`;
  const other = loader.along === "place" ? "depth" as const : "place" as const;
  const rows = dealsRows(loader, extent, depth, threads);
  const innerSlots = rows ? Math.max(1, inner / threads) : Math.ceil(inner * outer / threads);
  const step = rows ? Math.max(1, threads / inner) : 0;
  const outerSlots = rows ? Math.ceil(outer / step) : innerSlots;
  const whole = (out: number) =>
    rows ? (out + 1) * step <= outer : (out + 1) * threads <= inner * outer;
  // Whether threads without a load in a slot repeat their first one.
  const repeats = (out: number) => duplicateLoad && !whole(out) && whole(0);
  // A thread's index among all vectors.
  const own = (slot: number) => {
    const index = `t + ${slot * threads}u`;
    return !repeats(slot) ? `(${index})` : `select(t, ${index}, ${index} < ${inner * outer}u)`;
  };
  const inners = range(innerSlots).map((slot) => {
    if (!rows) return `${own(slot)} % ${inner}u`;
    return innerSlots === 1 ? `t % ${inner}u` : `t + ${slot * threads}u`;
  });
  const outers = range(outerSlots).map((slot) => {
    if (!rows) return `${own(slot)} / ${inner}u`;
    if (innerSlots > 1) return `${slot}u`;
    const row = (slot: number) => {
      const text = `t / ${inner}u + ${slot * step}u`;
      return banked && step % PHASE === 0 && whole(slot) ? bankedRow(text, inner) : text;
    };
    return !repeats(slot) ? row(slot) : `select(${row(0)}, ${row(slot)}, ${row(slot)} < ${outer}u)`;
  });
  const load = (inn: number, out: number): TileLoad => ({
    ...(loader.along === "place"
      ? { placeSlot: inn, depthSlot: out }
      : { placeSlot: out, depthSlot: inn }),
    ...(whole(out) || repeats(out) ? {} : { guard: `${outers[out]} < ${outer}u` }),
  });
  const loads = outers.flatMap((_, out) =>
    rows ? inners.map((_, inn) => load(inn, out)) : [load(out, out)]
  );
  const [innerTexts, outerTexts] = [
    inners.map((text) => scaled(text, loader.along)),
    outers.map((text) => scaled(text, other)),
  ];
  return loader.along === "place"
    ? { places: innerTexts, depths: outerTexts, loads }
    : { places: outerTexts, depths: innerTexts, loads };
}
