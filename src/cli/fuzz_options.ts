import type { CommandUnknownOpts } from "#cli-types";
import { InputTypeError } from "../errors.ts";
import { DATA_KINDS, type DataKind, SPECIAL_VALUES, type SpecialValue } from "../verify/data.ts";
import { type Backend, BACKENDS } from "../gpu/provider.ts";
import { FUZZ_DTYPES, type FuzzDType } from "../verify/problems.ts";
import { ADAPTER_HELP, BACKEND_HELP } from "./gpu_choice.ts";
import { GROUPS } from "./help_groups.ts";
import { KERNEL_HELP, ownWords } from "./own_kernel.ts";
import { SUITE_HELP } from "./suite_option.ts";
import { SHARD_HELP } from "./table_options.ts";
import {
  gather,
  givenOptions,
  oneOf,
  parseShard,
  positiveNumber,
  refuseOptions,
  someOf,
  wholeNumber,
} from "./values.ts";

/** Help on commands that are fuzzed. */
export const FUZZ_NOTES = `
With --run or --worker the program CMD computes made problems, in place of --output. --random draws them; each
case is a row, with a line that repeats it and, of the first that fail, a smaller problem that fails as well.
CMD is split into words as a shell does, and no shell runs it. --run replaces the words {input}, {filter},
{grad_output}, {bias}, {output}, {a}, {b}, {c}, {residual} by paths of .npy files, {problem} by the descriptor,
{op}, and {json} by all of it as JSON. A worker reads that JSON from stdin, a line a problem, and answers each
with a line: {"output": path, "time_us": n}, {"error": text} or {"unsupported": text}.
--arithmetic auto means what goes with the type: f32, f16-f32, bf16-f32, i8.`;

/** Adds what fuzzing takes: {@linkcode FuzzOptions}, told apart from the command's own types, which would grow too large. */
export function addFuzzOptions(command: CommandUnknownOpts): void {
  command
    .optionsGroup(GROUPS.fuzz)
    .option("--run <cmd>", "check the results of this command, which is run for each problem")
    .option("--worker <cmd>", "check those of a program that stays and reads problems from stdin")
    .option("--kernel <file>", `check ${KERNEL_HELP}`)
    .option("--backend <name>", BACKEND_HELP, oneOf(BACKENDS), "wgpu" as const)
    .option("--adapter <name|index>", ADAPTER_HELP)
    .option("--shell", "a shell runs the command")
    .option("--random <n>", "number of random problems; default 100", wholeNumber(1))
    .option(
      "--ranges <words|file>",
      "what random problems are drawn from, such as channels=1:64 filter=1,3,5 axes=2 bias=0:1",
    )
    .option("--suite <file|name>", SUITE_HELP, gather)
    .option("--dtype <list>", `types of operands: ${FUZZ_DTYPES.join(", ")}`, someOf(FUZZ_DTYPES), [
      "f32" as const,
    ])
    .option(
      "--data <list>",
      `kinds of data: ${DATA_KINDS.join(", ")}`,
      someOf(DATA_KINDS),
      [...DATA_KINDS],
    )
    .option(
      "--special <list>",
      `plant such values: ${SPECIAL_VALUES.join(", ")}`,
      someOf(SPECIAL_VALUES),
    )
    .option("--shard <i/n>", SHARD_HELP, parseShard)
    .option("--timeout <seconds>", "what a problem may take", positiveNumber, 60)
    .option("--jobs <n>", "programs that run at once", wholeNumber(1), 1)
    .option("--junit <file>", "write the results as JUnit XML")
    .option("--force", "overwrite existing files");
}

/** What {@linkcode addFuzzOptions} adds. */
export interface FuzzOptions {
  readonly run?: string | undefined;
  readonly worker?: string | undefined;
  readonly kernel?: string | undefined;
  readonly backend: Backend;
  readonly adapter?: string | undefined;
  readonly shell?: boolean | undefined;
  readonly random?: number | undefined;
  readonly ranges?: string | undefined;
  readonly suite?: readonly string[] | undefined;
  readonly dtype: readonly FuzzDType[];
  readonly data: readonly DataKind[];
  readonly special?: readonly SpecialValue[] | undefined;
  readonly shard?: { readonly index: number; readonly count: number } | undefined;
  readonly timeout: number;
  readonly jobs: number;
  readonly junit?: string | undefined;
  readonly force?: boolean | undefined;
}

/** What only fuzzing reads, by attribute. */
const OWN = [
  "shell",
  "random",
  "ranges",
  "suite",
  "dtype",
  "data",
  "special",
  "shard",
  "timeout",
  "jobs",
];

/** What only a kernel has. */
const OF_DEVICE = ["backend", "adapter"];
/** What a kernel's file says, or needs not. */
const OF_PROGRAMS = [
  ...["op", "layout", "filterLayout", "transpose", "activation", "dtype"],
  ...["shell", "timeout", "jobs"],
];

/**
 * What is said of a program to be fuzzed; undefined where there is none.
 *
 * @param files The options of this command that name files or sizes, as attributes.
 * @throws {TypeError} for options that have no effect.
 */
export function fuzzOptions(
  command: CommandUnknownOpts,
  files: readonly string[],
): FuzzOptions | undefined {
  const options = command.opts() as unknown as FuzzOptions;
  const given = (names: readonly string[]) => givenOptions(command, names);
  const { run, worker, kernel } = options;
  const programs = Object.entries({ run, worker, kernel })
    .flatMap(([name, value]) => value === undefined ? [] : [`--${name}`]);
  if (programs.length === 0) {
    const unused = given([...OWN, ...OF_DEVICE, "junit", "force"]);
    refuseOptions("Cannot verify: no --run, --worker or --kernel says what computes", unused);
    return undefined;
  }
  if (programs.length > 1) {
    throw new InputTypeError(`Cannot verify: ${programs.join(" and ")} are too many, expected one`);
  }
  if (kernel === undefined) {
    refuseOptions("Cannot verify: a program computes where it likes", given(OF_DEVICE));
  } else {
    refuseOptions("Cannot verify: the kernel's file says what it computes", given(OF_PROGRAMS));
  }
  const paths = files.filter((name) => typeof command.getOptionValue(name) !== "boolean");
  refuseOptions("Cannot verify: the problems of a program are made", given(paths));
  return kernel === undefined
    ? options
    : { ...options, ...ownWords(kernel, command.name() === "gemm") };
}
