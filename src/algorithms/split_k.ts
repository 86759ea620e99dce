import type { SizedKernel, SizeMode } from "../kernels/module.ts";
import { foldGrid } from "../kernels/module.ts";
import { reduceSplitsKernel, reduceThreads } from "../kernels/reduce_splits.ts";
import { resultTensor, tensorShape } from "../problem/conv_problem.ts";
import { stridesInLayout } from "../tensor/layout.ts";
import type { Pass, PlanBinding } from "./plan.ts";
import type { PlanRequest } from "./request.ts";
import { type PlanBuffers, resultElements } from "./tensors.ts";

/** A pass from a kernel and what it binds, in the kernel's order. */
export function pass(
  { kernel, uniforms }: SizedKernel,
  bindings: readonly (readonly PlanBinding[])[],
  grid: Pass["grid"],
  multiplications = 0,
): Pass {
  return {
    kernel,
    bindings: bindings.flat(),
    ...(uniforms === undefined ? {} : { uniforms }),
    grid,
    multiplications,
  };
}

/** The pass that sums the partial results of `splits` and finishes them. */
export function reducePass(
  request: PlanRequest,
  mode: SizeMode,
  buffers: PlanBuffers,
  places: { partials: number; result: number; bias: number | undefined },
  splits: number,
): Pass {
  const { problem, epilogue } = request;
  const which = resultTensor(problem.op);
  const strides = stridesInLayout(
    tensorShape(problem, which),
    which === "filter" ? request.filterLayout : request.layout,
  );
  const shape = {
    elements: resultElements(problem),
    splits,
    channels: problem.outChannels,
    channelStride: strides[1]!,
  };
  const kernel = reduceSplitsKernel(shape, mode, epilogue, {
    partials: buffers.split(places.partials),
    output: buffers.split(places.result),
  });
  return pass(
    kernel,
    [
      buffers.bindings(places.partials),
      buffers.bindings(places.result),
      places.bias === undefined ? [] : buffers.bindings(places.bias),
    ],
    foldGrid(
      Math.ceil(reduceThreads(shape, epilogue) / 256),
      request.limits.maxComputeWorkgroupsPerDimension,
    ),
  );
}
