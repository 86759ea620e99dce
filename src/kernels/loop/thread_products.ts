import { threadSums } from "./accumulate.ts";
import {
  clearSums,
  type InnerProduct,
  multiplyRow,
  type SumName,
  type ThreadTile,
} from "./inner_product.ts";
import type { StepProducts } from "./step_loop.ts";
import type { WorkgroupTile } from "./workgroup_tile.ts";

/**
 * How many steps one accumulator adds up, and where its sums go then: a second set of registers (0 for never), or the
 * store, which then adds where `again` is true.
 */
export type AccumulationPolicy =
  | { readonly into: "registers"; readonly every: number }
  | { readonly into: "store"; /** WGSL. */ readonly every: string };

/** Products of which every thread has a tile of its own, in registers. */
export interface ThreadProducts {
  readonly tiles: readonly [WorkgroupTile, WorkgroupTile];
  readonly depth: number;
  /** The depth of a tile is text, not a loop. */
  readonly unroll: boolean;
  /** Products of the last step, where it is a text of its own. */
  readonly last?: number | undefined;
  readonly inner: InnerProduct;
  readonly threadTile: ThreadTile;
  readonly accumulate: AccumulationPolicy;
  /** What tells the sums of a row and fragment from others: they are `c{index}` after the loop. */
  readonly sumIndex: SumName;
}

/** The text of a thread's products of a step. */
export function threadProducts(
  { tiles: [a, b], depth, unroll, last, inner, threadTile, accumulate, sumIndex }: ThreadProducts,
): StepProducts {
  const every = accumulate.into === "registers" ? accumulate.every : 0;
  const sums = threadSums(threadTile, inner.sum, every, sumIndex);
  const rows = Array.from(
    { length: depth },
    (_, k) => `    {\n${multiplyRow(inner, threadTile, `${k}`, a, b, sums.inner)}\n    }`,
  );
  return {
    declarations: [a.declaration, b.declaration],
    sums: sums.declare,
    multiply: unroll
      ? rows.join("\n")
      : `    for (var k = 0u; k < ${depth}u; k++) {\n${
        multiplyRow(inner, threadTile, "k", a, b, sums.inner)
      }\n    }`,
    ...(unroll ? { multiplyRows: rows } : {}),
    multiplyLast: last === undefined ? "" : rows.slice(0, last).join("\n"),
    fold: sums.fold,
    finish: sums.finish,
    parts: accumulate.into === "store" &&
      {
        steps: accumulate.every,
        clear: clearSums(threadTile, sums.sum, inner.sum),
        stored: true,
      },
  };
}
