/** A mainloop as a tree, which the passes of its schedule rewrite. */
import { is, rewrite, type Statement, text } from "../ir/tree.ts";

/** The parts of a mainloop, in their order. */
export interface LoopTree {
  /** Declares and sets what a thread keeps: places, the loaders' state and registers. */
  readonly state: readonly Statement[];
  /** Declares the accumulators, and what is filled before the first step. */
  readonly sums: readonly Statement[];
  /** The loop over steps. A step is statements that say what they are: `fetch`, `store`, `advance`, `multiply`, `fold`. */
  readonly main: readonly Statement[];
  /** Moves on what sums have not been yet. */
  readonly finish: readonly Statement[];
  /** What becomes of the sums. */
  readonly output: readonly Statement[];
}

/** One change of a mainloop's order. */
export type Pass = (tree: LoopTree) => LoopTree;

/** A loop over a workgroup's steps. */
export interface StepLoop {
  readonly first: string;
  readonly end: string;
  readonly body: readonly Statement[];
}

/** The tree with something else in place of each loop over steps. */
export function replaceLoops(
  tree: LoopTree,
  change: (loop: StepLoop) => readonly Statement[],
): LoopTree {
  return {
    ...tree,
    main: rewrite(
      tree.main,
      (one) => one.kind === "for" && one.index === "step" ? change(one) : [one],
    ),
  };
}

/** The tree with another step in each place where one stands. */
export function replaceSteps(
  tree: LoopTree,
  change: (body: readonly Statement[]) => readonly Statement[],
): LoopTree {
  return {
    ...tree,
    main: rewrite(
      tree.main,
      (one) =>
        one.kind === "for" && one.index === "step" ? [{ ...one, body: change(one.body) }] : [one],
    ),
  };
}

/** A step with other products. */
export function withProducts(body: readonly Statement[], rows: readonly string[]): Statement[] {
  const first = body.findIndex((one) => is(one, "multiply"));
  return body.flatMap((one, place) => {
    if (place === first) return rows.map((row) => text(row, "multiply"));
    return is(one, "multiply") ? [] : [one];
  });
}
