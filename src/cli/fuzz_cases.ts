/** The problems that a program is fuzzed with. */
import type { CommandUnknownOpts } from "#cli-types";
import { existsSync } from "node:fs";
import { InputTypeError } from "../errors.ts";
import { type Operation, OPERATIONS } from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { type Activation, NO_EPILOGUE } from "../problem/epilogue.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import { parseGemm } from "../problem/gemm_suite.ts";
import { readGemmSuite } from "../bench/suite_files.ts";
import { readText } from "../read_text.ts";
import { randomStream } from "../reference/sample.ts";
import type { Layout } from "../tensor/layout.ts";
import type { FuzzCase } from "../verify/fuzz.ts";
import {
  type Asked,
  convAsked,
  drawNumber,
  parseRanges,
  randomConv,
  randomGemm,
  type Ranges,
} from "../verify/problems.ts";
import type { FuzzOptions } from "./fuzz_options.ts";
import { withOptions } from "./gemm_files.ts";
import type { MatrixOptions } from "./gemm_options.ts";
import { readSuites } from "./suite_option.ts";
import { refuseOptions } from "./values.ts";

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
