import { InputTypeError } from "../errors.ts";
import { OUTPUT_LAYOUTS, variantNames } from "../kernels/main_loop_variant.ts";
import { Command, InvalidArgumentError } from "#cli-types";
import { BALANCES } from "../algorithms/balance.ts";
import { CHECK_HELP, CHECKS } from "../run/coverage.ts";
import { defaultFill } from "../run/operands.ts";
import { CACHES } from "../run/run_group.ts";
import type { Planning } from "../run/subject.ts";
import { BACKENDS } from "../gpu/provider.ts";
import { MATRIX_POLICY_NAMES } from "../kernels/matrix_policies.ts";
import { GEMV, TILE_POLICIES } from "../kernels/policy.ts";
import { ACTIVATIONS } from "../problem/epilogue.ts";
import { GEMM_DTYPES, TRANSPOSES } from "../problem/gemm_problem.ts";
import { MATHS } from "../algorithms/math.ts";
import { FILL_KINDS } from "../tensor/fill.ts";
import { AS_DTYPES, AS_HELP } from "./as_option.ts";
import { DEVICE_MODEL_HELP, deviceOption, parseDeviceModel } from "./device_model.ts";
import {
  commaList,
  gather,
  oneOf,
  parseProductPolicy,
  parseShard,
  someOf,
  wholeNumber,
} from "./values.ts";
import { COLUMNS_HELP, parseColumns, parseSort, SORT_HELP, WIDE_HELP } from "./table_options.ts";
import { RUNS_HELP } from "./compute.ts";
import { ADAPTER_HELP } from "./gpu_choice.ts";
import { FORCE_HELP } from "./outputs.ts";
import { TIMINGS_HELP } from "./timings.ts";
import { MATH_HELP } from "./problem_options.ts";
import { parseRaster, RASTER_HELP, variantOption } from "./variant_options.ts";

/** Optimisations of the main loop that are on, or off, where nothing is said. */
const named = (on: boolean) =>
  variantNames(on).filter((name) =>
    name !== "half-transforms" && !Object.hasOwn(OUTPUT_LAYOUTS, name)
  );
const ON = named(true);
const OFF = named(false);

const EXAMPLES = `
D = activation(alpha·op(A)·op(B) + beta·C + bias) + residual. Matrices are row-major; op(A) is m x k,
op(B) k x n; --transpose tn says that A is stored k x m. Axes before the last two are a batch of
products, broadcast as numpy.matmul does it: one matrix may meet a batch of others. C and the residual are
broadcast to the result, a bias is one value a column (or row), or one for all.
Any dtype is read and rounded to --dtype. A path may be file.npz:member, or - for stdin and stdout.
With --size, --bias-side, --residual and a --beta other than 0 make operands of their own.
i8 products are exact: C, bias, residual and result are i32, alpha and beta whole numbers. What may
exceed 32 bits is refused: where |alpha|·max|a|·max|b|·k + |beta|·max|C| + max|bias| + max|residual| is
2^31 or more, --check full computes every result and lets the product pass if none exceeds them.
f16 needs the device's shader-f16, f64 its shader-f64.
A line of a suite is m n k [ta tb]; # starts a comment. Suites run as those of wgconv bench: resumed,
in parts, hot and cold in turn.

Examples:
  wgconv gemm --a a.npy --b b.npy --output y.npy
  wgconv gemm --a x.npy --b w.npy --transpose nt --bias b.npy --activation gelu --output y.npy
  wgconv gemm --a a.npy --b b.npy --c c.npy --alpha 0.5 --beta -1 --output y.npy --check full
  wgconv gemm --size 4096,4096,4096 --runs 15 --json
  wgconv gemm --size 256,256,65536 --search
  wgconv gemm --size 2048,2048,2048 --balance stream-k
  wgconv gemm --size 4096,4096,4096 --dtype i8
  wgconv gemm --size 4096,4096,4096 --backend dawn --math f16x3
  wgconv gemm --size 4096,4096,4096 --without prefetch --with double-buffer
  wgconv gemm --suite gemm --jsonl gemm.jsonl
  wgconv gemm --suite gemm --jsonl gemm.jsonl --resume --shard 1/2 --cache hot,cold

Exit 1 says that an accuracy check failed; the output is written nonetheless.`;

