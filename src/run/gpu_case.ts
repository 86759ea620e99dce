import type { BufferRole, Plan } from "../algorithms/plan.ts";
import { download, upload } from "../gpu/buffers.ts";
import type { GpuDevice } from "../gpu/device.ts";
import { execute, type Execution } from "../gpu/execute.ts";
import { createPlanBuffers, type PlanBuffers, preparePlan } from "../gpu/prepare.ts";
import { type ConvProblem, resultTensor, tensorShape } from "../problem/conv_problem.ts";
import type { TimeRecord } from "../report/record.ts";
import {
  arrayConstructor,
  type DType,
  type TensorData,
  type TypedArrayOf,
} from "../tensor/dtype.ts";
import { elementCount } from "../tensor/tensor.ts";
import { timePlan, type TimingProtocol } from "./timing.ts";

/** An operand on its way to the device: whole, or in chunks that follow each other. */
export type OperandData = TensorData | (() => AsyncIterable<TensorData>);

/** What a plan reads. */
export type PlanOperands = { readonly [role in BufferRole]?: OperandData };

/** What is fetched when a plan has run: `count` elements. */
export interface PlanResult<D extends DType> {
  readonly role: BufferRole;
  readonly dtype: D;
  readonly count: number;
}

/** Runs of a plan on the device. */
export interface GpuCase<D extends DType> {
  readonly time: TimeRecord;
  /** The result as it lies in memory, of the very buffers that were timed. */
  readonly result: TypedArrayOf<D>;
  /** Wall time of fetching it. */
  readonly readSeconds: number;
}

/** What a convolution's plan leaves. */
export function convResult(problem: ConvProblem): PlanResult<"f32"> {
  const role = resultTensor(problem.op);
  return { role, dtype: "f32", count: elementCount(tensorShape(problem, role)) };
}

/**
 * Uploads the operands, times the plan and fetches its result.
 *
 * @param copies Copies of all buffers that calls cycle through, so that a copy has left the cache when its turn comes.
 * @throws as the functions of `src/gpu`.
 */
export async function runPlan<D extends DType>(
  gpu: GpuDevice,
  plan: Plan,
  operands: PlanOperands,
  result: PlanResult<D>,
  protocol: TimingProtocol,
  copies = 1,
): Promise<GpuCase<D>> {
  using resources = new DisposableStack();
  const sets: PlanBuffers[] = [];
  for (let copy = 0; copy < copies; copy++) {
    const buffers = resources.use(createPlanBuffers(gpu, plan));
    await uploadOperands(gpu, buffers, operands);
    sets.push(buffers);
  }
  const prepared = [];
  for (const buffers of sets) prepared.push(resources.use(await preparePlan(gpu, plan, buffers)));
  const time = await timePlan(gpu, prepared, protocol);
  const start = performance.now();
  const fetched = await fetchResult(gpu, sets[0]!, result);
  return { time, result: fetched, readSeconds: (performance.now() - start) / 1000 };
}

/** Uploads the operands, runs the plan `samples` times, each timed, and fetches its result. */
export async function runOnce<D extends DType>(
  gpu: GpuDevice,
  plan: Plan,
  operands: PlanOperands,
  result: PlanResult<D>,
  samples: number,
): Promise<Execution & { readonly result: TypedArrayOf<D> }> {
  using buffers = createPlanBuffers(gpu, plan);
  await uploadOperands(gpu, buffers, operands);
  using prepared = await preparePlan(gpu, plan, buffers);
  const timings = await execute(gpu, prepared, { samples });
  return { ...timings, result: await fetchResult(gpu, buffers, result) };
}

/** Fetches a plan's result. */
export async function fetchResult<D extends DType>(
  gpu: GpuDevice,
  buffers: PlanBuffers,
  { role, dtype, count }: PlanResult<D>,
): Promise<TypedArrayOf<D>> {
  const result = new (arrayConstructor(dtype))(count);
  const bytes = new Uint8Array(result.buffer);
  await download(gpu, buffers.get(role), 0, bytes.length, bytes);
  return result;
}

/** Copies every operand to its buffer; chunks go there as they come. */
export async function uploadOperands(
  gpu: GpuDevice,
  buffers: PlanBuffers,
  operands: PlanOperands,
): Promise<void> {
  for (const [role, data] of Object.entries(operands) as [BufferRole, OperandData][]) {
    const buffer = buffers.get(role);
    if (typeof data !== "function") {
      upload(gpu, buffer, 0, data);
      continue;
    }
    let offset = 0;
    for await (const chunk of data()) {
      upload(gpu, buffer, offset, chunk);
      offset += chunk.byteLength;
    }
  }
}
