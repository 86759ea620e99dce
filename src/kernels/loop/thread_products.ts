import { text } from "../ir/tree.ts";
import { lines, range } from "../lists.ts";
import type { Accumulation } from "../../elements/elements.ts";
import { type Scalar, sumScalar, typeName, zeroOf } from "../../elements/scalar.ts";
import type { PipelineCut } from "../schedule/pipeline.ts";
import type { StepProducts } from "./mainloop.ts";
import type { WorkgroupTile } from "./threads.ts";
import type { SizeMode } from "../module.ts";
import type { TilePolicy } from "../policy.ts";

/** The name of the sums of a thread's row `row` in its vector of columns `fragment`. */
export type SumName = (row: number, fragment: number) => string;

/** How a thread multiplies one row of both tiles: CUTLASS's `Policy::Operator`. */
export interface InnerProduct {
  /** The accumulator's type. */
  readonly sum: Scalar;
  /** Four of a tile's values as factors. */
  factor(tile: Scalar, text: string): string;
  /** Adds the products of one value of A and four of B to four sums. */
  multiply(sums: string, a: string, b: string): string;
  /** Adds the product of two values to a sum; absent where products come in vectors only. */
  multiplyOne?(sum: string, a: string, b: string): string;
}

/**
 * The order of a thread's products: vectors row by row (`rows`), or single values back and forth along rows (`serpentine`) or along
 * `columns`. Each product then shares a factor with the one before, which is up to 5 % faster on an H200.
 */
export type ProductOrder = "rows" | "serpentine" | "columns";

