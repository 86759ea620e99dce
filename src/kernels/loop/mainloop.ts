/**
 * The mainloop of a tiled matrix product: a prologue, a loop over k-tiles, an epilogue. A step is the work on one k-tile: loaders
 * fetch it to registers and store it to workgroup memory, products multiply it and add to the accumulators. `plainLoop()` is that loop
 * as a tree; the passes of its schedule (`src/kernels/schedule`) rewrite it.
 */
import { BARRIER, block, forLoop, printStatements, type Statement, text } from "../ir/tree.ts";
import { range } from "../lists.ts";
import type { Subgroups } from "../matrix_units.ts";
import type { ModuleBuilder } from "../module.ts";
import { mainText } from "../sized_kernel.ts";
import { multiBuffer, registerDoubleBuffer } from "../schedule/buffers.ts";
import type { LoopTree, Pass } from "../schedule/loop_tree.ts";
import { pipeline, type PipelineCut } from "../schedule/pipeline.ts";
import { prefetch } from "../schedule/prefetch.ts";
import { splitLast } from "../schedule/split_last.ts";
import { type FlushedSums, stripMine } from "../schedule/strip_mine.ts";
import { applyPasses } from "../schedule/trace.ts";
import { countTrips, hideTrips, type RowEnds, unroll } from "../schedule/trip_count.ts";

/** Brings one operand of a step from storage into workgroup memory: text, over the thread index `t`. */
export interface OperandLoader {
  /** Declares what stays fixed for this thread. */
  readonly places: string;
  /** Declares the state that moves with the steps, if there is any. */
  readonly begin?: string;
  /** Declares the registers between fetch and store. */
  readonly registers: string;
  /** Moves the state to the next step; where absent, `fetch` finds the step as `at`. */
  readonly advance?: string;
  /** Sets the state again where a row of steps begins, of loaders that go by rows. */
  readonly rowBegin?: string;
  /** Fills the registers. */
  readonly fetch: string;
  /** Stores them, transformed or not, into the tile. */
  readonly store: string;
  /** Steps before the first one whose tiles the products carry over; none where absent. */
  readonly prologueSteps?: number;
}

/** How the loop over steps is written. */
export type TripCount =
  /** From `first_step` to `end_step`. */
  | { readonly form: "range" }
  /** So many steps, in WGSL, and one more where `longer` holds: compilers make more of a loop whose count they see. */
  | { readonly form: "counted"; readonly steps: string; readonly longer?: string | undefined }
  /** Rounds of `factor` steps. All workgroups, and all parts of their sums, have whole rounds, or steps beyond the end add nothing. */
  | { readonly form: "unrolled"; readonly factor: number }
  /** Each step reads the end from workgroup memory. The compiler then writes out one step and not eight, which long steps need. */
  | { readonly form: "opaque" };

/** In which order loads, products and barriers of steps follow each other. */
export interface MainloopSchedule {
  /**
   * Tiles of each operand in workgroup memory. One is filled, then multiplied; of several, `half` says which, with one barrier a step.
   * `register-double`: tile `fill` is filled, and the next fragments are loaded from it to registers while those before are multiplied.
   */
  readonly buffers: number | "register-double";
  /** The next tile travels to registers while this one is multiplied. */
  readonly prefetch: boolean;
  readonly tripCount: TripCount;
  /** Most steps of a workgroup. */
  readonly steps: number;
}

/** Fragments of earlier steps that the products carry over. */
export interface LoopCarried {
  /** Declares them. */
  readonly begin: string;
  /** Moves them a step on, with the tile's in their place. */
  readonly next: string;
  /** Products of the first and last steps of a round, where these have texts of their own. */
  readonly rowEnds: RowEnds;
}

/** What multiplies a step's tiles and adds to the accumulators: text. */
export interface StepProducts {
  /** The tiles, and what else of workgroup memory they need. */
  readonly declarations: readonly string[];
  /** Whether `subgroup` and `lane` are needed: a thread's subgroup and its place there. */
  readonly subgroups?: Subgroups;
  /** Declares the accumulators, all zero. */
  readonly sums: string;
  /** Loads the first fragments from tile `fill`, where buffers are `register-double`. */
  readonly loadFragments?: string;
  readonly loopCarried?: LoopCarried;
  /** Multiply the tiles of a step, row by row of the depth where rows are texts. */
  readonly rows: readonly string[];
  /** Those of the last step, where it stands behind the loop. */
  readonly lastRows: readonly string[] | undefined;
  /** Of a software-pipelined loop. */
  readonly cut?: PipelineCut | undefined;
  /** After each step: moves finished chains on. */
  readonly fold: string;
  /** After the loop, or after each part: what has not been moved on yet. */
  readonly finish: readonly Statement[];
  readonly flush: FlushedSums | undefined;
}

/** All that a tiled product's kernel is made of. */
export interface Mainloop {
  readonly name: string;
  /** A line on its sizes, for the head of the text. */
  readonly summary: string;
  /** Of the epilogue and what else there is beside loaders and tiles. */
  readonly declarations: readonly string[];
  readonly threads: number;
  /** WGSL of the number of workgroups. */
  readonly workgroups: string;
  /** Tile scheduler: declares `first_row`, `first_column`, `first_step`, `end_step` of workgroup `id`. */
  readonly workgroup: string;
  /** Declares which results are this thread's: `ay{i}` and `bx{j}`. */
  readonly places: string;
  readonly schedule: MainloopSchedule;
  readonly loaders: readonly [OperandLoader, OperandLoader];
  readonly products: StepProducts;
  /** Epilogue: what becomes of the sums. */
  readonly output: readonly Statement[];
}

