import { block, is, text } from "../ir/tree.ts";
import { type Pass, replaceSteps } from "./loop_tree.ts";

/**
 * Prefetch: the next tile travels from storage to registers while this one is multiplied. The first one is fetched before the loop; what
 * is fetched past the end is not used.
 *
 * @param first Fetches the first tile.
 */
export function prefetch(first: string): Pass {
  return (tree) => ({
    ...replaceSteps(tree, (body) => {
      const fetch = body.flatMap((one) => one.kind === "block" && is(one, "fetch") ? one.body : []);
      return body.flatMap((one) => {
        if (is(one, "fetch")) return [];
        return is(one, "advance") ? [block([one, ...fetch], "", "prefetch")] : [one];
      });
    }),
    state: [...tree.state, text("  // The first tile."), block([text(first)])],
  });
}
