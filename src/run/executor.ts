import { EMPTY_RESULT } from "../accuracy/gate.ts";
import type { Entrant } from "../algorithms/cost/shortlist.ts";
import { modelOf } from "../algorithms/device/known.ts";
import type { DeviceModel } from "../algorithms/device/model.ts";
import type { BufferRole, Plan } from "../algorithms/plan.ts";
import type { Planned } from "../algorithms/refusal.ts";
import { download, upload } from "../gpu/buffers.ts";
import { nsPerTick } from "../gpu/calibrate.ts";
import { execute, type Execution } from "../gpu/execute.ts";
import type { GpuDevice } from "../gpu/gpu_device.ts";
import {
  compileKernels,
  createPlanBuffers,
  type PlanBuffers,
  type PreparedPlan,
  preparePlan,
} from "../gpu/prepare.ts";
import { CPU_DEVICE, type DeviceDescription } from "../report/environment.ts";
import type { TimeRecord } from "../report/record.ts";
import { fromBf16, toBf16 } from "../tensor/convert.ts";
import {
  arrayConstructor,
  type DType,
  type TensorData,
  type TypedArrayOf,
} from "../tensor/dtype.ts";
import { elementCount } from "../tensor/tensor.ts";
import { fromCanonical } from "./operands.ts";
import type {
  HostData,
  HostOperands,
  OperandData,
  Planning,
  PlanOperands,
  Subject,
  SubjectTensor,
} from "./subject.ts";
import { timeWithin } from "./time_plans.ts";
import { type During, untimed } from "./timeline.ts";
import { type Timed, timedPlan } from "./timing.ts";

/** Uploads the operands, runs the plan `samples` times `repeats` times, each sample timed, and fetches its result. */
export async function runPlan<D extends DType>(
  gpu: GpuDevice,
  plan: Plan,
  operands: PlanOperands,
  result: SubjectTensor<D>,
  samples: number,
  repeats = 1,
): Promise<Execution & { readonly result: TypedArrayOf<D> }> {
  using buffers = createPlanBuffers(gpu, plan);
  await uploadOperands(gpu, plan, buffers, operands);
  using prepared = await preparePlan(gpu, plan, buffers);
  const timings = await execute(gpu, prepared, { samples, repeats });
  return { ...timings, result: await fetchValues(gpu, buffers.get(result.role), result) };
}

/** Fetches the values of a buffer, to memory of their own where no room of their type and size is given. */
export async function fetchValues<D extends DType>(
  gpu: GpuDevice,
  from: GPUBuffer,
  { dtype, shape }: Pick<SubjectTensor<D>, "dtype" | "shape">,
  room?: TypedArrayOf<D>,
): Promise<TypedArrayOf<D>> {
  const count = elementCount(shape);
  const result = room ?? new (arrayConstructor(dtype))(count);
  const stored: TensorData = dtype === "bf16" ? new Uint16Array(count) : result;
  const bytes = new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength);
  await download(gpu, from, 0, bytes.length, bytes);
  if (stored instanceof Uint16Array) fromBf16(stored, result as Float32Array);
  return result;
}

/** Copies every operand to its buffer; chunks go there as they come. */
async function uploadOperands(
  gpu: GpuDevice,
  plan: Plan,
  buffers: Pick<PlanBuffers, "get">,
  operands: PlanOperands,
): Promise<void> {
  for (const [role, data] of Object.entries(operands) as [BufferRole, OperandData][]) {
    const buffer = buffers.get(role);
    const packed = plan.buffers.some((one) => one.role === role && one.dtype === "bf16");
    const stored = (data: TensorData) => packed ? toBf16(data) : data;
    if (typeof data !== "function") {
      upload(gpu, buffer, 0, stored(data));
      continue;
    }
    let offset = 0;
    for await (const chunk of data()) {
      const part = stored(chunk);
      upload(gpu, buffer, offset, part);
      offset += part.byteLength;
    }
  }
}

/** A way to compute a subject that is ready to run. */
export interface Ready extends Timed {
  /** The same without its copies. */
  readonly hot: Timed;
  /** The result of the last run, as it lies in memory; a GPU's in `room`, where that is given. */
  fetch(room?: HostData): Promise<HostData>;
}

