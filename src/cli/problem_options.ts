import { Command, InvalidArgumentError } from "#cli-types";
import { createHash } from "node:crypto";
import { type KernelVariant, parseVariant, variantNames } from "../algorithms/choices.ts";
import { H200 } from "../algorithms/device/h200.ts";
import { KNOWN_GPUS, publishedModel } from "../algorithms/device/known.ts";
import type { DeviceModel } from "../algorithms/device/model.ts";
import { algorithmNames } from "../algorithms/registry.ts";
import type { Balance, Schedule } from "../algorithms/schedule.ts";
import { type MathChoice, MATHS } from "../algorithms/request.ts";
import { readDeviceModel } from "../bench/calibrate/model_file.ts";
import { defined } from "../defined.ts";
import { InputRangeError, InputTypeError } from "../errors.ts";
import {
  CONV_DTYPES,
  CONV_OUT_DTYPES,
  type ConvDType,
  type Operation,
  OPERATIONS,
} from "../problem/conv_problem.ts";
import { CHECKS } from "../run/coverage.ts";
import {
  ACTIVATION_OPERANDS,
  type ActivationOperand,
  ACTIVATIONS,
} from "../problem/activations.ts";
import { FILL_KINDS } from "../tensor/fill.ts";
import { FILE_FILTER_LAYOUTS, type Layout, LAYOUT_ALIASES, LAYOUTS } from "../tensor/layout.ts";
import { GROUPS, OPTION } from "./shared_options.ts";
import { meant } from "./other_words.ts";
import { reporter } from "./output.ts";
import {
  commaList,
  oneOf,
  parsePadding,
  parsePolicies,
  parsePolicy,
  parseSegments,
  parseSizes,
  parseWorkspace,
  pathOr,
  positiveNumber,
  readPathOr,
  someOf,
  splitTiles,
  wholeNumber,
  type WorkspaceLimit,
} from "./values.ts";

const WORDS: Readonly<Record<string, DeviceModel>> = {
  h200: H200,
  ...Object.fromEntries(KNOWN_GPUS.map((gpu) => [gpu.word, publishedModel(gpu)])),
};

/** The model that `--device-model` says. */
export function givenModel(path: string | undefined): DeviceModel | undefined {
  if (path === undefined) return undefined;
  return WORDS[path] ?? readPathOr(Object.keys(WORDS), path, readDeviceModel);
}

/** A model in the options of a run: its name, and a hash of its figures. */
export function modelTrait(model: DeviceModel): string {
  const hash = createHash("sha256").update(JSON.stringify(model)).digest("hex");
  return `${model.name} ${hash.slice(0, 8)}`;
}

/** Parses `rows` or `grouped:8`: rows of tiles that workgroups go down first, 0 for all. */
export function parseRaster(text: string): number {
  const rows = /^(?:rows|grouped:([1-9]\d{0,4}))$/i.exec(text.trim());
  if (rows === null) throw new InvalidArgumentError("expected rows, or grouped:8.");
  return Number(rows[1] ?? 0);
}

/**
 * The variant that `--without`, `--with` and `--raster` name; says on stderr which of the names change nothing.
 *
 * @throws {RangeError} for a name that is none, or that stands in both lists, and for two layouts.
 * @throws {TypeError} if f16 tiles are asked for where nothing is f16 and summed in f32, or layouts of sums before an output
 * transform of a product.
 */
