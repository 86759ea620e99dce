import { range } from "../lists.ts";
import { type Scalar, scalarBytes } from "../../elements/scalar.ts";
import type { TileLoad } from "../loader.ts";
import type { ThreadGrid } from "../loop/threads.ts";
import { parseTileSizes, tileSizesText } from "../policy.ts";

/**
 * How a sliced product is cut: every workgroup holds the same tile of all α slices, each slice multiplied by
 * its own threads, or by all of them. Rows (M) x columns (N) x depth (K) of one slice.
 */
export interface SlicePolicy {
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  /** Results of a thread, of each of its slices; multiples of 4. */
  readonly threadRows: number;
  readonly threadColumns: number;
  /**
   * Whether a thread has results of all slices, whose sums it transforms itself, and not of one, whose sums pass through workgroup
   * memory: for products of few steps, which else is most of their time.
   */
  readonly allSlices: boolean;
}

/** `64x32x8_8x8`, or with `a` where a thread has all slices, as it stands in kernel names and as `--policy` takes it. */
export function slicePolicyName(policy: SlicePolicy): string {
  return `${tileSizesText(policy)}${policy.allSlices ? "a" : ""}`;
}

/**
 * Reads a policy's name; the thread tile may be left out and is 8x8 then. Undefined if it is no policy that kernels can use:
 * threads have multiples of 4 rows and columns, which divide the workgroup's.
 */
export function parseSlicePolicy(text: string): SlicePolicy | undefined {
  const allSlices = text.endsWith("a");
  const sizes = parseTileSizes(allSlices ? text.slice(0, -1) : text);
  return sizes === undefined ? undefined : { ...sizes, allSlices };
}

/** Threads that a slice's results are dealt to. */
export function sliceThreads(policy: SlicePolicy): number {
  return (policy.rows / policy.threadRows) * (policy.columns / policy.threadColumns);
}

/**
 * So many sets of equal size of a product's slices, a kernel each, whose results add up, since the output transform is a sum over
 * slices; or of their rows, of nested transforms. The last slice, of the point at infinity, goes with the first, of 0, so that both
 * slices of a pair of points ±p, which share half of their sums, are in one set.
 */
export function sliceSets(slices: number, sets: number): number[][] {
  const each = slices / sets;
  const first = sets > 1 ? slices - 1 : 0;
  return range(sets).map((set) => range(each).map((i) => (set * each + i + first) % slices));
}

/** Threads of a workgroup. */
export function workgroupThreads(policy: SlicePolicy, slices: number): number {
  return sliceThreads(policy) * (policy.allSlices ? 1 : slices);
}

/** Results of a thread, of all its slices. */
export function threadResults(policy: SlicePolicy, slices: number): number {
  return policy.threadRows * policy.threadColumns * (policy.allSlices ? slices : 1);
}

/** The grid of a slice's threads on its results: by warps of up to eight columns where whole ones fill it. */
export function sliceGrid(policy: SlicePolicy): Omit<ThreadGrid, "paired"> {
  const rows = policy.rows / policy.threadRows;
  const columns = policy.columns / policy.threadColumns;
  const wide = Math.min(8, columns);
  const high = 32 / wide;
  const whole = Number.isInteger(high) && columns % wide === 0 && rows % high === 0;
  return { rows, columns, warp: whole ? [high, wide] : undefined };
}

/** Operands whose neighbouring threads store neighbouring rows of the tile: the same place of several depths. */
export type AcrossSides = readonly ("a" | "b")[];

/** Vectors of an operand's row that are exchanged with each other, so that neighbouring rows lie in different banks. */
export const SWIZZLE = 8;

/** Threads along a side up to which exchanged vectors cost next to nothing: with 8 an H200 takes 8 to 12 % longer. */
const SWIZZLE_THREADS = 4;

/**
 * Whether the vectors of such operands' rows are exchanged, vector v of row k with v xor (k mod 8), which keeps their stores in
 * different banks without memory of its own: where rows are whole eights of vectors, and a thread's places few.
 */
export function isSwizzled(policy: SlicePolicy, across: AcrossSides): boolean {
  const { rows, columns, threadRows, threadColumns } = policy;
  const sides = { a: [rows, rows / threadRows], b: [columns, columns / threadColumns] } as const;
  return across.length > 0 && across.every((side) => {
    const [extent, threads] = sides[side];
    return extent % (4 * SWIZZLE) === 0 && threads <= SWIZZLE_THREADS;
  });
}

