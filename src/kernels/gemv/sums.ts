import { treeSum } from "../tree_sum.ts";

/** Sums that one thread adds at once: fewer steps of a tree have fewer barriers. */
const AT_ONCE = 8;

/** How many lanes' sums each step of a tree adds, at most {@linkcode AT_ONCE}, and the last one, which is not among them. */
export function treeSteps(
  lanes: number,
): { readonly before: readonly number[]; readonly last: number } {
  const before: number[] = [];
  let last = lanes;
  while (last > AT_ONCE) {
    const one = Math.min(AT_ONCE, last / AT_ONCE);
    before.push(one);
    last /= one;
  }
  return { before, last };
}

/** Sums that pass through workgroup memory together. */
export interface SumsChunk {
  /** WGSL that stores each thread's, `sums[i][at]`. */
  readonly kept: readonly string[];
  /** Steps of the tree: threads that add, and what they do. */
  readonly steps: readonly { readonly threads: number; readonly text: readonly string[] }[];
}

/**
 * Workgroup memory `sums` of [sum][lane][group], in which a tree adds lanes until `last` are left.
 *
 * @param totals WGSL of each sum of a thread.
 */
export function sumsChunk(
  totals: readonly string[],
  lanes: number,
  groups: number,
): SumsChunk {
  let kept = lanes;
  const steps = treeSteps(lanes).before.map((added) => {
    kept /= added;
    const threads = kept * groups;
    const at = (j: number) => j === 0 ? "at" : `at + ${j * threads}u`;
    const text = totals.map((_, i) =>
      `sums[${i}][at] = ${
        treeSum(Array.from({ length: added }, (_, j) => `sums[${i}][${at(j)}]`))
      };`
    );
    return { threads, text };
  });
  return { kept: totals.map((total, i) => `sums[${i}][at] = ${total};`), steps };
}

/** WGSL of the sum over the lanes that are left, of the `one`-th of a chunk's sums and the group `own`. */
export function lastSum(lanes: number, groups: number): string {
  const { last } = treeSteps(lanes);
  return treeSum(
    Array.from({ length: last }, (_, j) => `sums[one][own${j === 0 ? "" : ` + ${j * groups}u`}]`),
  );
}
