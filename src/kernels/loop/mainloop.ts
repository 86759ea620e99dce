/**
 * The mainloop of a tiled matrix product, as text: a prologue, a loop over k-tiles, an epilogue. A step is the work on one k-tile:
 * loaders fetch it to registers and store it to workgroup memory, products multiply it and add to the accumulators.
 */
import { range } from "../lists.ts";
import type { Subgroups } from "../matrix_units.ts";
import { mainText, type ModuleBuilder } from "../module.ts";

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
   * Tiles in workgroup memory. `single`: filled, then multiplied. `double`: two in turn, `half` says which, and one barrier a step.
   * `register-double`: tile `fill` is filled, and the next fragments are loaded from it to registers while those before are multiplied.
   */
  readonly buffers: "single" | "double" | "register-double";
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
  readonly rowEnds: { readonly before: readonly string[]; readonly after: readonly string[] };
}

/** A step's products in two parts with the loop's back edge between them: of one tile, filled from registers, in a `range`. */
export interface SoftwarePipeline {
  readonly before: string;
  readonly after: string;
  /** Whether the next tile is fetched before the first part. */
  readonly early: boolean;
}

/** Sums that leave the accumulators every few steps: strip-mining, which keeps chains of additions short. */
export interface FlushedSums {
  /** WGSL of the flush interval: steps of a part at most. */
  readonly interval: string;
  /** Sets the accumulators to zero. */
  readonly clear: string;
  /** Whether each part goes to the store. */
  readonly stored: boolean;
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
  /** Multiplies the tiles of a step. */
  readonly multiply: string;
  readonly softwarePipelined?: SoftwarePipeline;
  /** Multiplies those of the last step, where it has a text of its own; empty else. */
  readonly multiplyLast: string;
  /** After each step: moves finished chains on. */
  readonly fold: string;
  /** After the loop, or after each part: what has not been moved on yet. */
  readonly finish: string;
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
  readonly output: string;
}

/** Bytes of workgroup memory that say where an `opaque` loop ends. */
export const END_BYTES = 4;

/** The epilogue of workgroups some of which store elsewhere: those where `when`, in WGSL, holds. */
export function eitherOutput(when: string, output: string, other: string): string {
  return [`  if (${when}) {`, output, "  } else {", other, "  }"].join("\n");
}

/** The WGSL of a mainloop. */
export function mainloopText(loop: Mainloop, module: ModuleBuilder): string {
  const { products } = loop;
  const step = stepTexts(loop);
  return [
    `// ${loop.name}: ${loop.summary}`,
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
    "",
    ...prologue(loop, step),
    "",
    ...(products.flush === undefined
      ? [...stepLoop(loop, step), products.finish, "", loop.output]
      : flushedLoop(loop, step, products.flush)),
    "}",
    "",
  ].join("\n");
}

const BARRIER = "    workgroupBarrier();";

/** The texts of a step that both loaders share in. */
interface StepTexts {
  readonly fetch: string;
  readonly store: string;
  /** Declares which tile is filled and which multiplied. */
  readonly current: string;
  /** Moves both loaders to the step that is fetched next. */
  readonly next: string;
  /** The same from the first step, where two tiles are on their way. */
  readonly second: string;
  /** Declares `at` for the first step, where a loader asks for it. */
  readonly first: string;
}

function stepTexts({ loaders, schedule: { buffers, tripCount } }: Mainloop): StepTexts {
  const at = loaders.some(({ advance }) => advance === undefined)
    ? (step: string) => `    let at = ${step};`
    : () => "";
  const advance = both(loaders, "advance");
  const ahead = buffers === "register-double";
  return {
    fetch: both(loaders, "fetch"),
    store: both(loaders, "store"),
    current: CURRENT[buffers](tripCount.form === "unrolled" ? "turn" : "(step - first_step)"),
    next: [at(ahead ? "step + 2u" : "step + 1u"), advance].join("\n"),
    second: [at("first_step + 1u"), advance].join("\n"),
    first: at("first_step"),
  };
}