/** A subject's operands where they are computed with. */
export interface Loaded extends Disposable {
  /**
   * Makes a plan ready; plans share the operands.
   *
   * @param copies Of all buffers, so that a copy has left the cache when its turn comes.
   * @param result What it leaves; the subject's where absent.
   */
  prepare(plan: Plan | undefined, copies: number, result?: SubjectTensor): Promise<Ready>;
  /** Puts other data in the place of some operands that were given, for what is ready and what comes. */
  replace(operands: PlanOperands): Promise<void>;
}

/** Where subjects are computed. */
export interface Executor extends Disposable {
  /** As records describe it. */
  readonly device: DeviceDescription;
  /** What was measured of it, which plans go by where planning says nothing else. */
  readonly model?: DeviceModel | undefined;
  /** Whether no more of it was measured than its size. */
  readonly isRough?: boolean;
  /** A CPU has no clocks to raise, and less memory. */
  readonly software: boolean;
  /** Whether times are its own clock's, and of cores of its own: what the host computes meanwhile changes none. */
  readonly undisturbed: boolean;
  /** Whether it computes with the reference itself: without plans, in one way. */
  readonly isReference: boolean;
  /** Whether work can still be given to it. */
  readonly isOpen: boolean;
  /** A plan of the subject; none where it takes none. */
  plan(subject: Subject, planning: Partial<Planning>): Planned<Plan | undefined>;
  /** Planning with what a device adds to it, for planners of subjects; nothing where it takes no plans. */
  planning(asked: Partial<Planning>): Planning | undefined;
  /** Times ways to compute a subject within so many milliseconds, as {@linkcode timeWithin}. */
  timeWithin?(
    subject: Subject,
    entrants: readonly Entrant[],
    budgetMs: number,
  ): Promise<(TimeRecord | undefined)[]>;
  /**
   * Compiles a plan's kernels before there is data; what fails is thrown again where the plan is prepared. Nothing to do
   * on a CPU.
   */
  compile?(plan: Plan): Promise<unknown>;
  load(subject: Subject, operands: PlanOperands, during?: During): Loaded;
  /** What an error of work on it comes from. */
  causeOf(error: unknown): Promise<unknown>;
  close(): void;
}

/** Planning for a device: what is not said of it is its own, and what it reaches is what `model` says. */
export function gpuPlanning(
  gpu: GpuDevice,
  planning: Partial<Planning>,
  model?: DeviceModel,
): Planning {
  const device = modelOf(gpu.workgroupsInFlight, planning.device ?? model, gpu.info.adapter);
  const { limits, matrixUnits } = gpu;
  return { limits, ...(matrixUnits && { matrixUnits }), ...planning, device };
}

/**
 * A GPU, which runs plans. It ends with its executor.
 *
 * @param model What was measured of it; what is known of it by its name where absent.
 * @param isRough Whether that is its size alone.
 */
export function gpuExecutor(gpu: GpuDevice, model?: DeviceModel, isRough = false): Executor {
  const { info, limits } = gpu;
  const full = (planning: Partial<Planning>) => gpuPlanning(gpu, planning, model);
  return {
    device: {
      backend: info.backend,
      adapter: info.adapter,
      driver: info.driver ?? "",
      limits: { ...limits },
    },
    model,
    isRough,
    software: info.software,
    undisturbed: gpu.timestamps && !info.software,
    isReference: false,
    get isOpen() {
      return gpu.isOpen;
    },
    plan: (subject, planning) => subject.planner.plan(full(planning)),
    planning: full,
    timeWithin: (subject, entrants, budgetMs) =>
      timeWithin(gpu, subject.traits, entrants, budgetMs),
    compile: (plan) => compileKernels(gpu, plan),
    load: (subject, operands, during) => loadOnGpu(gpu, subject, operands, during),
    causeOf: (error) => gpu.causeOf(error),
    close: () => gpu.close(),
    [Symbol.dispose]: () => gpu.close(),
  };
}