export function variantOption(
  options: {
    readonly without?: readonly string[];
    readonly with?: readonly string[];
    readonly raster?: number;
  },
  { dtypes, accumulate = "f32", product = false }: {
    readonly dtypes: readonly string[];
    readonly accumulate?: string;
    readonly product?: boolean;
  },
): KernelVariant | undefined {
  const { without = [], with: withs = [], raster } = options;
  // Convolutions take all rows anyhow.
  const asked = product ? raster : raster || undefined;
  const [has, lacks] = [variantNames(true), variantNames(false)];
  const names = [...has, ...lacks];
  const unknown = [...without, ...withs].find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new InputRangeError(
      `Cannot vary the main loop: ${unknown} is none of ${names.join(", ")}${
        meant(unknown, names)
      }`,
    );
  }
  const variant = parseVariant(without, withs, asked);
  for (const name of without.filter((name) => !has.includes(name))) {
    reporter("stderr").line(
      `wgconv: note: --without ${name} changes nothing, it is off by default`,
    );
  }
  for (const name of withs.filter((name) => !lacks.includes(name))) {
    reporter("stderr").line(
      `wgconv: note: --with ${name} changes nothing, it is on by default`,
    );
  }
  if (variant?.halfTile && (!dtypes.includes("f16") || accumulate === "f16")) {
    throw new InputTypeError(
      "Cannot vary the main loop: half-tile is of f16 products that are summed in f32",
    );
  }
  return variant;
}

/** `auto` and the algorithms it chooses from. */
export function algorithmChoices(): string[] {
  return ["auto", ...algorithmNames()];
}

/** What says how problems are made, planned and checked in several commands, as `option()` has it. */
export const PROBLEM = {
  fill: [
    "--fill <kind>",
    `kind of generated data: ${FILL_KINDS.join(", ")}; default uniform01, int8 for i8`,
    oneOf(FILL_KINDS),
  ],
  check: [
    "--check <how>",
    "outputs to compare with FP64: full (all), sample, none, or auto: all of small results, else a " +
    "sample and a projection of all",
    oneOf(CHECKS),
    "auto",
  ],
  ops: ["--op <list>", OPERATIONS.join(", "), someOf(OPERATIONS), ["fwd"] as Operation[]],
  layouts: [
    "--layout <list>",
    LAYOUTS.join(", "),
    someOf(LAYOUTS, LAYOUT_ALIASES),
    ["nchw"] as Layout[],
  ],
  dtypes: ["--dtype <list>", CONV_DTYPES.join(", "), someOf(CONV_DTYPES), ["f32"] as ConvDType[]],
  policies: [
    "--policy <list>",
    "tile policies; auto lets the planner choose",
    parsePolicies,
    ["auto"] as string[],
  ],
  tiles: [
    "--tile <list>",
    "Winograd tiles; auto lets the planner choose",
    splitTiles,
    ["auto"] as string[],
  ],
  outDtype: [
    "--out-dtype <name>",
    "type of result and bias: f32, f16 or bf16, default as the operands; for i8: i32 (default), i8, u8",
    oneOf(CONV_OUT_DTYPES),
  ],
  lossScale: [
    "--loss-scale <x>",
    "multiply the output's gradient by x before it is rounded; the result is x times as large",
    positiveNumber,
  ],
  exact: ["--exact", "exclude Winograd, whose errors are larger, and f16x3"],
  maxWorkspace: [
    "--max-workspace <bytes>",
    "most memory beside the tensors: 64MB, 1GiB, or 0.5x of their size",
    parseWorkspace,
  ],
  maxBoundRatio: [
    "--max-bound-ratio <x>",
    "largest bound ratio that a Winograd tile may reach",
    positiveNumber,
  ],
  math: [
    "--math <how>",
    "how f32 is multiplied: f32; f16x3 (three products of f16 halves on matrix units, --backend dawn); " +
    "auto (the faster)",
    oneOf(MATHS),
    "auto",
  ],
  deviceModel: [
    "--device-model <name|file>",
    "device to plan for: a file of calibrate --output, h200, or a GPU such as m3 (docs/guides/gpus.md has all)",
    pathOr(...Object.keys(WORDS)),
  ],
  splits: ["--splits <n>", "workgroups that share the sum of one tile (split-K)", wholeNumber(1)],
  flush: [
    "--flush <products>",
    "most products in one accumulator of fused Winograd, WinRS, matrix units; 0 for all",
    wholeNumber(0),
  ],
  raster: [
    "--raster <order>",
    "order of tiles: rows (all rows, then the next column), or grouped:N (N rows, all columns, then the " +
    "next N rows)",
    parseRaster,
  ],
  /** The main loop's optimisations that a product can be without, or with. */
  without: [
    "--without <list>",
    `turn optimisations off: ${variantNames(true).join(", ")}`,
    commaList,
  ],
  with: ["--with <list>", `turn optimisations on: ${variantNames(false).join(", ")}`, commaList],
} as const;