/** Which tile a step fills, and which it multiplies, by a number that is even where the first one does. */
const CURRENT: Readonly<Record<MainloopSchedule["buffers"], (turn: string) => string>> = {
  single: () => "",
  // The other tile may still be read: one barrier a step is enough.
  double: (turn) => `    let half = ${turn} % 2u;`,
  "register-double": (turn) => `    let fill = 1u - ${turn} % 2u;`,
};

/** The texts that are not empty, a line or more each. */
function filled(...texts: readonly string[]): string {
  return texts.filter((one) => one !== "").join("\n");
}

function both(loaders: Mainloop["loaders"], of: Exclude<keyof OperandLoader, "prologueSteps">) {
  return filled(...loaders.map((loader) => loader[of] ?? ""));
}

/** Loaders' state, steps before the first one, accumulators, and the first tile on its way. */
function prologue({ loaders, schedule, products }: Mainloop, step: StepTexts): string[] {
  const { loadFragments, loopCarried, sums } = products;
  const carried = loaders.flatMap(({ prologueSteps = 0, fetch, store, advance = "" }) =>
    range(prologueSteps).map(() =>
      ["  {", fetch, store, BARRIER, loopCarried!.next, BARRIER, advance, "  }"].join("\n")
    )
  );
  return [
    "  // Loaders: what stays fixed for this thread, then the first tile.",
    filled(
      both(loaders, "places"),
      both(loaders, "begin"),
      both(loaders, "registers"),
      loopCarried?.begin ?? "",
      ...carried,
    ),
    ...(schedule.prefetch ? ["  {", step.first, step.fetch, "  }"] : []),
    "",
    sums,
    // Two tiles are on their way where one is filled before it is needed.
    ...(schedule.buffers === "register-double"
      ? [
        ...["  {", "    let fill = 0u;", step.store, step.second, step.fetch, "  }"],
        "  workgroupBarrier();",
        ...["  {", "    let fill = 0u;", loadFragments ?? "", "  }"],
      ]
      : []),
  ];
}

/** A step: its tile is stored, the next one is fetched, this one multiplied. */
function oneStep(
  { schedule: { buffers, prefetch }, products }: Mainloop,
  step: StepTexts,
  multiply = products.multiply,
): string[] {
  const ahead = buffers === "register-double";
  return [
    step.current,
    ...(prefetch ? [] : ["    {", step.fetch, "    }"]),
    step.store,
    ...(ahead ? [] : [BARRIER]),
    ...(prefetch
      ? fetchNext(step, "this one is multiplied; past the end it is not used")
      : [step.next]),
    ...(ahead ? [BARRIER] : []),
    multiply,
    products.fold,
    ...(buffers === "single" ? [BARRIER] : []),
  ];
}

function fetchNext(step: StepTexts, while_: string): string[] {
  return [
    `    // The next tile travels to registers while ${while_}.`,
    ...["    {", step.next, step.fetch, "    }"],
  ];
}

/** The last step, where it has a text of its own: it fetches nothing, and nobody waits behind it. */
function lastStep({ schedule: { prefetch }, products }: Mainloop, step: StepTexts): string[] {
  return [
    "  {",
    "    let step = last_step;",
    step.current,
    ...(prefetch ? [] : ["    {", step.fetch, "    }"]),
    ...[step.store, BARRIER, products.multiplyLast, products.fold],
    "  }",
  ];
}

/** The loop over all of a workgroup's steps. */
function stepLoop(loop: Mainloop, step: StepTexts): string[] {
  const { schedule: { steps }, products: { multiplyLast } } = loop;
  if (multiplyLast === "") return stepsBetween(loop, step, "first_step", "end_step");
  const most = steps > 2
    ? "  for (var step = first_step; step < last_step; step++) {"
    : "  {\n    let step = first_step;";
  return [
    "  let last_step = end_step - 1u;",
    ...(steps > 1 ? [most, ...oneStep(loop, step), "  }"] : []),
    ...lastStep(loop, step),
  ];
}

