import { MATHS } from "../algorithms/math.ts";
import { algorithmNames } from "../algorithms/registry.ts";
import { InputTypeError } from "../errors.ts";
import { Command } from "#cli-types";
import { CONV_DTYPES, CONV_OUT_DTYPES, OPERATIONS } from "../problem/conv_problem.ts";
import { ACTIVATIONS } from "../problem/epilogue.ts";
import { FILE_FILTER_LAYOUTS, LAYOUT_ALIASES, LAYOUTS } from "../tensor/layout.ts";
import { FILL_KINDS } from "../tensor/fill.ts";
import { AS_DTYPES, AS_HELP } from "./as_option.ts";
import { DEVICE_MODEL_HELP, deviceOption, parseDeviceModel } from "./device_model.ts";
import { parseRaster, RASTER_HELP, VARIANT_HELP, variantOption } from "./variant_options.ts";
import {
  commaList,
  oneOf,
  parsePadding,
  parsePolicy,
  parseSegments,
  parseSizes,
  parseWorkspace,
  positiveNumber,
  wholeNumber,
  WORKSPACE_HELP,
} from "./values.ts";

/** `auto` and the algorithms it chooses from. */
export function algorithmChoices(): string[] {
  return ["auto", ...algorithmNames()];
}

/** A command with the options that say which problem is meant and how it is to be planned. */
export function problemCommand(name: string) {
  return new Command(name)
    .allowExcessArguments()
    .option("--op <op>", "fwd, bwd-data or bwd-filter", oneOf(OPERATIONS), "fwd" as const)
    .option("--input <file>", "activations X, for fwd and bwd-filter")
    .option("--filter <file>", "filter W, for fwd and bwd-data")
    .option("--grad-output <file>", "gradient dY of the output, for bwd-data and bwd-filter")
    .option("--bias <file>", "K values added to the output, or one (fwd)")
    .option("--as <name>", AS_HELP, oneOf(AS_DTYPES))
    .option("--problem <descriptor>", "seeded data of this problem in place of files")
    .option("--fill <kind>", `data of --problem: ${FILL_KINDS.join(", ")}`, oneOf(FILL_KINDS))
    .option("--seed <n>", "seed of made data and of samples", wholeNumber(0), 1)
    .option(
      "--input-size <h,w>",
      "size of bwd-data's result, where stride leaves several",
      parseSizes,
    )
    .option("--filter-size <r,s>", "size of bwd-filter's result, where several fit", parseSizes)
    .option("--stride <h,w>", "default 1", parseSizes)
    .option(
      "--padding <h,w>",
      "zeros around the input: one value, one an axis, or top,left,bottom,right; same for as many as " +
        "outputs of size / stride, rounded up, need (an odd one behind; of same-lower before), valid for none; default 0",
      parsePadding,
    )
    .option("--dilation <h,w>", "step between filter taps; default 1, no dilation", parseSizes)
    .option("--groups <g>", "channel groups; default 1", wholeNumber(1))
    .option("--layout <name>", LAYOUTS.join(", "), oneOf(LAYOUTS, LAYOUT_ALIASES), "nchw" as const)
    .option(
      "--filter-layout <name>",
      `${FILE_FILTER_LAYOUTS.join(", ")} (TensorFlow's and JAX's HWIO); default goes with --layout`,
      oneOf(FILE_FILTER_LAYOUTS, LAYOUT_ALIASES),
    )
    .option(
      "--algorithm <name>",
      algorithmChoices().join(", "),
      oneOf(algorithmChoices()),
      "auto" as const,
    )
    .option("--math <how>", MATH_HELP, oneOf(MATHS), "auto" as const)
    .option(
      "--policy <name>",
      "tile policy in place of the planner's choice: small, or a tile such as 64x32x8_8x8",
      parsePolicy,
    )
    .option(
      "--splits <n>",
      "workgroups that share the depth of a tile, in place of the planner's choice",
      wholeNumber(1),
    )
    .option("--tile <tile>", "Winograd tile in place of the planner's choice: F(4x4,3x3), F(6,3)")
    .option(
      "--flush <products>",
      "products that one accumulator of fused Winograd, WinRS or matrix units sums before they are added to others; 0 for all",
      wholeNumber(0),
    )
    .option(
      "--pair <kernels>",
      "WinRS kernels in place of the planner's choice: a8n3r6,a4n3r2, or exact for the fastest that end at " +
        "the gradient's edge",
    )
    .option(
      "--segments <z>",
      "WinRS segments, as --splits; auto is the planner's choice",
      parseSegments,
    )
    .option("--max-workspace <bytes>", WORKSPACE_HELP, parseWorkspace)
    .option("--device-model <file>", DEVICE_MODEL_HELP, parseDeviceModel)
    .option("--exact", "no Winograd algorithm")
    .option("--without <list>", `optimisations to leave out: ${VARIANT_HELP.without}`, commaList)
    .option("--with <list>", `optimisations to add: ${VARIANT_HELP.with}`, commaList)
    .option("--raster <order>", RASTER_HELP, parseRaster)
    .option("--max-bound-ratio <x>", BOUND_HELP, positiveNumber)
    .option(
      "--dtype <name>",
      "type of the operands; sums are in f32, of i8 in i32: f32, f16, i8 (files of u8 are u8)",
      oneOf(CONV_DTYPES),
      "f32" as const,
    )
    .option("--out-dtype <name>", OUT_DTYPE_HELP, oneOf(CONV_OUT_DTYPES))
    .option(
      "--scale <x|file>",
      "factor of sums that become i8 or u8 (--out-dtype): a number, or a file of one or K",
      numberOrFile,
    )
    .option(
      "--input-zero-point <n|file>",
      "of --dtype i8: the value of X that stands for zero; padding is zero",
      numberOrFile,
    )
    .option(
      "--filter-zero-point <n|file>",
      "of --dtype i8: the value of W that stands for zero, or a file of one or K",
      numberOrFile,
    )
    .option(
      "--output-zero-point <n|file>",
      "of --out-dtype i8 and u8: the result that stands for zero",
      numberOrFile,
    )
    .option("--activation <name>", ACTIVATIONS.join(", "), oneOf(ACTIVATIONS), "none" as const)
    .option("--json", "print one JSON record");
}

