import { BARRIER, block, is, type Statement, text, withoutLastBarrier } from "../ir/tree.ts";
import { type Pass, replaceSteps } from "./loop_tree.ts";

/**
 * Several tiles in workgroup memory in turn, `half` says which: while one is multiplied another is filled, so one barrier a step is
 * enough.
 *
 * @param turn WGSL of a number that counts steps.
 */
export function multiBuffer(tiles: number, turn: string): Pass {
  return (tree) =>
    replaceSteps(tree, (body) => [
      text(`    let half = ${turn} % ${tiles}u;`),
      ...withoutLastBarrier(body),
    ]);
}

/** What the register buffer needs of loaders and products. */
export interface RegisterBuffer {
  /** Stores the fetched tile into tile `fill`. */
  readonly store: string;
  /** Fetches the second tile. */
  readonly fetchSecond: string;
  /** Moves the loaders two steps on. */
  readonly advance: string;
  /** Loads the first fragments from tile `fill`. */
  readonly loadFragments: string;
}

/**
 * Fragments in registers as a second buffer: a step stores the next tile into tile `fill`, and loads its fragments while those that it has
 * are multiplied. Two tiles are on their way, so the loop begins with one stored and one fetched. After {@linkcode prefetch}.
 */
export function registerDoubleBuffer(turn: string, buffer: RegisterBuffer): Pass {
  return (tree) => {
    const first = text("    let fill = 0u;");
    return {
      ...replaceSteps(tree, (body) => [
        text(`    let fill = 1u - ${turn} % 2u;`),
        ...fetchBeforeBarrier(withoutLastBarrier(body), buffer.advance),
      ]),
      sums: [
        ...tree.sums,
        block([first, text(buffer.store), text(buffer.fetchSecond)]),
        BARRIER,
        block([first, text(buffer.loadFragments)]),
      ],
    };
  };
}

/** The barrier of a step behind its prefetch, which goes two steps on. */
function fetchBeforeBarrier(body: readonly Statement[], advance: string): Statement[] {
  return body.flatMap((one): Statement[] => {
    if (one.kind === "barrier") return [];
    if (one.kind !== "block" || !is(one, "prefetch")) return [one];
    const fetch = one.body.map((part) => is(part, "advance") ? text(advance, "advance") : part);
    return [{ ...one, body: fetch }, BARRIER];
  });
}
