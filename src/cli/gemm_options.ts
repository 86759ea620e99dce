import { KERNEL_HELP } from "./own_kernel.ts";
import { Command, InvalidArgumentError } from "#cli-types";
import { BALANCES } from "../algorithms/schedule.ts";
import { InputTypeError } from "../errors.ts";
import { PRODUCT_POLICY_NAMES } from "../algorithms/choices.ts";
import { PLAIN_ACTIVATIONS } from "../problem/activations.ts";
import { GEMM_DTYPES, TRANSPOSES } from "../problem/gemm_problem.ts";
import { defaultFill } from "../run/operands.ts";
import type { Planning } from "../run/subject.ts";
import { GROUPS, OPTION } from "./shared_options.ts";
import { RUNS_HELP } from "./compute.ts";
import { BUDGET_HELP, CONV_BUDGET_HELP } from "./learn.ts";
import { planningOf, PROBLEM, variantOption } from "./problem_options.ts";
import { gather, leastNumber, oneOf, parseProductPolicy, someOf, wholeNumber } from "./values.ts";
import { CACHES } from "../run/runner.ts";
import { TABLE } from "./table_options.ts";
import { TUNING_OPTION } from "./tuning_options.ts";
import { TIMINGS_OPTION } from "./print_case.ts";

const EXAMPLES = `
D = activation(alpha * op(A) * op(B) + beta * C + bias) + residual, in row-major matrices. op(A) is m x k,
op(B) is k x n. --transpose tn says that A is stored as k x m. Axes before the last two are a batch; A, B, C
and the residual are broadcast as in numpy.matmul. A bias has one value per column (or row), or one for all.
Paths and number types are those of wgconv conv.
i8 products are exact: C, bias, residual and result are i32, alpha and beta whole numbers. A product that
could exceed 32 bits is refused; --check full computes it and fails only if a result exceeds them.
A line of a suite is m n k [ta tb]; # starts a comment.

Examples:
  wgconv gemm --a a.npy --b b.npy --output y.npy
  wgconv gemm --a x.npy --b w.npy --transpose nt --bias b.npy --activation gelu --output y.npy
  wgconv gemm --a a.npy --b b.npy --c c.npy --alpha 0.5 --beta -1 --output y.npy
  wgconv gemm --size 4096,4096,4096 --backend dawn --math f16x3
  wgconv gemm --size 256,256,65536 --search
  wgconv gemm --suite gemm --jsonl gemm.jsonl --cache hot,cold

Exit 1: an accuracy check failed. The output is still written.`;

/** A command with the options that say which product is meant, and of which matrices. */
export function matrixCommand(name: string) {
  return new Command(name)
    .allowExcessArguments()
    .optionsGroup(GROUPS.common)
    .option("--a <file>", "A, m x k (k x m if transposed)")
    .option("--b <file>", "B, k x n (n x k if transposed)")
    .option("--size <m,n,k>", "sizes; data is generated")
    .option(
      "--transpose <ab>",
      `${TRANSPOSES.join(", ")}: n as above, t transposed; default nn`,
      oneOf(TRANSPOSES),
    )
    .optionsGroup(GROUPS.problem)
    .option("--batch <n>", "number of products of --size", wholeNumber(0))
    .option("--c [file]", "C, m x n; --beta is then 1 by default")
    .option("--alpha <x>", "factor of the product", finite, 1)
    .option("--beta <x>", "factor of C", finite)
    .option("--bias [file]", "values added to every row or column")
    .option(
      "--bias-side <side>",
      "row (m values, one per row) or column (n values); default column",
      oneOf(["row", "column"] as const),
    )
    .option(
      "--activation <name>",
      PLAIN_ACTIVATIONS.join(", "),
      oneOf(PLAIN_ACTIVATIONS),
      "none" as const,
    )
    .option("--residual [file]", "m x n values, added after the activation")
    .optionsGroup(GROUPS.data)
    .option(...PROBLEM.fill)
    .option(...OPTION.seed)
    .option(...OPTION.as);
}

export type MatrixOptions = ReturnType<ReturnType<typeof matrixCommand>["opts"]>;

