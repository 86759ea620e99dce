import { range } from "../lists.ts";
import template from "../../../shaders/step_loop.wgsl" with { type: "text" };
import type { Subgroups } from "../matrix_units.ts";
import { mainText, type ModuleBuilder, render } from "../module.ts";

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
  /** Says again what the state is where a row of steps begins, of those that go by rows. */
  readonly rowBegin?: string;
  /** Fills the registers. */
  readonly fetch: string;
  /** Stores them, transformed or not, into the tile. */
  readonly store: string;
  /** Steps before the first one whose tiles products keep something of; none where absent. */
  readonly before?: number;
}

/** How loads, products and barriers of steps follow each other. */
export interface StepSchedule {
  /**
   * Tiles in workgroup memory. `one`: filled, then multiplied. `alternate`: two in turn, `half` is which, and one barrier a
   * step. `collected`: `fill` is filled, then what is multiplied next is
   * collected from it while what was collected before is multiplied.
   */
  readonly buffers: "one" | "alternate" | "collected";
  /** The next tile travels to registers while this one is multiplied. */
  readonly prefetch: boolean;
}

/** What becomes of the tiles of a step: products that are added to sums, as text. */
export interface StepProducts {
  /** The tiles, and what else of workgroup memory it takes. */
  readonly declarations: readonly string[];
  /** Whether it asks for `subgroup` and `lane`, a thread's subgroup and its place there. */
  readonly subgroups?: Subgroups;
  /** Declares the sums, all zero. */
  readonly sums: string;
  /** Collects what is multiplied first from tile `fill`, where buffers are `collected`. */
  readonly collect?: string;
  /** Declares what it keeps of the tiles of steps before, and moves that to a step later, with the tile's in its place. */
  readonly kept?: { readonly begin: string; readonly next: string };
  /** Multiplies the tiles of a step. */
  readonly multiply: string;
  /**
   * The same in two parts, where the loop ends between them and not with a step: of one tile, filled from registers, whose sums stay
   * where they are or are stored, in a loop without `rounds`; `early` where the next tile is fetched before the first part.
   */
  readonly rotated?: { readonly before: string; readonly after: string; readonly early: boolean };
  /** Multiplies those of the last step, where it is a text of its own. */
  readonly multiplyLast: string;
  /** Multiplies those of a round's first and last steps, where these are texts of their own. */
  readonly row?:
    | { readonly before: readonly string[]; readonly after: readonly string[] }
    | undefined;
  /** After each step: moves finished chains on. */
  readonly fold: string;
  /** After the loop, or after each of its parts: what has not been moved on yet. */
  readonly finish: string;
  /**
   * Where sums move on every few steps: WGSL of how many at most, whether of always as many, what sets them to zero, whether they
   * go to the store each time, and how parts begin.
   */
  readonly parts: false | {
    readonly steps: string;
    readonly whole?: boolean;
    readonly clear: string;
    readonly stored: boolean;
    /**
     * Whether each part loads its first tile itself, which else is in registers while the sums of the part before it move: where one
     * tile is filled ahead in registers.
     */
    readonly reloads?: boolean;
  };
}

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
  readonly products: StepProducts;
  /** What becomes of the sums. */
  readonly output: string;
  /**
   * WGSL of how many steps all workgroups have, and of whether one has one more, for a loop that counts them: not where the last step
   * is a text of its own or sums move on. `first_step` to `end_step` where absent.
   */
  readonly counted?: { readonly steps: string; readonly longer: string | undefined } | undefined;
  /** Workgroups whose sums go elsewhere: WGSL of whether one is of them, and what becomes of its sums. */
  readonly elsewhere?: { readonly when: string; readonly output: string } | undefined;
  /**
   * Steps that all workgroups', and all parts of their sums, are whole multiples of, or those beyond the end add nothing: one loop over
   * rounds of so many is then all texts'.
   */
  readonly rounds?: number | undefined;
  /**
   * Whether each step asks workgroup memory where the loop ends. A compiler then keeps one step in the loop's text, and not the eight
   * that it else writes out: for long steps. Not with `rounds` or `counted`, nor where the last step is a text of its own.
   */
  readonly asks?: boolean | undefined;
}

/** Bytes of workgroup memory that say where the loop ends, where it `asks`. */
export const END_BYTES = 4;

/** The WGSL of a step loop. */
export function stepLoopText(loop: StepLoop, module: ModuleBuilder): string {
  const { schedule, loaders, products } = loop;
  const both = (text: (loader: StepLoader) => string | undefined) =>
    loaders.map(text).filter((one) => one !== undefined && one !== "").join("\n");
  // Loaders without a state find the step by its number.
  const at = loaders.some(({ advance }) => advance === undefined);
  const step = (text: string) => at ? `    let at = ${text};` : "";
  // What products keep of the steps before the first.
  const before = loaders.flatMap(({ before = 0, fetch, store, advance = "" }) =>
    range(before).map(() =>
      [
        "  {",
        fetch,
        store,
        "    workgroupBarrier();",
        products.kept!.next,
        "    workgroupBarrier();",
        advance,
        "  }",
      ].join("\n")
    )
  );
  // Two tiles are on their way where one is filled before it is needed.
  const early = schedule.buffers === "collected";
  return render(template, {
    ...loop,
    ...schedule,
    ...products,
    main: mainText(loop.threads, products.subgroups),
    collect: products.collect ?? "",
    declarations: [
      module.declarations(),
      ...loop.declarations,
      ...new Set(products.declarations),
      ...(loop.asks ? ["var<workgroup> loop_end: u32;"] : []),
    ].filter((one) => one !== "").join("\n"),
    begin: [
      both(({ places }) => places),
      both(({ begin }) => begin),
      both(({ registers }) => registers),
      products.kept?.begin ?? "",
      ...before,
    ].filter((one) => one !== "").join("\n"),
    row: products.row ?? { before: [], after: [] },
    rotated: products.rotated,
    rowBegin: both(({ rowBegin }) => rowBegin),
    first: step("first_step"),
    partFirst: step("part_step"),
    asks: loop.asks ?? false,
    early,
    second: [step("first_step + 1u"), both(({ advance }) => advance)].join("\n"),
    next: [step(early ? "step + 2u" : "step + 1u"), both(({ advance }) => advance)].join("\n"),
    fetch: both(({ fetch }) => fetch),
    store: both(({ store }) => store),
    current: CURRENT[schedule.buffers](
      loop.rounds === undefined ? "(step - first_step)" : "turn",
    ),
    allSteps: loop.steps,
    rounds: loop.rounds,
    output: loop.elsewhere === undefined ? loop.output : [
      `  if (${loop.elsewhere.when}) {`,
      loop.elsewhere.output,
      "  } else {",
      loop.output,
      "  }",
    ].join("\n"),
  });
}

/** Which tile a step fills, and which it multiplies, by a number that is even where the first one does. */
const CURRENT: Readonly<Record<StepSchedule["buffers"], (turn: string) => string>> = {
  one: () => "",
  // The other tile may still be read: one barrier a step is enough.
  alternate: (turn) => `    let half = ${turn} % 2u;`,
  collected: (turn) => `    let fill = 1u - ${turn} % 2u;`,
};
