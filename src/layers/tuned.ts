import type { TuningTable } from "../algorithms/request.ts";
import { InputRangeError, InputTypeError } from "../errors.ts";
import { said } from "../expect.ts";
import type { GpuDevice } from "../gpu/gpu_device.ts";
import { gpuPlanning } from "../run/executor.ts";
import type { Planning, Subject } from "../run/subject.ts";
import { fastestOf, type TimedPlan, timeWithin } from "../run/time_plans.ts";

/** How much time finding the fastest kernels may take. */
export interface TuneOptions {
  /**
   * Seconds in which the first call for a problem on a device may time the best three ways to compute it, compilation included. The
   * fastest is taken, and remembered with the device. 0 where absent: a model chooses.
   */
  readonly tuneBudget?: number;
}

/** Ways that are timed. */
const CANDIDATES = 3;

/** What was tried on a device, by classes of problems: the fastest of each, if any. */
const learned = new WeakMap<GpuDevice, Map<string, TuningTable>>();

/** @throws {TypeError | RangeError} where a budget is none. */
export function expectBudget(doing: string, seconds: unknown): void {
  if (seconds === undefined || typeof seconds === "number" && seconds >= 0) return;
  const kind = typeof seconds === "number" ? InputRangeError : InputTypeError;
  throw new kind(`${doing}: tuneBudget is ${said(seconds)}, expected seconds >= 0`);
}

/** How a subject is to be planned, with what is timed now or was before; what fails drops out. */
export async function tunedPlanning<P extends Partial<Planning>>(
  gpu: GpuDevice,
  subject: Subject,
  planning: P,
  seconds: number,
): Promise<P> {
  let known = learned.get(gpu);
  if (known === undefined) learned.set(gpu, known = new Map());
  const entrants = subject.planner.shortlist(gpuPlanning(gpu, planning), CANDIDATES);
  const key = entrants[0]?.key;
  if (key === undefined || planning.tuning?.has(key)) return planning;
  let table = known.get(key);
  if (table === undefined) {
    // Subjects are of types that kernels know.
    const dtype = subject.traits.dtype as TimedPlan["dtype"];
    const plans = entrants.map(({ plan }) => ({ plan, dtype }));
    const fastest = fastestOf(await timeWithin(gpu, plans, 1000 * seconds));
    table = new Map(fastest === undefined ? [] : [[key, entrants[fastest]!.choice]]);
    known.set(key, table);
  }
  // Plans are kept by the table's identity.
  return { ...planning, tuning: planning.tuning ? new Map([...planning.tuning, ...table]) : table };
}
