import type { Plan } from "../algorithms/plan.ts";
import { expectPlanned, type Planned } from "../algorithms/refusal.ts";
import { algorithmNames } from "../algorithms/registry.ts";
import type { GpuDevice } from "../gpu/gpu_device.ts";
import { gpuPlanning } from "../run/executor.ts";
import type { Planning } from "../run/subject.ts";

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
  const { device, tuning, ...plain } = planning;
  // Users can register algorithms, and then `auto` chooses among more.
  const key = JSON.stringify([asked, plain, idOf(device), idOf(tuning), algorithmNames()]);
  let plan = plans.get(key);
  if (plan === undefined) {
    plan = expectPlanned(make(gpuPlanning(gpu, planning)));
    plans.set(key, plan);
    if (plans.size > MOST_PLANS) plans.delete(plans.keys().next().value!);
  }
  return plan;
}