/** Bytes of workgroup memory that say where an `opaque` loop ends. */
export const END_BYTES = 4;

/** The epilogue of workgroups some of which store elsewhere: those where `when`, in WGSL, holds. */
export function eitherOutput(
  when: string,
  output: readonly Statement[],
  other: readonly Statement[],
): Statement[] {
  return [block(output, `if (${when})`), block(other, "else")];
}

/** The WGSL of a mainloop. */
export function mainloopText(loop: Mainloop, module: ModuleBuilder): string {
  const { products } = loop;
  const passes = passesOf(loop);
  return applyPasses(plainLoop(loop), passes, ({ state, sums, main, finish, output }) =>
    [
      `// ${loop.name}: ${loop.summary}`,
      `// Passes over the plain loop: ${passes.map(([name]) => name).join(", ") || "none"}.`,
      "",
      filled(
        module.declarations(),
        ...loop.declarations,
        ...new Set(products.declarations),
        loop.schedule.tripCount.form === "opaque" ? "var<workgroup> loop_end: u32;" : "",
      ),
      "",
      mainText(loop.threads, products.subgroups),
      "  let id = workgroup.x + workgroup.y * grid.x;",
      `  if (id >= ${loop.workgroups}) { return; }`,
      loop.workgroup,
      "",
      loop.places,
      ...[state, sums, main, finish, output].flatMap((part) => ["", printStatements(part)]),
      "}",
      "",
    ].join("\n"));
}

/** The mainloop as it is without a schedule: each step fetches its tile, stores it, multiplies it. */
function plainLoop({ loaders, products, output }: Mainloop): LoopTree {
  const { loopCarried, rows, fold, finish } = products;
  const carried = loaders.flatMap(({ prologueSteps = 0, fetch, store, advance = "" }) =>
    range(prologueSteps).map(() =>
      block([
        ...[text(fetch), text(store), BARRIER],
        ...[text(loopCarried!.next), BARRIER, text(advance)],
      ])
    )
  );
  return {
    state: [
      text("  // Loaders: what stays fixed for this thread, and what moves with the steps."),
      text(both(loaders, "places")),
      text(both(loaders, "begin")),
      text(both(loaders, "registers")),
      text(loopCarried?.begin ?? ""),
      ...carried,
    ],
    sums: [text(products.sums)],
    main: [
      forLoop("step", "first_step", "end_step", [
        block([text(both(loaders, "fetch"))], "", "fetch"),
        text(both(loaders, "store"), "store"),
        BARRIER,
        text(advanceTo(loaders, "step + 1u"), "advance"),
        ...rows.map((row) => text(row, "multiply")),
        text(fold, "fold"),
        BARRIER,
      ]),
    ],
    finish,
    output,
  };
}

/** The passes of a schedule with their names, in their order. */
function passesOf({ loaders, schedule, products }: Mainloop): (readonly [string, Pass])[] {
  const { buffers, tripCount, steps } = schedule;
  const { flush, lastRows, cut, loadFragments = "" } = products;
  const fetch = both(loaders, "fetch");
  // A round begins with the first buffer again, where it goes through all of them.
  const whole = tripCount.form === "unrolled" &&
    tripCount.factor % (buffers === "register-double" ? 2 : buffers) === 0;
  const turn = whole ? "turn" : "(step - first_step)";
  const passes: (readonly [string, Pass])[] = [];
  if (schedule.prefetch) {
    passes.push(["prefetch", prefetch(filled(stepOf(loaders, "first_step"), fetch))]);
  }
  if (buffers === "register-double") {
    const buffer = {
      store: both(loaders, "store"),
      fetchSecond: filled(advanceTo(loaders, "first_step + 1u"), fetch),
      advance: advanceTo(loaders, "step + 2u"),
      loadFragments,
    };
    passes.push(["register double buffer", registerDoubleBuffer(turn, buffer)]);
  } else if (buffers > 1) {
    passes.push([`${buffers} buffers`, multiBuffer(buffers, turn)]);
  }
  if (lastRows !== undefined) {
    // Parts keep their loop, however few steps there are.
    const most = flush === undefined ? steps : Infinity;
    passes.push(["last step split", splitLast(lastRows, most)]);
  }
  if (flush !== undefined) passes.push(["strip-mining", stripMine(flush)]);
  if (cut !== undefined) {
    passes.push(["software pipelining", pipeline(cut)]);
  } else if (tripCount.form === "counted") {
    passes.push(["counted", countTrips(tripCount.steps, tripCount.longer)]);
  } else if (tripCount.form === "opaque") {
    passes.push(["opaque trip count", hideTrips]);
  } else if (tripCount.form === "unrolled") {
    const ends = products.loopCarried?.rowEnds ?? { before: [], after: [] };
    passes.push(["unrolled", unroll(tripCount.factor, both(loaders, "rowBegin"), ends)]);
  }
  return passes;
}

/** Moves both loaders to a step. */
function advanceTo(loaders: Mainloop["loaders"], step: string): string {
  return filled(stepOf(loaders, step), both(loaders, "advance"));
}

/** Declares the step that is fetched, where a loader asks for it. */
function stepOf(loaders: Mainloop["loaders"], step: string): string {
  return loaders.some(({ advance }) => advance === undefined) ? `    let at = ${step};` : "";
}

/** The texts that are not empty, a line or more each. */
function filled(...texts: readonly string[]): string {
  return texts.filter((one) => one !== "").join("\n");
}

function both(loaders: Mainloop["loaders"], of: Exclude<keyof OperandLoader, "prologueSteps">) {
  return filled(...loaders.map((loader) => loader[of] ?? ""));
}