/** `wgconv gemm` and its options. */
export function gemmOptions() {
  const policies = ["auto", GEMV, ...TILE_POLICIES.map(({ name }) => name), ...MATRIX_POLICY_NAMES];
  return new Command("gemm")
    .allowExcessArguments()
    .description("Multiply matrices: run it on the GPU, check it against FP64, time it, write it.")
    .option("--a <file>", "A, m x k, or k x m where it is transposed")
    .option("--b <file>", "B, k x n, or n x k where it is transposed")
    .option("--c [file]", "C, m x n; beta is 1 where it is not given")
    .option("--bias [file]", "values added to every row or column")
    .option(
      "--bias-side <side>",
      "row: m values, one a row; column: n values; default column",
      oneOf(["row", "column"] as const),
    )
    .option("--residual [file]", "m x n, added after the activation")
    .option("--as <name>", AS_HELP, oneOf(AS_DTYPES))
    .option("--output <file>", "where the result goes; - is stdout")
    .option("--size <m,n,k>", "seeded data of this size in place of files")
    .option("--batch <n>", "products of --size", wholeNumber(0))
    .option(
      "--suite <file|name>",
      "products: a file of one a line, or a name of bench --list-suites; may be given several times",
      gather,
    )
    .option("--fill <kind>", `made data: ${FILL_KINDS.join(", ")}`, oneOf(FILL_KINDS))
    .option("--seed <n>", "seed of made data and of samples", wholeNumber(0), 1)
    .option("--transpose <ab>", `${TRANSPOSES.join(", ")}; default nn`, oneOf(TRANSPOSES))
    .option("--alpha <x>", "factor of the product", finite, 1)
    .option("--beta <x>", "factor of C", finite)
    .option("--activation <name>", ACTIVATIONS.join(", "), oneOf(ACTIVATIONS), "none" as const)
    .option(
      "--dtype <name>",
      `of A and B: ${GEMM_DTYPES.join(", ")}; the others' of i8 is i32`,
      oneOf(GEMM_DTYPES),
      "f32" as const,
    )
    .option(
      "--out-dtype <name>",
      "of f16: type of the result, and of what is added to it: f32, f16",
      oneOf(["f32", "f16"] as const),
    )
    .option(
      "--accumulate <name>",
      "of f16: f32, or f16 in short chains that are added to f32, never on matrix units",
      oneOf(["f32", "f16"] as const),
      "f32" as const,
    )
    .option("--math <how>", MATH_HELP, oneOf(MATHS), "auto" as const)
    .option(
      "--policy <name>",
      `${policies.join(", ")}, or a tile such as 128x32x8_8x4, on matrix units 128x256x32_64x64m`,
      parseProductPolicy,
      "auto",
    )
    .option("--without <list>", `optimisations to leave out: ${ON.join(", ")}`, commaList)
    .option(
      "--with <list>",
      `optimisations to add: ${OFF.join(", ")} (of f16; thin products have it)`,
      commaList,
    )
    .option("--raster <order>", RASTER_HELP, parseRaster)
    .option("--splits <n>", "workgroups that share the depth of a tile", wholeNumber(1))
    .option(
      "--flush <products>",
      "of f16 and f16x3 on matrix units: products that one accumulator sums at most before they are added to others, 0 for all; " +
        "default 3072 where results are f32, 16384 where they are f16, of f16x3 a quarter of the depth, 512 to 2048",
      wholeNumber(0),
    )
    .option("--device-model <file>", DEVICE_MODEL_HELP, parseDeviceModel)
    .option(
      "--balance <how>",
      `${BALANCES.join(", ")}: stream-k splits the tiles beyond whole waves only (none of f16x3)`,
      oneOf(BALANCES),
      "auto" as const,
    )
    .option("--search", "time every policy and print the ranking")
    .option("--check <how>", CHECK_HELP, oneOf(CHECKS), "auto" as const)
    .option("--runs <n>", `timed samples; ${RUNS_HELP}, of suites and searches 15`, wholeNumber(1))
    .option(
      "--fill-ms <ms>",
      "time that the calls of a sample fill; default one call, of suites and searches 5",
      wholeNumber(0),
    )
    .option(
      "--device <name>",
      "gpu, or cpu: the reference, no driver needed",
      oneOf(["gpu", "cpu"] as const),
      "gpu" as const,
    )
    .option("--backend <name>", "WebGPU of wgpu or dawn", oneOf(BACKENDS), "wgpu" as const)
    .option("--adapter <index|name>", ADAPTER_HELP)
    .option(
      "--cache <list>",
      "of suites: hot, the same buffers for every call; cold, copies in turn; default hot",
      someOf(CACHES),
    )
    .option("--shard <i/n>", "of suites: the i-th of n parts, from 1", parseShard)
    .option("--resume", "of suites: go on where the run that wrote the --jsonl file ended")
    .option("--jsonl <file>", "where the records of a suite or search go; - is stdout")
    .option("--columns <list>", `of --suite: ${COLUMNS_HELP}`, parseColumns)
    .option("--sort <column>", `of --suite: ${SORT_HELP}`, parseSort)
    .option("--wide", `of --suite: ${WIDE_HELP}`)
    .option("--timings", TIMINGS_HELP)
    .option("--json", "print JSON records")
    .option("--force", FORCE_HELP)
    .addHelpText("after", EXAMPLES);
}

/** What the options of `wgconv gemm` parse to. */
export type GemmOptions = ReturnType<ReturnType<typeof gemmOptions>["opts"]>;

/** What the options choose in place of the planner. */
export function gemmPlanning(options: GemmOptions): Partial<Planning> {
  const { math, policy, splits, flush, balance } = options;
  const { dtype, accumulate } = options;
  if (flush !== undefined && dtype !== "f16" && math !== "f16x3") {
    throw new InputTypeError(
      `Cannot multiply: --flush is of f16 operands and of --math f16x3, these are ${dtype}`,
    );
  }
  const variant = variantOption(options, { dtypes: [dtype], accumulate, product: true });
  return {
    ...(math === "auto" ? {} : { math }),
    ...(policy === "auto" ? {} : { policy }),
    ...(splits === undefined ? {} : { splits }),
    ...(flush === undefined ? {} : { flush }),
    ...deviceOption(options.deviceModel),
    ...(balance === "auto" ? {} : { balance }),
    ...(variant === undefined ? {} : { variant }),
  };
}

/** The fill of made data. */
export function fillOf({ fill, dtype }: GemmOptions) {
  return fill ?? defaultFill(dtype);
}

/** Parses a finite number such as -0.5. */
function finite(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value)) return value;
  throw new InvalidArgumentError("expected a finite number such as -0.5.");
}