/** A command with the options that say which problem is meant, and of which tensors. */
export function operandCommand(name: string) {
  const command = new Command(name)
    .allowExcessArguments()
    .optionsGroup(GROUPS.common)
    .option("--input <file>", "input X (fwd, bwd-filter)")
    .option("--filter <file>", "filter W (fwd, bwd-data)")
    .option("--grad-output <file>", "gradient dY of the output (bwd-data, bwd-filter)")
    .option("--bias <file>", "K values added to the output, or one for all (fwd)")
    .option("--op <op>", OPERATIONS.join(", "), oneOf(OPERATIONS), "fwd" as const)
    .option("--problem <descriptor>", "sizes, such as mb8ic64ih56oc64kh3ph1; data is generated")
    .option("--stride <h,w>", "step of the filter; default 1", parseSizes)
    .option(
      "--padding <h,w>",
      "zeros around the input: 1; 1,2; top,left,bottom,right; valid (none); same (size / stride " +
        "outputs, an odd zero last); same-lower (an odd zero first); default 0",
      parsePadding,
    )
    .option("--layout <name>", LAYOUTS.join(", "), oneOf(LAYOUTS, LAYOUT_ALIASES), "nchw" as const)
    .optionsGroup(GROUPS.problem)
    .option("--dilation <h,w>", "step between filter taps; default 1", parseSizes)
    .option("--groups <g>", "channel groups; default 1", wholeNumber(1))
    .option("--activation <name>", ACTIVATIONS.join(", "), oneOf(ACTIVATIONS), "none" as const)
    .option(
      "--filter-layout <name>",
      `${FILE_FILTER_LAYOUTS.join(", ")} (HWIO of TensorFlow and JAX); default follows --layout`,
      oneOf(FILE_FILTER_LAYOUTS, LAYOUT_ALIASES),
    )
    .option(
      "--input-size <h,w>",
      "size of bwd-data's result, where a stride allows several",
      parseSizes,
    )
    .option("--filter-size <r,s>", "size of bwd-filter's result, where several fit", parseSizes)
    .optionsGroup(GROUPS.data)
    .option(...PROBLEM.fill)
    .option(...OPTION.seed)
    .option(...OPTION.as)
    .optionsGroup(GROUPS.types)
    .option(
      "--scale <x|file>",
      "factor of sums before they become i8 or u8: a number, or a file of one or K numbers",
      numberOrFile,
    )
    .option(
      "--input-zero-point <n|file>",
      "of i8 and u8 operands: the value of X that means zero",
      numberOrFile,
    )
    .option(
      "--filter-zero-point <n|file>",
      "of i8 and u8 operands: the value of W that means zero, or a file of one or K",
      numberOrFile,
    )
    .option(
      "--output-zero-point <n|file>",
      "of i8 and u8 results: the value of the result that means zero",
      numberOrFile,
    );
  command.optionsGroup(GROUPS.problem);
  for (const [operand, readers] of ACTIVATION_OPERANDS) {
    const help = `of --activation ${readers.join(", ")}: K values, or one for all`;
    command.option(`--${operand} <file>`, help);
  }
  return command;
}

export type OperandOptions =
  & ReturnType<ReturnType<typeof operandCommand>["opts"]>
  & { readonly [role in ActivationOperand]?: string | undefined };

