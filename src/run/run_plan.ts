import type { BufferRole, Plan } from "../algorithms/plan.ts";
import { download, upload } from "../gpu/buffers.ts";
import type { GpuDevice } from "../gpu/device.ts";
import { execute, type Execution } from "../gpu/execute.ts";
import { createPlanBuffers, type PlanBuffers, preparePlan } from "../gpu/prepare.ts";
import { arrayConstructor, type DType, type TypedArrayOf } from "../tensor/dtype.ts";
import { elementCount } from "../tensor/tensor.ts";
import type { OperandData, PlanOperands, SubjectTensor } from "./subject.ts";

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
  await uploadOperands(gpu, buffers, operands);
  using prepared = await preparePlan(gpu, plan, buffers);
  const timings = await execute(gpu, prepared, { samples, repeats });
  return { ...timings, result: await fetchResult(gpu, buffers, result) };
}

/** Fetches a plan's result, to memory of its own where no room of its type and size is given. */
export async function fetchResult<D extends DType>(
  gpu: GpuDevice,
  buffers: PlanBuffers,
  { role, dtype, shape }: SubjectTensor<D>,
  room?: TypedArrayOf<D>,
): Promise<TypedArrayOf<D>> {
  const result = room ?? new (arrayConstructor(dtype))(elementCount(shape));
  const bytes = new Uint8Array(result.buffer, result.byteOffset, result.byteLength);
  await download(gpu, buffers.get(role), 0, bytes.length, bytes);
  return result;
}

/** Copies every operand to its buffer; chunks go there as they come. */
export async function uploadOperands(
  gpu: GpuDevice,
  buffers: Pick<PlanBuffers, "get">,
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
