import { BARRIER, block, forLoop, is, type Role, type Statement, text } from "../ir/tree.ts";
import { type Pass, replaceLoops } from "./loop_tree.ts";

/** Where a software-pipelined loop has its back edge. */
export interface PipelineCut {
  /** Rows of a step that are multiplied before it. */
  readonly rows: number;
  /** Whether the next tile is fetched before those rows, and not behind the back edge. */
  readonly early: boolean;
}

/**
 * Software pipelining: the back edge lies within a step's products, and the rest of the last step's follow the loop. Of one tile that is
 * filled from registers: after {@linkcode prefetch}.
 */
export function pipeline({ rows, early }: PipelineCut): Pass {
  return (tree) =>
    replaceLoops(tree, ({ first, end, body }) => {
      const [next, products] = [of(body, "prefetch"), of(body, "multiply")];
      const fill = [
        ...[block(of(body, "store")), BARRIER],
        ...(early ? next : []),
        ...products.slice(0, rows),
      ];
      const rest = [...products.slice(rows), BARRIER];
      const loop = early
        ? [
          block([text(`    let step = ${first};`), ...fill]),
          forLoop("step", `${first} + 1u`, end, [...rest, ...fill]),
        ]
        : [...fill, forLoop("step", first, `${end} - 1u`, [...next, ...rest, ...fill])];
      return [block([...loop, ...rest], `if (${first} < ${end})`)];
    });
}

function of(body: readonly Statement[], role: Role): Statement[] {
  return body.filter((one) => is(one, role));
}