/** Fused multiply-adds in a floating type; a tile of another type is converted. */
function fusedMultiplyAdd(scalar: Scalar): InnerProduct {
  return {
    sum: scalar,
    factor: (tile, text) => tile === scalar ? text : `${typeName(scalar, 4)}(${text})`,
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

/** A thread's tile of results. */
export type ThreadTile = Pick<TilePolicy, "threadRows" | "threadColumns">;

/** Calls `make` for each row of the thread tile and each vector of its columns. */
export function eachSum<T>(
  { threadRows, threadColumns }: ThreadTile,
  make: (row: number, fragment: number) => T,
): T[] {
  const vectors = threadColumns / 4;
  return range(threadRows * vectors).map((i) => make(Math.floor(i / vectors), i % vectors));
}

/** Sets sums to zero. */
function clearSums(tile: ThreadTile, sum: SumName, scalar: Scalar): string {
  return eachSum(tile, (row, j) => `  ${sum(row, j)} = ${zeroOf(scalar, 4)};`).join("\n");
}

/** A thread's fragment of a row of a tile: its name, `a0` and on or `b0` and on, and its WGSL. */
interface Fragment {
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
  const vectors = (name: "a" | "b", { scalar, fragment }: typeof a, places: number) =>
    range(places / 4).map((i) => ({
      name: `${name}${i}`,
      value: inner.factor(scalar, fragment(k, i)),
    }));
  return [...vectors("a", a, tile.threadRows), ...vectors("b", b, tile.threadColumns)];
}

/** Multiplies the fragments of a row, in an order that the inner product has. */
export function multiplyFragments(
  inner: InnerProduct,
  tile: ThreadTile,
  sum: SumName,
  order: ProductOrder,
): string[] {
  const factor = (row: number) => `a${Math.floor(row / 4)}.${"xyzw"[row % 4]}`;
  const { multiplyOne } = inner;
  if (order === "rows" || multiplyOne === undefined) {
    return eachSum(
      tile,
      (row, j) => inner.multiply(sum(row, j), factor(row), `b${j}`),
    );
  }
  const [rows, columns] = [range(tile.threadRows), range(tile.threadColumns)];
  const one = (row: number, column: number) => {
    const [j, element] = [Math.floor(column / 4), "xyzw"[column % 4]];
    return multiplyOne(`${sum(row, j)}.${element}`, factor(row), `b${j}.${element}`);
  };
  return order === "serpentine"
    ? rows.flatMap((row) => thereAndBack(columns, row).map((column) => one(row, column)))
    : columns.flatMap((column) => thereAndBack(rows, column).map((row) => one(row, column)));
}

/** The places, reversed in odd turns. */
function thereAndBack(places: readonly number[], turn: number): readonly number[] {
  return turn % 2 === 0 ? places : places.toReversed();
}

/** Products of one chain in f16, rounded up to the tile's depth: with 11 bits longer sums err more than their products. */
export const F16_CHAIN = 32;

/** The text of a thread's sums. */
export interface Sums {
  /** What they are called after the loop. */
  readonly sum: SumName;
  /** Where products are added. */
  readonly inner: SumName;
  /** Declares them. */
  readonly declare: string;
  /** After each step: moves finished chains on. */
  readonly fold: string;
  /** After the loop: what has not been moved on yet. */
  readonly finish: string;
}

/**
 * A thread's accumulators, `c{index}` in the end. With `every` they are flushed to a second set of registers every so many steps, which
 * keeps chains short: f16 needs that, and f32 rounds less.
 *
 * @param scalar What products are added up in.
 * @param every Steps of a chain; 0 where one chain takes all.
 * @param index What tells the sums of a row and fragment from others, in names.
 */
function threadSums(
  tile: ThreadTile,
  scalar: Scalar,
  every: number,
  index: SumName,
): Sums {
  const sum: SumName = (row, fragment) => `c${index(row, fragment)}`;
  const declared = (sum: SumName, scalar: Scalar) =>
    lines(eachSum(tile, (row, j) => `  var ${sum(row, j)} = ${zeroOf(scalar, 4)};`));
  if (every === 0) {
    return {
      sum,
      inner: sum,
      declare: declared(sum, scalar),
      fold: "",
      finish: "",
    };
  }
  const total = sumScalar(scalar);
  const inner: SumName = (row, fragment) => `chain${index(row, fragment)}`;
  const move = (row: number, j: number) => {
    const chain = inner(row, j);
    return `${sum(row, j)} += ${total === scalar ? chain : `${typeName(total, 4)}(${chain})`};`;
  };
  const moved = eachSum(tile, (row, j) => `  ${move(row, j)}`).join("\n");
  const folds = `${moved}\n${clearSums(tile, inner, scalar)}`;
  return {
    sum,
    inner,
    declare: lines(
      declared(sum, total),
      declared(inner, scalar),
      every > 1 && `  var until_fold = ${every}u;`,
    ),
    fold: every === 1 ? folds : lines(
      "    until_fold--;",
      "    if (until_fold == 0u) {",
      `      until_fold = ${every}u;`,
      folds,
      "    }",
    ),
    finish: every === 1 ? "" : moved,
  };
}

/**
 * How many steps one accumulator adds up, and where its sums go then: a second set of registers (0 for never), or the
 * store, which then adds where `again` is true.
 */
export type AccumulationPolicy =
  | { readonly into: "registers"; readonly every: number }
  | { readonly into: "store"; /** WGSL. */ readonly every: string };

/** Products of a mainloop in which every thread has a tile of results in registers. */
export interface ThreadProducts {
  /** Pairs of tiles that are multiplied one after the other; each pair's sums are further rows. */
  readonly tiles: readonly (readonly [WorkgroupTile, WorkgroupTile])[];
  readonly depth: number;
  /** The depth of a tile is text, not a loop. */
  readonly unroll: boolean;
  /** Row by row where absent; by columns where the loop is software-pipelined. */
  readonly order?: ProductOrder;
  /**
   * Where the back edge lies within a step's products, of loops with one tile of each operand, filled from registers; at a step's end
   * where absent. It lies there also where rows are no texts, sums are not of f32 or move to others, or the last step has a text
   * of its own; and where sums are stored in parts, unless it fetches early.
   */
  readonly cut?: PipelineCut | undefined;
  /** Products of the last step, where it is a text of its own. */
  readonly last?: number | undefined;
  readonly inner: InnerProduct;
  readonly threadTile: ThreadTile;
  readonly accumulate: AccumulationPolicy;
  /** The index in a sum's name, by row and fragment: `c{index}` after the loop. */
  readonly sumIndex: SumName;
}

/** Steps from which on a loop may be software-pipelined. */
const PIPELINED_STEPS = 8;

/**
 * Whether a loop of so many steps is worth software pipelining: NVIDIA's compiler then makes fewer instructions (1.02 to 1.18 times as fast on an H200), and its text has a step's products twice.
 */
export function isWorthPipelining(mode: SizeMode, steps: number): boolean {
  return mode === "constant" && steps >= PIPELINED_STEPS;
}

/** The text of a thread's products of a step. */
export function threadProducts(
  {
    tiles,
    depth,
    unroll,
    order = "rows",
    cut,
    last,
    inner,
    threadTile,
    accumulate,
    sumIndex,
  }: ThreadProducts,
): StepProducts {
  const every = accumulate.into === "registers" ? accumulate.every : 0;
  const { threadRows } = threadTile;
  const allTiles = { ...threadTile, threadRows: tiles.length * threadRows };
  const sums = threadSums(allTiles, inner.sum, every, sumIndex);
  const still = inner.sum === "f32" &&
    (accumulate.into === "registers" ? every === 0 : cut?.early === true);
  const pipelined = cut !== undefined && cut.rows > 0 && cut.rows < depth && unroll && still &&
    last === undefined;
  const rowText = (pair: number, k: string) => {
    const loads = rowFragments(inner, threadTile, k, ...tiles[pair]!)
      .map(({ name, value }) => `let ${name} = ${value};`);
    const products = multiplyFragments(
      inner,
      threadTile,
      (row, fragment) => sums.inner(pair * threadRows + row, fragment),
      pipelined ? "columns" : order,
    );
    return [...loads, ...products].map((line) => `      ${line}`).join("\n");
  };
  const rowsOf = (depth: number) =>
    tiles.flatMap((_, pair) => range(depth).map((k) => `    {\n${rowText(pair, `${k}`)}\n    }`));
  const looped = () =>
    tiles.map((_, pair) =>
      `    for (var k = 0u; k < ${depth}u; k++) {\n${rowText(pair, "k")}\n    }`
    );
  return {
    declarations: tiles.flatMap((pair) => pair.map(({ declaration }) => declaration)),
    sums: sums.declare,
    rows: unroll ? rowsOf(depth) : looped(),
    cut: pipelined ? cut : undefined,
    lastRows: last === undefined ? undefined : rowsOf(last),
    fold: sums.fold,
    finish: [text(sums.finish)],
    flush: accumulate.into === "store"
      ? {
        interval: accumulate.every,
        clear: clearSums(allTiles, sums.sum, inner.sum),
        stored: true,
      }
      : undefined,
  };
}
