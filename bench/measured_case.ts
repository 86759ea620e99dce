import { H200_LIMITS } from "./h200_limits.ts";
import type { AlgorithmName } from "../src/algorithms/plan.ts";
import { algorithmNames } from "../src/algorithms/registry.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { CONV_DTYPES, type ConvProblem, OPERATIONS } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { parseRecords, type RecordSet } from "../src/report/read_records.ts";
import { filterLayoutFor, type Layout, LAYOUTS } from "../src/tensor/layout.ts";

/** A case that a record timed, as a request for `auto` and what ran. */
export interface MeasuredCase {
  readonly name: string;
  readonly request: PlanRequest;
  readonly algorithm: AlgorithmName;
  readonly tile?: string;
  readonly kernel: string;
  readonly ms: number;
}

/** What `auto` is asked on an H200. */
export function autoRequest(
  problem: ConvProblem,
  layout: Layout,
  dtype: PlanRequest["dtype"] = "f32",
): PlanRequest {
  return {
    problem,
    dtype,
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: NO_EPILOGUE,
    algorithm: "auto",
    limits: H200_LIMITS,
  };
}

/** The timed cases of files of records, or of what `bench/planner_unmeasured.ts` wrote. */
export function measuredCases(paths: readonly string[]): MeasuredCase[] {
  return paths.flatMap((path) => {
    const text = Deno.readTextFileSync(path);
    return text.startsWith('{"name"')
      ? text.trim().split("\n").flatMap((line) => plannedCases(JSON.parse(line)))
      : parseRecords(text, path).cases.flatMap((record) => measuredCase(record) ?? []);
  });
}

/** A line of `bench/planner_unmeasured.ts`: what the plans of a case took, by their kernels' names. */
function plannedCases({ problem: text, op, layout, ms, kernels, dtype = "f32" }: {
  readonly problem: string;
  readonly op: typeof OPERATIONS[number];
  readonly layout: Layout;
  readonly dtype?: PlanRequest["dtype"];
  readonly ms: readonly (number | string)[];
  readonly kernels: readonly string[];
}): MeasuredCase[] {
  const problem = parseDescriptor(text, op);
  const name = `${problem.name ?? text} ${op} ${layout} ${dtype}`;
  const request = autoRequest(problem, layout, dtype);
  return kernels.flatMap((kernel, place) => {
    const taken = ms[place];
    const algorithm = algorithmNames().toSorted((a, b) => b.length - a.length)
      .find((one) => kernel.startsWith(one.replaceAll("-", "_")));
    if (algorithm === undefined || typeof taken !== "number") return [];
    const [, n, r] = /_(?:m|a\d+n)([\dx]+)r([\dx]+)_/.exec(kernel) ?? [];
    const tile = n === undefined || algorithm === "winrs" ? {} : { tile: `F(${n},${r})` };
    return [{ name, request, algorithm, kernel, ms: taken, ...tile }];
  });
}

function measuredCase(record: RecordSet["cases"][number]): MeasuredCase | undefined {
  const op = OPERATIONS.find((one) => one === record.op);
  const layout = LAYOUTS.find((one) => one === record.layout);
  const dtype = CONV_DTYPES.find((one) => one === record.dtype);
  const algorithm = algorithmNames().find((one) => one === record.algorithm);
  const ms = record.time_ms?.median;
  if (op === undefined || layout === undefined || dtype === undefined) return undefined;
  if (algorithm === undefined || ms === undefined) return undefined;
  const problem = parseDescriptor(record.problem, op);
  return {
    name: `${problem.name ?? record.problem} ${op} ${layout} ${dtype}`,
    request: autoRequest(problem, layout, dtype),
    algorithm,
    kernel: record.kernel ?? "",
    ms,
    ...(record.tile === undefined ? {} : { tile: record.tile }),
  };
}

/** How good choices are: each one's time over the best that was measured of its case. */
interface Goodness {
  /** A choice is good up to this ratio, and this share of the choices is to be good. */
  readonly good: number;
  readonly share: number;
  /** No ratio may be larger. */
  readonly worst: number;
}

/** What choices are held to on GPUs. */
export const GPU_GOODNESS: Goodness = { good: 1.05, share: 0.9, worst: 1.15 };

/** Says how many choices are good. @returns Whether they are good enough. */
export function printGoodness(
  ratios: readonly number[],
  { good, share, worst }: Goodness,
): boolean {
  const count = ratios.filter((ratio) => ratio <= good).length;
  const largest = Math.max(...ratios);
  console.log(
    `${count} of ${ratios.length} choices (${(100 * count / ratios.length).toFixed(1)} %) within ` +
      `${good} times the best, the worst ${largest.toFixed(3)}`,
  );
  return count >= share * ratios.length && largest <= worst;
}

/** Root mean square; 0 of nothing. */
export function rms(errors: readonly number[]): number {
  return Math.sqrt(errors.reduce((sum, one) => sum + one * one, 0) / Math.max(1, errors.length));
}