/** `wgconv gemm` and its options. */
export function gemmOptions() {
  const policies = ["auto", ...PRODUCT_POLICY_NAMES];
  return matrixCommand("gemm")
    .description("Multiply .npy matrices; check the result and time it.")
    .optionsGroup(GROUPS.common)
    .option("--output <file>", "where the result goes; - is stdout")
    .option(
      "--suite <file|name>",
      "file of products, or a built-in suite (bench --list-suites); repeatable",
      gather,
    )
    .option(
      "--dtype <name>",
      `type of A and B: ${GEMM_DTYPES.join(", ")}; the other operands of i8 are i32`,
      oneOf(GEMM_DTYPES),
      "f32" as const,
    )
    .option(...OPTION.json)
    .optionsGroup(GROUPS.types)
    .option(
      "--out-dtype <name>",
      "with --dtype f16 or bf16: type of the result and of what is added to it: theirs, or f32",
      oneOf(["f32", "f16", "bf16"] as const),
    )
    .option(
      "--accumulate <name>",
      "with --dtype f16: type of the sums: f32, or f16 (chains of 32, added up in f32; not on matrix units)",
      oneOf(["f32", "f16"] as const),
      "f32" as const,
    )
    .optionsGroup(GROUPS.measure)
    .option(...PROBLEM.check)
    .option("--runs <n>", `timed samples; ${RUNS_HELP}; 15 for suites and searches`, wholeNumber(1))
    .option(
      "--fill-ms <ms>",
      "milliseconds of calls per sample; default one call, 5 ms for suites and searches",
      wholeNumber(0),
    )
    .option("--search", "time every tile policy and print the ranking")
    .option(...TIMINGS_OPTION)
    .optionsGroup(GROUPS.table)
    .option(...TABLE.jsonl)
    .optionsGroup(GROUPS.suite)
    .option(
      "--cache <list>",
      "hot (the same buffers for every call), cold (copies in turn); default hot",
      someOf(CACHES),
    )
    .option(...TABLE.resume)
    .option(...TABLE.shard)
    .option(...TABLE.columns)
    .option(...TABLE.sort)
    .option(...TABLE.wide)
    .optionsGroup(GROUPS.files)
    .option(...OPTION.force)
    .optionsGroup(GROUPS.device)
    .option(...OPTION.device)
    .option(...OPTION.anyBackend)
    .option(...OPTION.adapter)
    .optionsGroup(GROUPS.kernel)
    .option("--kernel <file>", KERNEL_HELP)
    .option(...PROBLEM.math)
    .option(...TUNING_OPTION)
    .option(
      "--tune-budget <seconds>",
      `${BUDGET_HELP}; ${CONV_BUDGET_HELP}, and in suites`,
      leastNumber(0),
    )
    .option(...PROBLEM.deviceModel)
    .option(
      "--policy <name>",
      `${policies.join(", ")}, or a tile such as 128x32x8_8x4, on matrix units 128x256x32_64x64m`,
      parseProductPolicy,
      "auto",
    )
    .option(...PROBLEM.splits)
    .option(
      "--balance <how>",
      `${
        BALANCES.join(", ")
      }: stream-k splits only the tiles of the last, partial wave (not f16x3)`,
      oneOf(BALANCES),
      "auto" as const,
    )
    .option(...PROBLEM.flush)
    .option(...PROBLEM.raster)
    .option(...PROBLEM.without)
    .option(...PROBLEM.with)
    .addHelpText("after", EXAMPLES);
}

export type GemmOptions = ReturnType<ReturnType<typeof gemmOptions>["opts"]>;

/** What the options choose in place of the planner. */
export function gemmPlanning(options: GemmOptions): Partial<Planning> {
  const { math, flush, dtype, accumulate } = options;
  if (flush !== undefined && dtype !== "f16" && math !== "f16x3") {
    throw new InputTypeError(
      `Cannot multiply: --flush applies to f16 operands and to --math f16x3, these are ${dtype}`,
    );
  }
  return planningOf(
    options,
    variantOption(options, { dtypes: [dtype], accumulate, product: true }),
  );
}

/** The fill of made data. */
export function fillOf({ fill, dtype }: GemmOptions) {
  return fill ?? defaultFill(dtype);
}

function finite(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value)) return value;
  throw new InvalidArgumentError("expected a finite number such as -0.5.");
}
