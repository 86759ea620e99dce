import { block, forLoop, type Statement, text } from "../ir/tree.ts";
import { type Pass, replaceLoops, withProducts } from "./loop_tree.ts";

/** Counted: so many steps, in WGSL, and one more where `longer` holds. Compilers make more of a loop whose count they see. */
export function countTrips(steps: string, longer?: string): Pass {
  return (tree) =>
    replaceLoops(tree, ({ first, body }) => [
      forLoop("turn", "0u", steps, [text(`    let step = ${first} + turn;`), ...body]),
      ...(longer === undefined
        ? []
        : [block([text(`    let step = ${first} + ${steps};`), ...body], `if (${longer})`)]),
    ]);
}

/** Opaque: each step reads the end from workgroup memory. The compiler then writes out one step and not eight, which long steps need. */
export const hideTrips: Pass = (tree) =>
  replaceLoops(tree, ({ first, end, body }) => [
    text(`  if (t == 0u) { loop_end = ${end}; }`),
    forLoop("step", first, "workgroupUniformLoad(&loop_end)", body),
  ]);

/** Products of the first and last steps of a round, where these have texts of their own. */
export interface RowEnds {
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/**
 * Unrolled: rounds of `factor` steps, a loop of so many inside, which the compiler writes out.
 *
 * @param begin What a round begins with.
 */
export function unroll(factor: number, begin: string, { before, after }: RowEnds): Pass {
  return (tree) =>
    replaceLoops(tree, ({ first, end, body }) => {
      const own = (products: string, turn: number): Statement =>
        block([text(`      let step = round + ${turn}u;`), ...withProducts(body, [products])]);
      const inner = [text("      let step = round + turn;"), ...body];
      return [
        forLoop("round", first, end, [
          text(begin),
          ...before.map(own),
          forLoop("turn", `${before.length}u`, `${factor - after.length}u`, inner),
          ...after.map((products, turn) => own(products, factor - after.length + turn)),
        ], factor),
      ];
    });
}
