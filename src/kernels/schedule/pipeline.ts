import { BARRIER, block, forLoop, is, type Statement, text } from "../ir/tree.ts";
import { type Pass, replaceLoops } from "./loop_tree.ts";

/** A step's products in two parts with the loop's back edge between them. */
export interface SoftwarePipeline {
  readonly before: string;
  readonly after: string;
  /** Whether the next tile is fetched before the first part. */
  readonly early: boolean;
}

/**
 * Software pipelining: the back edge lies within a step's products, and the rest of the last step's follow the loop. Of one tile that is
 * filled from registers: after {@linkcode prefetch}.
 */
export function pipeline({ before, after, early }: SoftwarePipeline): Pass {
  return (tree) =>
    replaceLoops(tree, ({ first, end, body }) => {
      const [store, next] = [of(body, "store"), of(body, "prefetch")];
      const fill = [block(store), BARRIER, ...(early ? next : []), text(before, "multiply")];
      const rest = [text(after, "multiply"), BARRIER];
      const loop = early
        ? [
          block([text(`    let step = ${first};`), ...fill]),
          forLoop("step", `${first} + 1u`, end, [...rest, ...fill]),
        ]
        : [...fill, forLoop("step", first, `${end} - 1u`, [...next, ...rest, ...fill])];
      return [block([...loop, ...rest], `if (${first} < ${end})`)];
    });
}

function of(body: readonly Statement[], role: "store" | "prefetch"): Statement[] {
  return body.filter((one) => is(one, role));
}
