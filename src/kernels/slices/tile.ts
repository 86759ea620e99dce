import { range } from "../lists.ts";
import { type Scalar, typeName } from "../../elements/scalar.ts";
import { fragmentPlaces, type ThreadGrid } from "../loop/threads.ts";
import {
  type AcrossSides,
  isSwizzled,
  sliceGrid,
  type SlicePolicy,
  sliceRowVectors,
  SWIZZLE,
  workgroupThreads,
} from "./policy.ts";

/** An operand of a sliced product: its rows are A's places, its columns B's. */
export type Side = "a" | "b";

/** What the tile of a sliced product holds. */
export interface SliceOperands {
  readonly slices: number;
  /** Operands whose loaders store along the depth. */
  readonly across: AcrossSides;
  /** What transformed operands are in workgroup memory; sums are f32. */
  readonly scalar: Scalar;
  /** The operand whose rows threads copy as they are, if there is one. */
  readonly copied?: Side;
  /**
   * Whether rows are in parts also where their vectors are not exchanged: a thread then has an address for each operand, and not
   * for each fragment. On an H200 loops of 8 and 16 slices are up to 3 % faster so, those of 4 slices 8 % slower.
   */
  readonly parted?: boolean;
}

/**
 * The tile of all slices in workgroup memory: of each slice rows of A's vectors and then B's, one for each depth. Where rows or vectors that a thread stores or loads differ by numbers they have dimensions of their own, so that
 * an index is the thread's or a number: these have one address then, and the rest of it stands in instructions. An index that is a
 * sum is held below the array's end by itself, and so an address of its own.
 */
export interface SliceTile {
  /** WGSL. */
  readonly type: string;
  /** The first vector of an operand in a row. */
  readonly first: Readonly<Record<Side, number>>;
  /** Rows of the copied operand that a slice's threads copy at once, a vector each. */
  readonly together: number;
  /** A slice, which rows follow. */
  slice(of: string | number): string;
  /** The row of a depth, which is WGSL. */
  row(depth: string): string;
  /** The row that is `own` of those that go together, `before` rows before it: whole rounds of them. */
  rowOf(before: number, own: string): string;
  /** A vector of a row, which is WGSL. */
  vector(of: string): string;
  /** Vector `of` of an operand, in the row of a depth: both are WGSL. */
  stored(side: Side, of: string, depth: string): string;
  /** A vector of the thread at `ty` (A) or `tx` (B) of the grid, in the row of a depth. */
  fragment(side: Side, index: number, depth: number): string;
  /** Declares what fragments go by. */
  readonly places: string;
}

/** Threads that copy a slice of the operand that is copied as it is: those that multiply it, or as large a share of all. */
export function copyThreads(threads: number, slices: number): number {
  return Math.floor(threads / slices);
}

/** Rows of an operand that a slice's threads copy at once: the most that divide the depth; 1 where a row is longer. */
function rowsTogether(policy: SlicePolicy, slices: number, side: Side): number {
  const vectors = (side === "a" ? policy.rows : policy.columns) / 4;
  const threads = copyThreads(workgroupThreads(policy, slices), slices);
  let rows = Math.min(policy.depth, Math.floor(threads / vectors));
  while (rows > 1 && policy.depth % rows !== 0) rows--;
  return Math.max(1, rows);
}

/**
 * How a slice's threads lie. In WinRS, whose threads copy nothing, not in pairs: these have 0.84 to 1.05 of the speed, 0.996 over
 * its 25 cases on an H200.
 */
export function sliceThreadGrid(
  policy: SlicePolicy,
  { copied }: Pick<SliceOperands, "copied">,
): ThreadGrid {
  return { ...sliceGrid(policy), paired: copied !== undefined };
}

/** How the tile of a policy lies. */
export function sliceTile(policy: SlicePolicy, operands: SliceOperands): SliceTile {
  const { slices, across, scalar, copied } = operands;
  const together = copied === undefined ? 1 : rowsTogether(policy, slices, copied);
  const rows = partedRows(policy, operands) ?? flatRows(policy, across);
  const sizes = [
    // An outer dimension of one stays: without it compilers get another text, which nothing has measured.
    1,
    slices,
    policy.depth / together,
    ...(together > 1 ? [together] : []),
    ...rows.sizes,
  ];
  const stored = (side: Side, of: string, depth: string) =>
    isExchanged(policy, across, side) ? `((${of}) ^ (${depth} % ${SWIZZLE}u))` : of;
  const first = { a: firstVector(policy, "a"), b: firstVector(policy, "b") };
  return {
    ...rows,
    first,
    together,
    stored: (side, of, depth) => rows.vector(`${first[side]}u + ${stored(side, of, depth)}`),
    type: sizes.reduceRight((inner, size) => `array<${inner}, ${size}>`, typeName(scalar, 4)),
    slice: (of) => `tile[0][${of}]`,
    row: (depth) =>
      together === 1
        ? `[${depth}]`
        : /^\d+$/.test(depth)
        ? `[${Math.floor(Number(depth) / together)}][${Number(depth) % together}]`
        : `[(${depth}) / ${together}u][(${depth}) % ${together}u]`,
    rowOf: (before, own) => together === 1 ? `[${before}]` : `[${before / together}][${own}]`,
  };
}

