import { threadSums } from "./accumulate.ts";
import {
  clearSums,
  type InnerProduct,
  multiplyFragments,
  type ProductOrder,
  rowFragments,
  type SumName,
  type ThreadTile,
} from "./inner_product.ts";
import type { StepProducts } from "./step_loop.ts";
import type { SizeMode } from "../module.ts";
import type { WorkgroupTile } from "./workgroup_tile.ts";

/**
 * How many steps one accumulator adds up, and where its sums go then: a second set of registers (0 for never), or the
 * store, which then adds where `again` is true.
 */
export type AccumulationPolicy =
  | { readonly into: "registers"; readonly every: number }
  | { readonly into: "store"; /** WGSL. */ readonly every: string };

/** Where a rotated loop ends. */
export interface Rotation {
  /** Rows of a step that are multiplied before the loop's end. */
  readonly rows: number;
  /** Whether the next tile is fetched before those rows, and not behind the loop's end. */
  readonly early: boolean;
}

/** Products of which every thread has a tile of its own, in registers. */
export interface ThreadProducts {
  /** Pairs that are multiplied one after the other, of one workgroup memory; a pair's rows of sums are behind those of the pairs before. */
  readonly tiles: readonly (readonly [WorkgroupTile, WorkgroupTile])[];
  readonly depth: number;
  /** The depth of a tile is text, not a loop. */
  readonly unroll: boolean;
  /** Row by row where absent; by columns where the loop is rotated. */
  readonly order?: ProductOrder;
  /**
   * How the loop ends within a step's products, where it has one tile of each operand, filled from registers; with a step where
   * absent. It does also where rows are no texts, sums are not of f32 or move to others, or the last step has a text
   * of its own; and where sums are stored in parts, unless it fetches early.
   */
  readonly rotation?: Rotation | undefined;
  /** Products of the last step, where it is a text of its own. */
  readonly last?: number | undefined;
  readonly inner: InnerProduct;
  readonly threadTile: ThreadTile;
  readonly accumulate: AccumulationPolicy;
  /** What tells the sums of a row and fragment from others: they are `c{index}` after the loop. */
  readonly sumIndex: SumName;
}

/** Steps from which on a loop may be rotated. */
const ROTATED_STEPS = 8;

/**
 * Whether a loop of so many steps is worth rotating: its end then lies within the products of a step, of which NVIDIA's compiler
 * makes fewer instructions (1.02 to 1.18 times as fast on an H200), and its text has a step's products twice.
 */
export function isWorthRotating(mode: SizeMode, steps: number): boolean {
  return mode === "constant" && steps >= ROTATED_STEPS;
}

/** The text of a thread's products of a step. */
export function threadProducts(
  {
    tiles,
    depth,
    unroll,
    order = "rows",
    rotation,
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
    (accumulate.into === "registers" ? every === 0 : rotation?.early === true);
  const rotates = rotation !== undefined && rotation.rows > 0 && rotation.rows < depth && unroll &&
    still && last === undefined;
  const text = (pair: number, k: string) => {
    const loads = rowFragments(inner, threadTile, k, ...tiles[pair]!)
      .map(({ name, value }) => `let ${name} = ${value};`);
    const products = multiplyFragments(
      inner,
      threadTile,
      (row, fragment) => sums.inner(pair * threadRows + row, fragment),
      rotates ? "columns" : order,
    );
    return [...loads, ...products].map((line) => `      ${line}`).join("\n");
  };
  const rowsOf = (depth: number) =>
    tiles.flatMap((_, pair) =>
      Array.from({ length: depth }, (_, k) => `    {\n${text(pair, `${k}`)}\n    }`)
    );
  const all = unroll ? rowsOf(depth) : undefined;
  const looped = () =>
    tiles.map((_, pair) => `    for (var k = 0u; k < ${depth}u; k++) {\n${text(pair, "k")}\n    }`)
      .join("\n");
  return {
    declarations: tiles.flatMap((pair) => pair.map(({ declaration }) => declaration)),
    sums: sums.declare,
    multiply: all === undefined ? looped() : all.join("\n"),
    ...(all && rotates && {
      rotated: {
        before: all.slice(0, rotation.rows).join("\n"),
        after: all.slice(rotation.rows).join("\n"),
        early: rotation.early,
      },
    }),
    multiplyLast: last === undefined ? "" : rowsOf(last).join("\n"),
    fold: sums.fold,
    finish: sums.finish,
    parts: accumulate.into === "store" &&
      {
        steps: accumulate.every,
        clear: clearSums(allTiles, sums.sum, inner.sum),
        stored: true,
      },
  };
}
