import { H200_LIMITS } from "./h200_limits.ts";
import { algorithmNames } from "../src/algorithms/registry.ts";
import type { AlgorithmName } from "../src/algorithms/names.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { CONV_DTYPES, OPERATIONS } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { parseRecords, type RecordSet } from "../src/report/read_records.ts";
import { filterLayoutFor, LAYOUTS } from "../src/tensor/layout.ts";

/** A case that a record timed, as a request for `auto` and what ran. */
export interface MeasuredCase {
  readonly name: string;
  readonly request: PlanRequest;
  readonly algorithm: AlgorithmName;
  readonly tile?: string;
  readonly kernel: string;
  readonly ms: number;
}

/** The timed cases of files of records. */
export function measuredCases(paths: readonly string[]): MeasuredCase[] {
  return paths
    .flatMap((path) => parseRecords(Deno.readTextFileSync(path), path).cases)
    .flatMap((record) => measuredCase(record) ?? []);
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
    name: `${problem.name ?? record.problem} ${op} ${layout}`,
    request: {
      problem,
      dtype,
      layout,
      filterLayout: filterLayoutFor(layout),
      epilogue: NO_EPILOGUE,
      algorithm: "auto",
      limits: H200_LIMITS,
    },
    algorithm,
    kernel: record.kernel ?? "",
    ms,
    ...(record.tile === undefined ? {} : { tile: record.tile }),
  };
}