/** How vectors lie in a row of the tile. */
interface TileRows extends Pick<SliceTile, "vector" | "fragment" | "places"> {
  /** Dimensions, the outer one first. */
  readonly sizes: readonly number[];
}

/** Threads of the grid along a side. */
function sideThreads(policy: SlicePolicy, side: Side): number {
  const { rows, columns } = sliceGrid(policy);
  return side === "a" ? rows : columns;
}

/** The first vector of an operand in a row. */
function firstVector(policy: SlicePolicy, side: Side): number {
  return side === "a" ? 0 : policy.rows / 4;
}

/** Whether vectors of an operand's rows are exchanged. */
function isExchanged(policy: SlicePolicy, across: AcrossSides, side: Side): boolean {
  return isSwizzled(policy, across) && across.includes(side);
}

/** By how much a row of a depth is exchanged. */
function turnOf(policy: SlicePolicy, across: AcrossSides, side: Side, depth: number): number {
  return isExchanged(policy, across, side) ? depth % SWIZZLE : 0;
}

/** Vectors in one dimension. */
function flatRows(policy: SlicePolicy, across: AcrossSides): TileRows {
  return {
    sizes: [sliceRowVectors(policy, across)],
    vector: (of) => `[${of}]`,
    fragment(side, index, depth) {
      const name = side === "a" ? `ay${index}` : `bx${index}`;
      const turn = turnOf(policy, across, side, depth);
      const first = firstVector(policy, side);
      if (turn === 0) return `[${name}]`;
      return first === 0
        ? `[${name} ^ ${turn}u]`
        : `[((${name} - ${first}u) ^ ${turn}u) + ${first}u]`;
    },
    places: fragmentPlaces(
      sliceGrid(policy),
      policy.threadRows / 4,
      policy.threadColumns / 4,
      `${firstVector(policy, "b")}u`,
    ),
  };
}

/**
 * Rows in parts: a thread has an address for each turn of its place, of which there are some where vectors are exchanged
 * ({@linkcode isSwizzled}), and a fragment is a part. Undefined where none are asked for, or threads do not fill them.
 */
function partedRows(
  policy: SlicePolicy,
  { across, parted = false }: SliceOperands,
): TileRows | undefined {
  const counts = [sideThreads(policy, "a"), sideThreads(policy, "b")] as const;
  const [few, many] = [Math.min(...counts), Math.max(...counts)];
  const vectors = sliceRowVectors(policy, across);
  const whole = [vectors, firstVector(policy, "b")].every((count) => count % many === 0) &&
    counts.every((count) => Number.isInteger(Math.log2(count)));
  if (!(isSwizzled(policy, across) || parted) || !whole || few === 1) return undefined;
  const thread = (side: Side, turn: number) =>
    `t${side === "a" ? "y" : "x"}${turn === 0 ? "" : `_${turn}`}`;
  // A part is a fragment of the side of many threads, and some of the other's.
  const within = (of: string) =>
    many === few ? `[${of}]` : `[(${of}) / ${few}u][(${of}) % ${few}u]`;
  return {
    sizes: [vectors / many, ...(many === few ? [] : [many / few]), few],
    vector: (of) => `[(${of}) / ${many}u]${within(`(${of}) % ${many}u`)}`,
    fragment(side, index, depth) {
      const own = sideThreads(policy, side);
      const turn = turnOf(policy, across, side, depth);
      // What of the turn is beyond the threads makes it another fragment.
      const begin = firstVector(policy, side) + ((index * own) ^ (turn - turn % own));
      const part = `[${Math.floor(begin / many)}]`;
      return own === many
        ? `${part}${within(thread(side, turn % own))}`
        : `${part}[${begin % many / few}][${thread(side, turn % own)}]`;
    },
    places: across.flatMap((side) =>
      range(sideThreads(policy, side) - 1).map((i) =>
        `  let ${thread(side, i + 1)} = ${thread(side, 0)} ^ ${i + 1}u;`
      )
    ).join("\n"),
  };
}