/** What `--math` says. */
export const MATH_HELP = "of f32: auto, f32, or f16x3: three products of halves on matrix units, " +
  "and f32 where those are not enough";

/** What `--max-bound-ratio` says. */
export const BOUND_HELP = "no Winograd algorithm whose limit of error / (u sum|a||b|) exceeds x";

/** What `--loss-scale` says. */
export const LOSS_SCALE_HELP =
  "the output's gradient is multiplied by this before it is rounded; so is the result";

/** @throws {TypeError} where a loss scale is given and none of the operations reads an output's gradient. */
export function refuseLossScale(
  doing: string,
  lossScale: number | undefined,
  ops: readonly string[],
) {
  if (lossScale === undefined || ops.some((op) => op !== "fwd")) return;
  throw new InputTypeError(
    `${doing}: --loss-scale is of the output's gradient, which fwd has none of`,
  );
}

/** What `--out-dtype` says. */
export const OUT_DTYPE_HELP =
  "type of the result and the bias, in place of the operands': f32, f16; of i8 operands i32 (the default), i8 or u8";

/** A number, or the path of a file that is none. */
function numberOrFile(text: string): number | string {
  const value = text.trim() === "" ? NaN : Number(text);
  return Number.isNaN(value) ? text : value;
}

/** What the options of {@linkcode problemCommand} parse to. */
export type ProblemOptions = ReturnType<ReturnType<typeof problemCommand>["opts"]>;

/** The parts of a `PlanRequest` that options may say. */
export function planningOptions(options: ProblemOptions) {
  const { math, policy, splits, flush, tile, pair, segments } = options;
  const { maxWorkspace, exact, maxBoundRatio } = options;
  const count = splits ?? (segments === "auto" ? undefined : segments);
  const variant = variantOption(options, { dtypes: [options.dtype] });
  return {
    ...(math === "auto" ? {} : { math }),
    ...(policy === undefined || policy === "auto" ? {} : { policy }),
    ...(count === undefined ? {} : { splits: count }),
    ...(flush === undefined ? {} : { flush }),
    ...deviceOption(options.deviceModel),
    ...(pair === undefined ? {} : { pair }),
    ...(tile === undefined ? {} : { tile }),
    ...maxWorkspace,
    ...(exact === undefined ? {} : { exact }),
    ...(variant === undefined ? {} : { variant }),
    ...(maxBoundRatio === undefined ? {} : { maxBoundRatio }),
  };
}
