import type { CommandUnknownOpts } from "#cli-types";
import { existsSync } from "node:fs";
import { readGemmSuite } from "../bench/suite_files.ts";
import { InputTypeError } from "../errors.ts";
import type { Backend } from "../gpu/provider.ts";
import { type Operation, OPERATIONS } from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import type { Activation } from "../problem/activations.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import { parseGemm } from "../problem/gemm_suite.ts";
import { readText } from "../read_text.ts";
import { randomStream } from "../reference/sample.ts";
import type { Layout } from "../tensor/layout.ts";
import { DATA_KINDS, type DataKind, SPECIAL_VALUES, type SpecialValue } from "../verify/data.ts";
import type { FuzzCase } from "../verify/fuzz.ts";
import {
  type Asked,
  convAsked,
  drawNumber,
  FUZZ_DTYPES,
  type FuzzDType,
  parseRanges,
  randomConv,
  randomGemm,
  type Ranges,
} from "../verify/problems.ts";
import { withOptions } from "./gemm_files.ts";
import type { MatrixOptions } from "./gemm_options.ts";
import { GROUPS, OPTION } from "./shared_options.ts";
import { KERNEL_HELP, ownWords } from "./own_kernel.ts";
import { readSuites, SUITE } from "./suite_option.ts";
import { positiveNumber, someOf, wholeNumber } from "./values.ts";
import { givenOptions, refuseOptions } from "./refuse.ts";
import { TABLE } from "./table_options.ts";

const RANDOM = 100;

/** What a convolution's cases are made of. */
type ConvOptions = FuzzOptions & {
  readonly op: Operation;
  readonly layout: Layout;
  readonly activation: Activation;
  readonly problem?: string | undefined;
  readonly seed: number;
};

/** The seed of one of many cases: of no other run's. */
function seedOf(seed: number, index: number): number {
  return (seed % 2 ** 32) * 2 ** 20 + index;
}

function rangesOf({ ranges = "", run }: FuzzOptions): Ranges {
  const text = ranges.includes("=") || ranges === "" ? ranges : readText(ranges);
  return parseRanges(`${run?.includes("{bias}") ? "bias=1 " : ""}${text}`);
}

/** Problems with each type and kind of data. */
function eachData(
  asked: readonly Asked[],
  { dtype, data, special = [] }: FuzzOptions,
  seed: number,
) {
  return asked.flatMap((one) =>
    dtype.flatMap((type) =>
      data.map((kind): FuzzCase => ({ asked: one, dtype: type, data: kind, special, seed }))
    )
  );
}

/** Random problems, each of the next type and kind of data. */
function randomCases(
  draw: (random: () => number, index: number) => Asked,
  { random: count = RANDOM, dtype, data, special = [] }: FuzzOptions,
  base: number,
): FuzzCase[] {
  return Array.from({ length: count }, (_, index): FuzzCase => {
    const seed = seedOf(base, index);
    const random = randomStream(
      Math.floor(randomStream(base % 2 ** 32)() * 2 ** 32) + index * 7919,
    );
    const asked = draw(random, index);
    const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)]!;
    return { asked, dtype: dtype[index % dtype.length]!, data: pick(data), special, seed };
  });
}

/** The cases of `wgconv verify`, and the files that were read for them. */
export async function convCases(
  options: ConvOptions,
  command: CommandUnknownOpts,
): Promise<{ cases: readonly FuzzCase[]; files: readonly string[] }> {
  const { layout, activation, problem, suite, seed, run, kernel } = options;
  refuseTwo({ problem, suite, random: options.random });
  const ranges = rangesOf(options);
  const gradients = run === undefined || /\{(grad_output|json)\}/.test(run);
  const ops = command.getOptionValueSource("op") === "cli" || (problem ?? kernel) !== undefined
    ? [options.op]
    : gradients
    ? OPERATIONS
    : ["fwd" as const];
  if (problem === undefined && suite === undefined) {
    const draw = (random: () => number, index: number) =>
      randomConv(random, ranges, { op: ops[index % ops.length]!, layout, activation });
    return { cases: randomCases(draw, options, seed), files: files(options) };
  }
  const bias = drawNumber(ranges.bias, randomStream(seed)) > 0;
  const epilogue = (op: Operation) => op === "fwd" ? { bias, activation } : NO_EPILOGUE;
  const read = await readSuites({ suite }, command);
  const listed = problem === undefined
    ? read.problems.flatMap(({ run: own, ...one }) =>
      (own?.ops ?? ops).map((op) => ({ ...one, op }))
    )
    : [parseDescriptor(problem, options.op)];
  const asked = listed.map((one) => convAsked(one, { layout, epilogue: epilogue(one.op) }));
  return { cases: eachData(asked, options, seed), files: [...files(options), ...read.files] };
}

/** Those of `wgconv verify gemm`. */
export function gemmCases(
  options: FuzzOptions & MatrixOptions,
): { cases: readonly FuzzCase[]; files: readonly string[] } {
  const { size, suite, seed } = options;
  refuseTwo({ size, suite, random: options.random });
  const complete = (problem: GemmProblem): Asked => {
    const transpose = options.transpose ?? problem.transpose;
    const own = { ...options, transpose, batch: options.batch ?? problem.batch };
    return {
      gemm: withOptions(problem, { ...own, dtype: options.dtype.includes("i8") ? "i8" : "f32" }),
    };
  };
  if (size === undefined && suite === undefined) {
    const ranges = rangesOf(options);
    const draw = (random: () => number) => complete(randomGemm(random, ranges));
    return { cases: randomCases(draw, options, seed), files: files(options) };
  }
  const listed = size === undefined
    ? (suite ?? []).flatMap((path) => readGemmSuite(path))
    : [parseGemm(size.replaceAll(/[,x](?=\d)/g, " "))];
  return {
    cases: eachData(listed.map(complete), options, seed),
    files: [...files(options), ...(suite ?? []).filter((path) => existsSync(path))],
  };
}

function files({ ranges = "" }: FuzzOptions): string[] {
  return ranges.includes("=") || ranges === "" ? [] : [ranges];
}

function refuseTwo(given: Readonly<Record<string, unknown>>): void {
  const names = Object.entries(given).filter(([, value]) => value !== undefined);
  if (names.length < 2) return;
  refuseOptions(
    `Cannot verify: --${names[0]![0]} says the problems`,
    Object.fromEntries(names.slice(1)),
  );
}

/** @throws {TypeError} where there is none. */
export function expectCases(cases: readonly FuzzCase[]): void {
  if (cases.length > 0) return;
  throw new InputTypeError("Cannot verify: there is no problem, the suites hold none of this kind");
}

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
    .option(...OPTION.backend)
    .option(...OPTION.adapter)
    .option("--shell", "a shell runs the command")
    .option("--random <n>", "number of random problems; default 100", wholeNumber(1))
    .option(
      "--ranges <words|file>",
      "what random problems are drawn from, such as channels=1:64 filter=1,3,5 axes=2 bias=0:1",
    )
    .option(...SUITE.suite)
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
    .option(...TABLE.shard)
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
