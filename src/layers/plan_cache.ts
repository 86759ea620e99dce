import type { Plan } from "../algorithms/plan.ts";
import { expectPlanned, type Planned } from "../algorithms/refusal.ts";
import { algorithmNames } from "../algorithms/registry.ts";
import type { TuningTable } from "../algorithms/request.ts";
import { InputRangeError, InputTypeError } from "../errors.ts";
import { said } from "../expect.ts";
import type { GpuDevice } from "../gpu/gpu_device.ts";
import { gpuPlanning } from "../run/executor.ts";
import type { Planning, Subject } from "../run/subject.ts";
import { entrantsOf, fastestOf, timeWithin } from "../run/time_plans.ts";

const ids = new WeakMap<object, number>();
let nextId = 1;

/** A number of an object, for keys; 0 of none. */
export function idOf(object: object | undefined): number {
  if (object === undefined) return 0;
  let id = ids.get(object);
  if (id === undefined) ids.set(object, id = nextId++);
  return id;
}

/** Plans kept for layers to come, as many as pipelines are. */
const MOST_PLANS = 256;

const caches = new WeakMap<GpuDevice, Map<string, Plan>>();

/** What is planned in one way, as a key. Users can register algorithms, and then `auto` chooses among more. */
function keyOf(asked: unknown, { device, tuning, ...plain }: Partial<Planning>): string {
  return JSON.stringify([asked, plain, idOf(device), idOf(tuning), algorithmNames()]);
}

/**
 * A plan for a device, made once for each way it is asked for.
 *
 * @param asked All that `make` plans, as data.
 * @throws as {@linkcode expectPlanned}.
 */
export function planOn(
  gpu: GpuDevice,
  asked: object,
  planning: Partial<Planning>,
  make: (planning: Planning) => Planned<Plan>,
): Plan {
  let plans = caches.get(gpu);
  if (plans === undefined) caches.set(gpu, plans = new Map());
  const key = keyOf(asked, planning);
  let plan = plans.get(key);
  if (plan === undefined) {
    plan = expectPlanned(make(gpuPlanning(gpu, planning)));
    plans.set(key, plan);
    if (plans.size > MOST_PLANS) plans.delete(plans.keys().next().value!);
  }
  return plan;
}

/** How much time finding the fastest kernels may take. */
export interface TuneOptions {
  /**
   * Seconds in which the first call for a problem on a device may time the best four ways to compute it, compilation included. The
   * fastest is taken, and remembered with the device. 0 where absent: a model chooses.
   */
  readonly tuneBudget?: number;
}

/** What was tried on a device, by classes of problems and by what was asked: the fastest of each, if any. */
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
  const asked = keyOf([subject.asked, subject.traits], planning);
  const before = known.get(asked);
  if (before !== undefined) return { ...planning, tuning: before };
  const entrants = entrantsOf(subject, gpuPlanning(gpu, planning));
  const key = entrants[0]?.key;
  if (key === undefined || planning.tuning?.has(key)) return planning;
  let table = known.get(key);
  if (table === undefined) {
    const fastest = fastestOf(await timeWithin(gpu, subject.traits, entrants, 1000 * seconds));
    table = new Map(fastest === undefined ? [] : [[key, entrants[fastest]!.choice]]);
    known.set(key, table);
  }
  // Plans are kept by the table's identity.
  const tuning = planning.tuning ? new Map([...planning.tuning, ...table]) : table;
  known.set(asked, tuning);
  return { ...planning, tuning };
}
