/**
 * Which kernels of records today's plans would still run, without a GPU:
 *   deno run -A bench/replan.ts [-v] RECORDS...
 * A line a file: its cases, planned anew with what their record says was asked for, and how many of them run another kernel
 * now. What was forced (a tile policy, a variant of the main loop) is counted apart, where its kernel is not what the
 * planner takes. -v lists every kernel that changed. Peers' records have no kernels and do not count.
 */
import { parseArgs } from "node:util";
import { isRefusal } from "../src/algorithms/refusal.ts";
import { MATHS } from "../src/algorithms/math.ts";
import type { AlgorithmName } from "../src/algorithms/names.ts";
import { CONV_DTYPES, CONV_OUT_DTYPES, OPERATIONS } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { GEMM_DTYPES } from "../src/problem/gemm_problem.ts";
import { parseGemm } from "../src/problem/gemm_suite.ts";
import { parseWorkspace } from "../src/cli/values.ts";
import { parseRecords } from "../src/report/read_records.ts";
import type { ReadCase, ReadEnvironment } from "../src/report/record_schema.ts";
import { convSubject } from "../src/run/conv_subject.ts";
import { gemmSubject } from "../src/run/gemm_subject.ts";
import type { Planning, Subject } from "../src/run/subject.ts";
import { FILTER_LAYOUTS, filterLayoutFor, LAYOUTS } from "../src/tensor/layout.ts";
import { H200_LIMITS, H200_UNITS } from "./h200_limits.ts";

/** Options of a run that take a choice from the planner. */
const FORCING = ["policy", "splits", "balance", "flush", "variant", "device-model"];

/** A case of a record and what the same request runs today. */
export interface Replanned {
  /** Problem, operation, layout, types and algorithm as asked for. */
  readonly name: string;
  /** Whether something was chosen in the planner's place. */
  readonly forced: boolean;
  /** As it was measured. */
  readonly kernel: string;
  /** What is planned now; why not, where it is refused. */
  readonly today: string;
}

/**
 * The cases of records that ran a kernel, planned again on an H200.
 *
 * @throws {RangeError} for a case that says what this does not know how to ask for.
 */
export function replanRecords(text: string, source: string): Replanned[] {
  let environment: ReadEnvironment | undefined;
  return text.split(/(?<=\n)/).flatMap((line) => {
    // Files of results hold lines of other benchmarks, too.
    if (!/"kind": ?"(?:case|environment)"/.test(line)) return [];
    const { environments, cases } = parseRecords(line, source);
    environment = environments[0] ?? environment;
    return cases.flatMap((one) => replan(one, environment));
  });
}

const plans = new Map<string, string>();

function replan(one: ReadCase, environment: ReadEnvironment | undefined): Replanned[] {
  const { kernel } = one;
  if (kernel === null || kernel === "") return [];
  const { options = {}, backend = "wgpu" } = environment ?? {};
  const { algorithm, requested = algorithm, policy, tile, pair } = one;
  const { problem, op, layout, dtype, out_dtype, accumulate, epilogue } = one;
  const asked = { requested, tile, pair, workspace: options["max-workspace"] };
  const { exact, "max-bound-ratio": ratio, math: asMath } = options;
  const math = asMath === undefined ? undefined : wordOf("math", `${asMath}`, MATHS);
  const name = [problem, op, layout, dtype, out_dtype, accumulate, epilogue, requested, tile, pair]
    .filter((part) => part !== undefined && part !== "").join(" ");
  const key = JSON.stringify([name, asked, exact, ratio, math, backend, one.filter_layout]);
  let today = plans.get(key);
  if (today === undefined) {
    const planned = subjectOf(one).plan(
      {
        algorithm: requested as AlgorithmName | "auto",
        ...(tile === undefined ? {} : { tile }),
        ...(pair === undefined ? {} : { pair }),
        ...(asked.workspace === undefined ? {} : parseWorkspace(`${asked.workspace}`)),
        ...(exact === undefined ? {} : { exact: true }),
        ...(ratio === undefined ? {} : { maxBoundRatio: Number(ratio) }),
        ...(math === undefined ? {} : { math }),
        limits: H200_LIMITS,
        ...(backend === "dawn" ? { matrixUnits: H200_UNITS } : {}),
      } satisfies Planning,
    );
    today = isRefusal(planned) ? `refused: ${planned.text}` : planned.kernel;
    plans.set(key, today);
  }
  const forced = policy !== undefined || FORCING.some((option) => options[option] !== undefined);
  return [{ name, forced, kernel, today }];
}

/** One of a list of words, which a record may also leave out. */
function wordOf<T extends string>(
  what: string,
  word: string | undefined,
  words: readonly T[],
): T | undefined {
  const found = words.find((one) => one === word);
  if (word !== undefined && found === undefined) {
    throw new RangeError(`Cannot plan a record again: ${what} "${word}" is unknown`);
  }
  return found;
}

function subjectOf(record: ReadCase): Subject {
  const { problem, epilogue } = record;
  const outDtype = wordOf("out_dtype", record.out_dtype, CONV_OUT_DTYPES);
  if (record.op === "gemm") {
    if (epilogue !== undefined) wordOf("epilogue", epilogue, []);
    const dtype = wordOf("dtype", record.dtype, GEMM_DTYPES)!;
    const accumulate = wordOf("accumulate", record.accumulate, ["f16", "f32"]) ?? "f32";
    const out = wordOf("out_dtype", outDtype, ["f16", "f32"]);
    return gemmSubject(parseGemm(problem), { dtype, accumulate, outDtype: out });
  }
  const layout = wordOf("layout", record.layout, LAYOUTS)!;
  const scale = epilogue === undefined ? undefined : /^scale (\S+)$/.exec(epilogue)?.[1];
  if (epilogue !== undefined && scale === undefined) wordOf("epilogue", epilogue, []);
  return convSubject({
    problem: parseDescriptor(problem, wordOf("op", record.op, OPERATIONS)!),
    layout,
    filterLayout: wordOf("filter_layout", record.filter_layout, FILTER_LAYOUTS) ??
      filterLayoutFor(layout),
    dtype: wordOf("dtype", record.dtype, CONV_DTYPES)!,
    outDtype,
    ...(scale === undefined ? {} : { epilogue: { ...NO_EPILOGUE, scale: Number(scale) } }),
  });
}

if (import.meta.main) {
  const { values: { verbose }, positionals } = parseArgs({
    options: { verbose: { type: "boolean", short: "v" } },
    allowPositionals: true,
  });
  for (const path of positionals) {
    const all = replanRecords(Deno.readTextFileSync(path), path);
    const [forced, asked] = [true, false].map((kind) => all.filter((one) => one.forced === kind));
    const changed = (some: readonly Replanned[]) =>
      some.filter(({ kernel, today }) => kernel !== today);
    const own = changed(asked!);
    const other = changed(forced!).length;
    console.log(
      `${path}: ${own.length} of ${asked!.length} plan otherwise now` +
        (forced!.length === 0
          ? ""
          : `; ${other} of ${forced!.length} forced kernels are no choice`),
    );
    for (const { name, kernel, today } of verbose ? own : []) {
      console.log(`  ${name}\n    ${kernel}\n    ${today}`);
    }
  }
}