/** The same with those that say how it is to be planned. */
export function problemCommand(name: string) {
  return operandCommand(name)
    .optionsGroup(GROUPS.common)
    .option(
      "--dtype <name>",
      "type of the operands: f32, f16 or bf16 (sums in f32) or i8 (sums in i32; u8 files stay u8)",
      oneOf(CONV_DTYPES),
      "f32" as const,
    )
    .option(
      "--algorithm <name>",
      algorithmChoices().join(", "),
      oneOf(algorithmChoices()),
      "auto" as const,
    )
    .option(...OPTION.json)
    .optionsGroup(GROUPS.types)
    .option(...PROBLEM.outDtype)
    .optionsGroup(GROUPS.kernel)
    .option(...PROBLEM.exact)
    .option(...PROBLEM.maxWorkspace)
    .option(...PROBLEM.maxBoundRatio)
    .option(...PROBLEM.math)
    .option(...PROBLEM.deviceModel)
    .option("--policy <name>", POLICY_HELP, parsePolicy)
    .option(...PROBLEM.splits)
    .option("--tile <tile>", "Winograd tile: F(4x4,3x3), F(6,3)")
    .option(
      "--pair <kernels>",
      "WinRS kernels: a8n3r6,a4n3r2, or exact (no tile reaches over the gradient's edge)",
    )
    .option(
      "--segments <z>",
      "number of WinRS segments, each summed by itself; or auto",
      parseSegments,
    )
    .option(...PROBLEM.flush)
    .option(...PROBLEM.raster)
    .option(...PROBLEM.without)
    .option(...PROBLEM.with);
}

const POLICY_HELP =
  "tile policy: small, or a tile: 64x32x8_8x8 is 64x32 results a workgroup, k-tiles of 8, 8x8 a thread";

/** @throws {TypeError} where a loss scale is given and none of the operations reads an output's gradient. */
export function refuseLossScale(
  doing: string,
  lossScale: number | undefined,
  ops: readonly string[],
) {
  if (lossScale === undefined || ops.some((op) => op !== "fwd")) return;
  throw new InputTypeError(
    `${doing}: --loss-scale multiplies the output's gradient, and fwd has none`,
  );
}

function numberOrFile(text: string): number | string {
  const value = text.trim() === "" ? NaN : Number(text);
  return Number.isNaN(value) ? text : value;
}

export type ProblemOptions = ReturnType<ReturnType<typeof problemCommand>["opts"]>;

/** Options that choose among plans, as commands have them. */
interface PlanningWords {
  readonly math: MathChoice;
  readonly policy?: string | undefined;
  readonly splits?: number | undefined;
  readonly balance?: Balance | undefined;
  readonly flush?: number | undefined;
  readonly tile?: string | undefined;
  readonly pair?: string | undefined;
  readonly maxWorkspace?: WorkspaceLimit | undefined;
  readonly deviceModel?: string | undefined;
  readonly exact?: boolean | undefined;
  readonly maxBoundRatio?: number | undefined;
}

/** The parts of a `PlanRequest` that options say. */
export function planningOf(said: PlanningWords, variant: KernelVariant | undefined) {
  const { math, policy, splits, balance, flush, tile, pair, exact, maxBoundRatio } = said;
  const schedule: Schedule = {
    ...defined({
      policy: policy === "auto" ? undefined : policy,
      balance: balance === "auto" ? undefined : balance,
    }),
    ...defined({ splits, flush }),
    ...variant,
  };
  return {
    ...said.maxWorkspace,
    ...defined({ tile, pair, exact, maxBoundRatio }),
    ...defined({
      math: math === "auto" ? undefined : math,
      device: givenModel(said.deviceModel),
    }),
    ...(Object.keys(schedule).length === 0 ? {} : { schedule }),
  };
}

/** {@linkcode planningOf} of a single problem. */
export function planningOptions(options: ProblemOptions) {
  const { segments, dtype } = options;
  const splits = options.splits ?? (segments === "auto" ? undefined : segments);
  return planningOf({ ...options, splits }, variantOption(options, { dtypes: [dtype] }));
}