/** Vectors of one depth row of a slice: both operands, and one against bank conflicts where they are not swizzled. */
export function sliceRowVectors(policy: SlicePolicy, across: AcrossSides): number {
  const padded = across.length > 0 && !isSwizzled(policy, across);
  return (policy.rows + policy.columns) / 4 + (padded ? 1 : 0);
}

/** Vectors of sums that each thread passes on in one round: as many as take no more bytes than the tile, one at least. */
export function sumsPerRound(policy: SlicePolicy, scalar: Scalar): number {
  const sums = policy.threadRows * policy.threadColumns / 4;
  const room = policy.depth * sliceRowVectors(policy, []) * scalarBytes(scalar) / 4;
  let round = sums;
  while (round > 1 && (sums % round !== 0 || round * sliceThreads(policy) > room)) round--;
  return round;
}

/** Rows of vectors, as long as a tile's, that a slice's sums of one round take. */
export function sumLines(policy: SlicePolicy, scalar: Scalar): number {
  return Math.ceil(
    sumsPerRound(policy, scalar) * sliceThreads(policy) / sliceRowVectors(policy, []),
  );
}

/** Which elements of an operand's tile a thread brings; indexes are WGSL over the thread index `t`. */
export interface ItemSchedule {
  readonly places: readonly string[];
  readonly depths: readonly string[];
  readonly items: readonly TileLoad[];
  /** Threads that take part, where not all do. */
  readonly active?: number;
}

/** Deals extent x depth items to threads, each to one; neighbours lie along `along`. */
export function scheduleItems(
  extent: number,
  depth: number,
  threads: number,
  along: "place" | "depth",
): ItemSchedule {
  const inner = along === "place" ? extent : depth;
  const outer = along === "place" ? depth : extent;
  // As many threads as make whole rows, or a whole share of one, and deal the rest out evenly.
  const row = largestDivisor(inner, threads);
  const used = largestDivisor(outer, Math.floor(threads / row));
  const inners = range(inner / row).map((i) => `t % ${row}u + ${i * row}u`);
  const outers = range(outer / used).map((i) => `t / ${row}u + ${i * used}u`);
  const items = outers.flatMap((_, o) =>
    inners.map((_, i) =>
      along === "place" ? { placeSlot: i, depthSlot: o } : { placeSlot: o, depthSlot: i }
    )
  );
  const active = used * row;
  return {
    ...(along === "place"
      ? { places: inners, depths: outers }
      : { places: outers, depths: inners }),
    items,
    ...(active === threads ? {} : { active }),
  };
}

/** The largest divisor of `whole` that is at most `most`. */
function largestDivisor(whole: number, most: number): number {
  let divisor = Math.min(whole, most);
  while (whole % divisor !== 0) divisor--;
  return divisor;
}

/**
 * Bytes of workgroup memory of a product of `slices`, whose tile holds `scalar`. A tile of f16 has no room for the sums of
 * f32 on their way to the output transform, which then have memory of their own.
 */
export function sliceBytes(
  policy: SlicePolicy,
  slices: number,
  across: AcrossSides,
  scalar: Scalar,
): number {
  const tile = 4 * scalarBytes(scalar) * slices * policy.depth *
    sliceRowVectors(policy, across);
  if (policy.allSlices) return tile;
  const sums = scalar === "f32" ? 0 : 16 * slices * sumLines(policy, scalar) *
    sliceRowVectors(policy, []);
  return tile + sums;
}

/** Why a policy does not fit so many slices, whatever the device has of workgroup memory; undefined if it does. */
export function unfitPolicy(
  policy: SlicePolicy,
  slices: number,
  scalar: Scalar,
): string | undefined {
  const name = `policy ${slicePolicyName(policy)}`;
  const threads = sliceThreads(policy);
  if (policy.allSlices) {
    return threads < slices ? `${name} has ${threads} threads for ${slices} slices` : undefined;
  }
  return scalar !== "f32" || threads <= policy.depth * sliceRowVectors(policy, [])
    ? undefined
    : `the tile of ${name} has no room for a vector of each thread's sums`;
}
