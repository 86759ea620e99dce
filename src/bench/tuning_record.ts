import { kernelNames } from "../algorithms/cost/tuned.ts";
import type { TuningRecord } from "../report/record.ts";
import type { RanCase } from "./run_group.ts";
import { VERSION } from "../version.ts";
import type { DeviceDescription } from "../report/environment.ts";

/** What a tuning says of a case beside what it ran as. */
type Said =
  & Pick<TuningRecord, "chosen" | "winner">
  & Partial<
    Pick<
      TuningRecord,
      "policy" | "splits" | "balance" | "predicted_gflops" | "multiprocessors" | "budget_ms"
    >
  >;

/** The tuning record of a case that was timed. */
export function tuningRecord(
  { record, plan, group }: Pick<RanCase, "record" | "plan" | "group">,
  { backend, adapter, driver }: DeviceDescription,
  { chosen, winner, ...said }: Said,
): TuningRecord {
  const { problem, op, dtype, outDtype, accumulate, layout, filterLayout, epilogue } =
    group.subject.traits;
  const { algorithm, policy, tile, pair, segments, message } = record;
  return {
    schema: 1,
    kind: "tuning",
    version: VERSION,
    backend,
    device: adapter,
    driver,
    problem,
    op,
    dtype,
    ...(outDtype === undefined ? {} : { out_dtype: outDtype }),
    ...(accumulate === undefined ? {} : { accumulate }),
    layout,
    ...(filterLayout === undefined ? {} : { filter_layout: filterLayout }),
    ...(epilogue === undefined ? {} : { epilogue }),
    algorithm,
    ...(policy === undefined ? {} : { policy }),
    ...(tile === undefined ? {} : { tile }),
    ...(pair === undefined ? {} : { pair }),
    ...(segments === undefined ? {} : { segments }),
    ...said,
    kernel: record.kernel!,
    kernels: kernelNames(plan!),
    time_ms: record.time_ms!,
    gflops: record.gflops!,
    workspace_bytes: record.workspace_bytes!,
    max_bound_ratio: record.accuracy?.max_bound_ratio ?? null,
    chosen,
    winner,
    verdict: record.verdict,
    ...(message === undefined ? {} : { message }),
  };
}
