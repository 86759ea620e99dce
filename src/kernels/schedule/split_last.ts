import { block, forLoop, is, type Statement, text, withoutLastBarrier } from "../ir/tree.ts";
import { type Pass, replaceLoops, withProducts } from "./loop_tree.ts";

/**
 * The last step behind the loop: it fetches nothing, nobody waits behind it, and it multiplies no further than the depth goes.
 *
 * @param products Its products, row by row.
 * @param steps Most steps of a workgroup: one or two need no loop.
 */
export function splitLast(products: readonly string[], steps: number): Pass {
  return (tree) =>
    replaceLoops(tree, ({ first, end, body }) => {
      const kept = body.filter((one) => !is(one, "prefetch") && !is(one, "advance"));
      const last = withProducts(withoutLastBarrier(kept), products);
      return [
        text(`  let last_step = ${end} - 1u;`, "last"),
        ...loopOf(first, body, steps),
        block([text("    let step = last_step;"), ...last], "", "last"),
      ];
    });
}

function loopOf(first: string, body: readonly Statement[], steps: number): Statement[] {
  if (steps === 1) return [];
  if (steps === 2) return [block([text(`    let step = ${first};`), ...body])];
  return [forLoop("step", first, "last_step", body)];
}
