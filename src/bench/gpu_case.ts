import type { Plan } from "../algorithms/plan.ts";
import { download, upload } from "../gpu/buffers.ts";
import type { GpuDevice } from "../gpu/device.ts";
import { createPlanBuffers, type PlanBuffers, preparePlan } from "../gpu/prepare.ts";
import {
  type ConvProblem,
  type ConvTensor,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import type { TimeRecord } from "../report/record.ts";
import { elementCount } from "../tensor/tensor.ts";
import { timePlan, type TimingProtocol } from "./timing.ts";

/** An operand on its way to the device: whole, or in chunks that follow each other. */
export type OperandData = Float32Array | (() => AsyncIterable<Float32Array>);

/** What a plan reads. */
export type PlanOperands = { readonly [role in ConvTensor | "bias"]?: OperandData };

/** Runs of a plan on the device. */
export interface GpuCase {
  readonly time: TimeRecord;
  /** The result as it lies in memory, of the very buffers that were timed. */
  readonly result: Float32Array<ArrayBuffer>;
}

/**
 * Uploads the operands, times the plan and fetches its result.
 *
 * @param copies Copies of all buffers that calls cycle through, so that a copy has left the cache when its turn comes.
 * @throws as the functions of `src/gpu`.
 */
export async function runPlan(
  gpu: GpuDevice,
  problem: ConvProblem,
  plan: Plan,
  operands: PlanOperands,
  protocol: TimingProtocol,
  copies = 1,
): Promise<GpuCase> {
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
  const which = resultTensor(problem.op);
  const result = new Float32Array(elementCount(tensorShape(problem, which)));
  const bytes = new Uint8Array(result.buffer);
  await download(gpu, sets[0]!.get(which), 0, bytes.length, bytes);
  return { time, result };
}

/** Copies every operand to its buffer; chunks go there as they come. */
async function uploadOperands(
  gpu: GpuDevice,
  buffers: PlanBuffers,
  operands: PlanOperands,
): Promise<void> {
  for (const role of ["input", "filter", "output", "bias"] as const) {
    const data = operands[role];
    if (data === undefined) continue;
    const buffer = buffers.get(role);
    if (data instanceof Float32Array) {
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
