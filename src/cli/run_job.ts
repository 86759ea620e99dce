import type { Plan } from "../algorithms/plan.ts";
import type { CaseOutcome } from "../run/case_record.ts";
import type { Checked } from "../run/check.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import type { CheckMode } from "../run/coverage.ts";
import { type PlanOperands, type PlanResult, runPlan } from "../run/gpu_case.ts";
import { UnsupportedError } from "../errors.ts";
import { type GpuDevice, openDevice } from "../gpu/device.ts";
import type { Backend } from "../gpu/provider.ts";
import type { CaseRecord } from "../report/record.ts";
import type { DType, TypedArrayOf } from "../tensor/dtype.ts";
import { elementCount } from "../tensor/tensor.ts";
import { progress } from "./output.ts";

/** A computation that ran: its record, and its result as it lies in memory. */
export interface Computed<D extends DType> {
  readonly record: CaseRecord;
  readonly result: TypedArrayOf<D>;
}

/** One computation on the GPU, whatever its kind: how its parts are made. */
export interface Job<D extends DType, Operands extends PlanOperands> {
  /** Features the device must have. */
  readonly features?: readonly string[];
  readonly result: PlanResult<D>;
  plan(gpu: GpuDevice): Plan;
  /** The plan of the result without its activation, where the check needs that. */
  linearPlan?(gpu: GpuDevice): Plan | undefined;
  /** The operands in memory. */
  read(): Promise<Operands>;
  /** The operands as streams, for runs that check nothing. */
  chunks(): PlanOperands;
  check(
    operands: Operands,
    result: TypedArrayOf<D>,
    onProgress: (fraction: number) => void,
    made: JobResult<D>,
  ): Promise<Checked>;
  record(device: string, outcome: CaseOutcome): CaseRecord;
}

/** What made a result, beside the operands. */
export interface JobResult<D extends DType> {
  /** How the plan's sums are rounded on the device. */
  readonly arithmetic: PlanArithmetic;
  readonly linear: TypedArrayOf<D> | undefined;
  readonly readSeconds: number;
}

export interface JobOptions {
  readonly backend: Backend;
  readonly check: CheckMode | "none";
  /** Timed runs. */
  readonly runs: number;
  /** Time that the calls of a run fill; one call where absent. */
  readonly fillMs?: number | undefined;
}

/**
 * Plans, runs, times and checks a job on the GPU.
 *
 * @throws {UnsupportedError} where there is no GPU, or it does not suffice.
 */
export async function runJob<D extends DType, Operands extends PlanOperands>(
  job: Job<D, Operands>,
  options: JobOptions,
): Promise<Computed<D>> {
  using gpu = await openGpu(options.backend, job.features);
  return await gpu.guard(() => runOn(gpu, job, options));
}

async function runOn<D extends DType, Operands extends PlanOperands>(
  gpu: GpuDevice,
  job: Job<D, Operands>,
  options: JobOptions,
): Promise<Computed<D>> {
  const plan = job.plan(gpu);
  const operands = options.check === "none" ? undefined : await job.read();
  const protocol = { samples: options.runs, fillMs: options.fillMs ?? 0 };
  const { time, result, readSeconds } = await runPlan(
    gpu,
    plan,
    operands ?? job.chunks(),
    job.result,
    protocol,
  );
  const device = `${gpu.info.adapter} (${options.backend})`;
  if (!operands) return { record: job.record(device, { plan, time, verdict: "none" }), result };
  const linearPlan = job.linearPlan?.(gpu);
  const once = { samples: 1, fillMs: 0 };
  const linear = linearPlan && (await runPlan(gpu, linearPlan, operands, job.result, once)).result;
  const shown = progress();
  const checked = await job.check(
    operands,
    result,
    (fraction) => shown.update(`checking ${(100 * fraction).toFixed(0)} %`),
    { arithmetic: plan.arithmetic, linear, readSeconds },
  );
  shown.done();
  return { record: job.record(device, { plan, time, ...checked }), result };
}

/** Opens the GPU; where there is none, the error says what to do without. */
export async function openGpu(
  backend: Backend,
  features: readonly string[] = [],
): Promise<GpuDevice> {
  try {
    return await openDevice({ backend, features });
  } catch (error) {
    if (!(error instanceof UnsupportedError)) throw error;
    throw new UnsupportedError(`${error.message}; --device cpu computes without a GPU`);
  }
}

/** What a record of the CPU's says beside its verdict. */
export function cpuNote(shape: readonly number[], dtype: DType): string {
  return elementCount(shape) === 0
    ? "the result is empty"
    : `computed by the reference itself, in FP64, and rounded to ${dtype}`;
}
