import type { BufferRole, Plan } from "../algorithms/plan.ts";
import { DeviceError, UnsupportedError } from "../errors.ts";
import { createBuffer, fillBuffer, upload } from "../gpu/buffers.ts";
import type { GpuDevice } from "../gpu/gpu_device.ts";
import { createPlanBuffers, preparePlan } from "../gpu/prepare.ts";
import type { TimeRecord } from "../report/record.ts";
import { dtypeBytes } from "../tensor/dtype.ts";
import { fillTensor } from "../tensor/fill.ts";
import { type Timed, timedPlan, timeRivals, type TimingProtocol } from "./timing.ts";

export interface TimedPlan {
  readonly plan: Plan;
  readonly dtype: "f32" | "f16" | "i8" | "f64";
}

/** What a plan took, or why it did not run, as a sentence. */
export type PlanTime = TimeRecord | string;

/** Bytes of random data that buffers repeat: zeros would draw less power than real data, and run at higher clocks. */
const RANDOM_BYTES = 4 << 20;
/** Plans are timed in turn as long as their buffers fit into this together. */
const TOGETHER_BYTES = 1 << 30;
const MOST_TOGETHER = 8;

/** Where plans are made ready on random data, which they share; its buffers go with it. */
export interface PlanRoom extends Disposable {
  /**
   * A plan that is ready to run; a sentence where the device cannot run it.
   *
   * @throws {DeviceError} where the device is lost.
   */
  prepare(plan: TimedPlan): Promise<Timed | string>;
  /** Frees what plans were made ready on. */
  clear(): void;
}

/**
 * Room for plans on a device.
 *
 * @param shared Whether all plans are of one problem, and share its tensors.
 */
export function planRoom(gpu: GpuDevice, shared = false): PlanRoom {
  const made = new Map<TimedPlan["dtype"], GPUBuffer>();
  let given: Partial<Record<BufferRole, GPUBuffer>> = {};
  let resources = new DisposableStack();
  const clear = () => {
    resources.dispose();
    resources = new DisposableStack();
    given = {};
  };
  return {
    prepare: (one) => prepared(gpu, one, made, resources, shared ? given : {}),
    clear,
    [Symbol.dispose]() {
      clear();
      made.forEach((buffer) => buffer.destroy());
    },
  };
}

/**
 * Times plans on random data, neighbours in turn. What a device cannot run has a sentence in place of a time.
 *
 * @throws {DeviceError} where the device is lost.
 */
export async function timePlans(
  gpu: GpuDevice,
  plans: readonly TimedPlan[],
  protocol: TimingProtocol,
  onDone: (count: number) => void = () => {},
): Promise<PlanTime[]> {
  using room = planRoom(gpu);
  const times: PlanTime[] = [];
  for (const some of together(plans)) {
    room.clear();
    const ready: (Timed | string)[] = [];
    for (const one of some) ready.push(await room.prepare(one));
    const timed = ready.filter((one) => typeof one !== "string");
    const taken = (await timeRivals(gpu.info.software, timed, protocol)).values();
    times.push(...ready.map((one) => typeof one === "string" ? one : taken.next().value!));
    onDone(times.length);
  }
  return times;
}

async function prepared(
  gpu: GpuDevice,
  { plan, dtype }: TimedPlan,
  made: Map<TimedPlan["dtype"], GPUBuffer>,
  resources: DisposableStack,
  given: Partial<Record<BufferRole, GPUBuffer>>,
): Promise<Timed | string> {
  try {
    const large = plan.buffers.filter(({ role, bytes }) => (given[role]?.size ?? 0) >= bytes);
    const shared = Object.fromEntries(large.map(({ role }) => [role, given[role]!]));
    const buffers = resources.use(createPlanBuffers(gpu, plan, shared));
    const random = randomBuffer(gpu, made, dtype);
    plan.buffers.forEach(({ role }, place) => {
      if (role === "workspace" || role in shared) return;
      given[role] ??= buffers.buffers[place]!;
      fillBuffer(gpu, buffers.buffers[place]!, random);
    });
    return timedPlan(gpu, [resources.use(await preparePlan(gpu, plan, buffers))]);
  } catch (error) {
    const cause = await gpu.causeOf(error);
    const refused = cause instanceof DeviceError || cause instanceof UnsupportedError;
    if (!refused || !gpu.isOpen) throw cause;
    return cause.message;
  }
}

function randomBuffer(
  gpu: GpuDevice,
  made: Map<TimedPlan["dtype"], GPUBuffer>,
  dtype: TimedPlan["dtype"],
): GPUBuffer {
  const known = made.get(dtype);
  if (known !== undefined) return known;
  const count = RANDOM_BYTES / dtypeBytes(dtype);
  const { data } = fillTensor(dtype, [count], dtype === "i8" ? "int8" : "uniform11", 1);
  const buffer = createBuffer(gpu, RANDOM_BYTES, "random data");
  made.set(dtype, buffer);
  upload(gpu, buffer, 0, data);
  return buffer;
}

/** Neighbours that the device can hold together. */
function together(plans: readonly TimedPlan[]): TimedPlan[][] {
  const parts: TimedPlan[][] = [];
  let used = Infinity;
  for (const one of plans) {
    const bytes = one.plan.buffers.reduce((sum, buffer) => sum + buffer.bytes, 0);
    const last = parts.at(-1);
    if (last === undefined || used + bytes > TOGETHER_BYTES || last.length >= MOST_TOGETHER) {
      parts.push([one]);
      used = bytes;
    } else {
      last.push(one);
      used += bytes;
    }
  }
  return parts;
}