/** The same part by part, with the sums moved on after each. */
function flushedLoop(
  loop: Mainloop,
  step: StepTexts,
  { interval, clear, stored }: FlushedSums,
): string[] {
  const { products: { multiplyLast, finish }, output } = loop;
  const last = multiplyLast !== "";
  return [
    "  // Sums move on every few steps, which keeps what one accumulator adds up short.",
    "  var next_step = first_step;",
    ...(last ? ["  let last_step = end_step - 1u;"] : []),
    "  loop {",
    "  let part_step = next_step;",
    `  next_step = min(end_step, part_step + ${interval});`,
    ...(stored ? ["  let again = part_step > first_step;"] : []),
    clear,
    ...stepsBetween(loop, step, "part_step", last ? "min(next_step, last_step)" : "next_step"),
    ...(last ? ["  if (next_step == end_step) {", ...lastStep(loop, step).slice(1)] : []),
    ...[finish, ""],
    ...(stored ? [output] : []),
    "  if (next_step >= end_step) { break; }",
    "  workgroupBarrier();",
    "  }",
    ...(stored ? [] : ["", output]),
  ];
}

/** The loop from one step to another, in the form that the schedule says. */
function stepsBetween(loop: Mainloop, step: StepTexts, first: string, end: string): string[] {
  const { schedule: { tripCount }, products: { softwarePipelined } } = loop;
  if (tripCount.form === "unrolled") return unrolledSteps(loop, step, tripCount.factor, first, end);
  if (softwarePipelined !== undefined) return pipelinedSteps(step, softwarePipelined, first, end);
  if (tripCount.form === "counted") {
    const { steps, longer } = tripCount;
    return [
      `  for (var turn = 0u; turn < ${steps}; turn++) {`,
      `    let step = ${first} + turn;`,
      ...oneStep(loop, step),
      "  }",
      ...(longer === undefined ? [] : [
        `  if (${longer}) {`,
        `    let step = ${first} + ${steps};`,
        ...oneStep(loop, step),
        "  }",
      ]),
    ];
  }
  const opaque = tripCount.form === "opaque";
  return [
    ...(opaque ? [`  if (t == 0u) { loop_end = ${end}; }`] : []),
    `  for (var step = ${first}; step < ${
      opaque ? "workgroupUniformLoad(&loop_end)" : end
    }; step++) {`,
    ...oneStep(loop, step),
    "  }",
  ];
}

/** Rounds of so many steps, a loop of them inside; the first and last ones may have texts of their own. */
function unrolledSteps(
  loop: Mainloop,
  step: StepTexts,
  factor: number,
  first: string,
  end: string,
): string[] {
  const { loaders, products: { loopCarried } } = loop;
  const { before, after } = loopCarried?.rowEnds ?? { before: [], after: [] };
  const rowBegin = both(loaders, "rowBegin");
  const own = (multiply: string, turn: number) => [
    "    {",
    `      let step = round + ${turn}u;`,
    ...oneStep(loop, step, multiply),
    "    }",
  ];
  return [
    `  for (var round = ${first}; round < ${end}; round += ${factor}u) {`,
    ...(rowBegin === "" ? [] : [rowBegin]),
    ...before.flatMap(own),
    `    for (var turn = ${before.length}u; turn < ${factor - after.length}u; turn++) {`,
    "      let step = round + turn;",
    ...oneStep(loop, step),
    "    }",
    ...after.flatMap((multiply, turn) => own(multiply, factor - after.length + turn)),
    "  }",
  ];
}

/** Software pipelining: the back edge lies within a step's products, and the rest of the last step's follow the loop. */
function pipelinedSteps(
  step: StepTexts,
  { before, after, early }: SoftwarePipeline,
  first: string,
  end: string,
): string[] {
  const fetch = fetchNext(step, `${early ? "this one" : "the rest of this one"} is multiplied`);
  const fill = ["    {", step.store, "    }", BARRIER, ...(early ? fetch : []), before];
  return [
    `  if (${first} < ${end}) {`,
    ...(early
      ? [
        ...["  {", `    let step = ${first};`, ...fill, "  }"],
        `  for (var step = ${first} + 1u; step < ${end}; step++) {`,
      ]
      : [...fill, `  for (var step = ${first}; step < ${end} - 1u; step++) {`, ...fetch]),
    ...[after, BARRIER, ...fill],
    "  }",
    ...[after, BARRIER],
    "  }",
  ];
}
