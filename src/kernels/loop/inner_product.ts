import type { Accumulation } from "../../elements/elements.ts";
import { type Scalar, typeName, zeroOf } from "../../elements/scalar.ts";
import type { TilePolicy } from "../policy.ts";
import type { WorkgroupTile } from "./workgroup_tile.ts";

/** The name of the sums of a thread's row `row` in its vector of columns `fragment`. */
export type SumName = (row: number, fragment: number) => string;

/** What a thread does with one row of both tiles: the place of a `Policy::Operator` of CUTLASS. */
export interface InnerProduct {
  /** What its sums are in. */
  readonly sum: Scalar;
  /** What of a tile goes into a product, `width` values wide. */
  factor(tile: Scalar, text: string, width: 1 | 4): string;
  /** Adds the products of one value of A and four of B to four sums. */
  multiply(sums: string, a: string, b: string): string;
  /** Adds the product of two values to a sum, where the text may do so one by one. */
  multiplyOne?(sum: string, a: string, b: string): string;
}

/**
 * In which order a thread multiplies what it has of a row of both tiles: vectors row by row, or value by value there and back, along
 * rows (`serpentine`) or `columns`, so that each product of the row shares a value with the one before it: NVIDIA's code of that text
 * is mostly faster: up to 5 % on an H200.
 */
export type ProductOrder = "rows" | "serpentine" | "columns";

/** Fused multiply-adds in a floating type; a tile of another type is converted. */
function fusedMultiplyAdd(scalar: Scalar): InnerProduct {
  return {
    sum: scalar,
    factor: (tile, text, width) => tile === scalar ? text : `${typeName(scalar, width)}(${text})`,
    multiply: (sums, a, b) => `${sums} = fma(${typeName(scalar, 4)}(${a}), ${b}, ${sums});`,
    // Halves are multiplied in pairs.
    ...(scalar === "f32"
      ? { multiplyOne: (sum: string, a: string, b: string) => `${sum} = fma(${a}, ${b}, ${sum});` }
      : {}),
  };
}

/** Products of four int8 each, packed in words, summed in i32. */
const DOT4: InnerProduct = {
  sum: "i32",
  factor: (_, text) => text,
  multiply(sums, a, b) {
    const dots = [..."xyzw"].map((one) => `dot4I8Packed(${a}, ${b}.${one})`);
    return `${sums} += vec4<i32>(${dots.join(", ")});`;
  },
};

/** How products are summed. */
export function innerProduct(accumulate: Accumulation): InnerProduct {
  return accumulate === "i32" ? DOT4 : fusedMultiplyAdd(accumulate);
}

/** The tile of results of a thread. */
export type ThreadTile = Pick<TilePolicy, "threadRows" | "threadColumns">;

/** The policy with 32 x 32 results, 1 x 4 a thread: without a tile of them. */
export function withoutMicroKernel(policy: TilePolicy): TilePolicy {
  return { ...policy, rows: 32, columns: 32, threadRows: 1, threadColumns: 4, warp: [4, 8] };
}

/** Vectors along a side of the thread tile; a side of one place is read as one element. */
export function fragments(places: number): number {
  return Math.ceil(places / 4);
}

/** Calls `text` with each row of the thread tile and vector of its columns, rows first. */
export function eachSum(
  { threadRows, threadColumns }: ThreadTile,
  text: (row: number, fragment: number) => string,
): string[] {
  return Array.from(
    { length: threadRows * fragments(threadColumns) },
    (_, i) => text(Math.floor(i / fragments(threadColumns)), i % fragments(threadColumns)),
  );
}

/** Declares sums, all zero. */
export function declareSums(tile: ThreadTile, sum: SumName, scalar: Scalar): string[] {
  return eachSum(tile, (row, j) => `  var ${sum(row, j)} = ${zeroOf(scalar, 4)};`);
}

/** Sets sums to zero. */
export function clearSums(tile: ThreadTile, sum: SumName, scalar: Scalar): string {
  return eachSum(tile, (row, j) => `  ${sum(row, j)} = ${zeroOf(scalar, 4)};`).join("\n");
}

/** A thread's fragments of a row of both tiles: their names, `a0` and on and `b0` and on, and WGSL of what they are. */
export interface Fragment {
  readonly name: string;
  readonly value: string;
}

/** The fragments of row `k` of both tiles. */
export function rowFragments(
  inner: InnerProduct,
  tile: ThreadTile,
  k: string,
  a: Omit<WorkgroupTile, "declaration">,
  b: Omit<WorkgroupTile, "declaration">,
): Fragment[] {
  const single = tile.threadRows === 1;
  const aVector = (i: number) => single && a.element ? a.element(k) : a.fragment(k, i);
  return [
    ...Array.from({ length: fragments(tile.threadRows) }, (_, i) => ({
      name: `a${i}`,
      value: inner.factor(a.scalar, aVector(i), single ? 1 : 4),
    })),
    ...Array.from({ length: fragments(tile.threadColumns) }, (_, j) => ({
      name: `b${j}`,
      value: inner.factor(b.scalar, b.fragment(k, j), 4),
    })),
  ];
}

/** Multiplies the fragments of a row, in an order that the inner product has. */
export function multiplyFragments(
  inner: InnerProduct,
  tile: ThreadTile,
  sum: SumName,
  order: ProductOrder,
): string[] {
  const single = tile.threadRows === 1;
  const factor = (row: number) => single ? `a0` : `a${Math.floor(row / 4)}.${"xyzw"[row % 4]}`;
  const { multiplyOne } = inner;
  if (order === "rows" || multiplyOne === undefined) {
    return eachSum(
      tile,
      (row, j) => inner.multiply(sum(row, j), factor(row), `b${j}`),
    );
  }
  const places = (count: number) => Array.from({ length: count }, (_, place) => place);
  const [rows, columns] = [places(tile.threadRows), places(fragments(tile.threadColumns) * 4)];
  const one = (row: number, column: number) => {
    const [j, element] = [Math.floor(column / 4), "xyzw"[column % 4]];
    return multiplyOne(`${sum(row, j)}.${element}`, factor(row), `b${j}.${element}`);
  };
  return order === "serpentine"
    ? rows.flatMap((row) => thereAndBack(columns, row).map((column) => one(row, column)))
    : columns.flatMap((column) => thereAndBack(rows, column).map((row) => one(row, column)));
}

/** Places in their order, in odd turns from the last to the first. */
function thereAndBack(places: readonly number[], turn: number): readonly number[] {
  return turn % 2 === 0 ? places : places.toReversed();
}