function loadOnGpu(
  gpu: GpuDevice,
  subject: Subject,
  operands: PlanOperands,
  during: During = untimed,
): Loaded {
  const resources = new DisposableStack();
  const shared: Partial<Record<BufferRole, GPUBuffer>>[] = [];
  let loaded: Plan | undefined;
  const buffersOf = async (plan: Plan, copy: number): Promise<PlanBuffers> => {
    const buffers = resources.use(createPlanBuffers(gpu, plan, shared[copy]));
    if (shared[copy] !== undefined) return buffers;
    loaded = plan;
    await uploadOperands(gpu, plan, buffers, operands);
    shared[copy] = Object.fromEntries(
      subject.operands.map(({ role }) => [role, buffers.get(role)]),
    );
    return buffers;
  };
  return {
    async prepare(plan, copies, result = subject.result) {
      const sets: PlanBuffers[] = [];
      for (let copy = 0; copy < copies; copy++) {
        sets.push(await during("upload", () => buffersOf(plan!, copy)));
      }
      const prepared: PreparedPlan[] = [];
      for (const buffers of sets) {
        const one = await during("pipelines", () => preparePlan(gpu, plan!, buffers));
        prepared.push(resources.use(one));
      }
      if (gpu.timestamps) await during("clock", () => nsPerTick(gpu));
      return {
        ...timedPlan(gpu, prepared),
        hot: timedPlan(gpu, prepared.slice(0, 1)),
        fetch: async (room) => {
          const buffer = sets[0]!.get(result.role);
          return await fetchValues(gpu, buffer, result, room) as HostData;
        },
      };
    },
    async replace(operands) {
      const get = (copy: number) => (role: BufferRole) => shared[copy]![role]!;
      for (const copy of shared.keys()) {
        await uploadOperands(gpu, loaded!, { get: get(copy) }, operands);
      }
    },
    [Symbol.dispose]: () => during("close", () => resources.dispose()),
  };
}

/** The CPU: the FP64 reference, rounded to the result's type. Its time is the wall's. */
export function cpuExecutor(onProgress: (fraction: number) => void = () => {}): Executor {
  return {
    device: CPU_DEVICE,
    software: true,
    undisturbed: false,
    isReference: true,
    isOpen: true,
    plan: () => undefined,
    planning: () => undefined,
    load: (subject, operands) => {
      const held = operands as HostOperands;
      return {
        prepare: () => Promise.resolve(onCpu(subject, held, onProgress)),
        replace: (others) => copyOperands(others, held),
        [Symbol.dispose]: () => {},
      };
    },
    causeOf: (error) => Promise.resolve(error),
    close: () => {},
    [Symbol.dispose]: () => {},
  };
}

/** Copies operands over those that are held. */
async function copyOperands(operands: PlanOperands, held: HostOperands): Promise<void> {
  for (const [role, data] of Object.entries(operands) as [keyof HostOperands, OperandData][]) {
    let offset = 0;
    for await (const chunk of typeof data === "function" ? data() : [data]) {
      // Both are of the subject's type, which the types cannot say.
      (held[role] as Float32Array).set(chunk as Float32Array, offset);
      offset += chunk.length;
    }
  }
}

function onCpu(
  subject: Subject,
  operands: HostOperands,
  onProgress: (fraction: number) => void,
): Ready {
  let last: Float64Array = new Float64Array(0);
  // Nothing is compiled before the first run, so none is spent on warming up.
  const run: Timed["run"] = async ({ samples = 1, repeats = 1 }) => {
    const samplesNs: number[] = [];
    for (let sample = 0; sample < samples; sample++) {
      const start = performance.now();
      for (let call = 0; call < repeats; call++) {
        last = await subject.reference.compute(operands, onProgress);
      }
      samplesNs.push((performance.now() - start) * 1e6 / repeats);
    }
    return { samplesNs, clock: "wall" };
  };
  const timed = { copies: 1, run };
  return { ...timed, hot: timed, fetch: () => Promise.resolve(fromCanonical(subject, last)) };
}

/** What a record of the CPU's says beside its verdict. */
export function cpuNote({ shape, result }: Subject): string {
  return shape.includes(0)
    ? EMPTY_RESULT
    : `computed by the reference itself, in FP64, and rounded to ${result.dtype}`;
}
