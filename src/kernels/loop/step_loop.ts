import template from "../../../shaders/step_loop.wgsl" with { type: "text" };
import { type ModuleBuilder, render } from "../module.ts";
import { threadSums } from "./accumulate.ts";
import {
  clearSums,
  type InnerProduct,
  multiplyRow,
  type SumName,
  type ThreadTile,
} from "./inner_product.ts";
import type { WorkgroupTile } from "./workgroup_tile.ts";

/** Brings one operand of a step from storage into workgroup memory: text, over the thread index `t`. */
export interface StepLoader {
  /** Declares what stays fixed for this thread. */
  readonly places: string;
  /** Declares the state that moves with the steps, if there is any. */
  readonly begin?: string;
  /** Declares the registers between fetch and store. */
  readonly registers: string;
  /** Moves the state to the next step; where absent, `fetch` finds the step as `at`. */
  readonly advance?: string;
  /** Fills the registers. */
  readonly fetch: string;
  /** Stores them, transformed or not, into the tile. */
  readonly store: string;
}

/** How loads, products and barriers of steps follow each other. */
export interface StepSchedule {
  /**
   * Tiles in workgroup memory. `one`: filled, then multiplied. `alternate`: two in turn, `half` is which, and one barrier a
   * step. `ahead`: `fill` is filled while `full` is multiplied.
   */
  readonly buffers: "one" | "alternate" | "ahead";
  /** The next tile travels to registers while this one is multiplied. */
  readonly prefetch: boolean;
  /** The depth of a tile is text, not a loop. */
  readonly unroll: boolean;
  /** Products of the last step, where it is a text of its own. */
  readonly last?: number | undefined;
}

/**
 * How many steps one accumulator adds up, and where its sums go then: a second set of registers (0 for never), or the
 * store, which then adds where `again` is true.
 */
export type AccumulationPolicy =
  | { readonly into: "registers"; readonly every: number }
  | { readonly into: "store"; /** WGSL. */ readonly every: string };

/** A product in steps: all that its kernel is made of. */
export interface StepLoop {
  readonly name: string;
  /** A line on its sizes, for the head of the text. */
  readonly summary: string;
  /** Of the store and what else there is beside loaders and tiles. */
  readonly declarations: readonly string[];
  readonly threads: number;
  /** WGSL of the number of workgroups. */
  readonly workgroups: string;
  /** Tile scheduler: declares `first_row`, `first_column`, `first_step`, `end_step` of workgroup `id`. */
  readonly workgroup: string;
  /** Declares which results are this thread's: `ay{i}` and `bx{j}`. */
  readonly places: string;
  readonly schedule: StepSchedule;
  /** Most steps of a workgroup. */
  readonly steps: number;
  readonly loaders: readonly [StepLoader, StepLoader];
  readonly tiles: readonly [WorkgroupTile, WorkgroupTile];
  readonly depth: number;
  readonly inner: InnerProduct;
  readonly threadTile: ThreadTile;
  readonly accumulate: AccumulationPolicy;
  /** What tells the sums of a row and fragment from others: they are `c{index}` after the loop. */
  readonly sumIndex: SumName;
  /** What becomes of the sums. */
  readonly output: string;
}

/** The WGSL of a step loop. */
export function stepLoopText(loop: StepLoop, module: ModuleBuilder): string {
  const { schedule, loaders, tiles: [a, b], depth, inner, threadTile, accumulate, sumIndex } = loop;
  const every = accumulate.into === "registers" ? accumulate.every : 0;
  const sums = threadSums(threadTile, inner.sum, every, sumIndex);
  const both = (text: (loader: StepLoader) => string | undefined) =>
    loaders.map(text).filter((one) => one !== undefined && one !== "").join("\n");
  const rows = Array.from(
    { length: depth },
    (_, k) => `    {\n${multiplyRow(inner, threadTile, `${k}`, a, b, sums.inner)}\n    }`,
  );
  // Loaders without a state find the step by its number.
  const at = loaders.some(({ advance }) => advance === undefined);
  const step = (text: string) => at ? `    let at = ${text};` : "";
  return render(template, {
    ...loop,
    ...schedule,
    declarations: [
      module.declarations(),
      ...loop.declarations,
      ...new Set([a.declaration, b.declaration]),
    ].filter((one) => one !== "").join("\n"),
    begin: [
      both(({ places }) => places),
      both(({ begin }) => begin),
      both(({ registers }) => registers),
    ].join("\n"),
    first: step("first_step"),
    second: step("first_step + 1u"),
    next: [
      step(schedule.buffers === "ahead" ? "step + 2u" : "step + 1u"),
      both(({ advance }) => advance),
    ]
      .join("\n"),
    fetch: both(({ fetch }) => fetch),
    store: both(({ store }) => store),
    current: CURRENT[schedule.buffers],
    sums: sums.declare,
    allSteps: loop.steps,
    multiply: schedule.unroll
      ? rows.join("\n")
      : `    for (var k = 0u; k < ${depth}u; k++) {\n${
        multiplyRow(inner, threadTile, "k", a, b, sums.inner)
      }\n    }`,
    multiplyLast: schedule.last === undefined ? "" : rows.slice(0, schedule.last).join("\n"),
    fold: sums.fold,
    finish: sums.finish,
    parts: accumulate.into === "store" &&
      { steps: accumulate.every, clear: clearSums(threadTile, sums.sum, inner.sum) },
  });
}

/** Which tile a step fills, and which it multiplies. */
const CURRENT: Readonly<Record<StepSchedule["buffers"], string>> = {
  one: "",
  // The other tile may still be read: one barrier a step is enough.
  alternate: "    let half = (step - first_step) % 2u;",
  ahead: "    let full = (step - first_step) % 2u;\n    let fill = 1u - full;",
};
