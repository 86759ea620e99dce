import { BARRIER, block, is, rewrite, text } from "../ir/tree.ts";
import type { Pass } from "./loop_tree.ts";

/** Sums that leave the accumulators every few steps, which keeps chains of additions short. */
export interface FlushedSums {
  /** WGSL of the flush interval: steps of a part at most. */
  readonly interval: string;
  /** Sets the accumulators to zero. */
  readonly clear: string;
  /** Whether each part goes to the store. */
  readonly stored: boolean;
}

/** Strip-mining: a loop over parts of so many steps around the loop over steps; after each part its sums move on. */
export function stripMine({ interval, clear, stored }: FlushedSums): Pass {
  return ({ main, finish, output, ...tree }) => {
    const declared = main.filter((one) => one.kind === "text" && is(one, "last"));
    const steps = rewrite(main.filter((one) => !declared.includes(one)), (one) => {
      if (one.kind === "block" && is(one, "last")) {
        return [{ ...one, head: "if (next_step == end_step)" }];
      }
      if (one.kind !== "for" || one.index !== "step") return [one];
      const end = one.end === "end_step" ? "next_step" : `min(next_step, ${one.end})`;
      return [{ ...one, first: "part_step", end }];
    });
    return {
      ...tree,
      main: [
        text("  // Sums move on every few steps, which keeps what one accumulator adds up short."),
        text("  var next_step = first_step;"),
        ...declared,
        block([
          text("  let part_step = next_step;"),
          text(`  next_step = min(end_step, part_step + ${interval});`),
          ...(stored ? [text("  let again = part_step > first_step;")] : []),
          text(clear),
          ...steps,
          ...finish,
          ...(stored ? output : []),
          text("  if (next_step >= end_step) { break; }"),
          BARRIER,
        ], "loop"),
      ],
      finish: [],
      output: stored ? [] : output,
    };
  };
}
