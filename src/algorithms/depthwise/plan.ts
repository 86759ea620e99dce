import { canonicalName } from "../../kernels/kernel.ts";
import { depthwiseKernel, depthwiseWorkgroups } from "../../kernels/depthwise.ts";
import type { SizeMode } from "../../kernels/module.ts";
import { packedElements, type PackShape } from "../../kernels/pack_strided.ts";
import {
  directFlops,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../../problem/conv_problem.ts";
import { stridesInLayout } from "../../tensor/layout.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { convEpilogue } from "../conv_epilogue.ts";
import { packFilterPass } from "../conv_product.ts";
import { pass } from "../passes.ts";
import type { Plan } from "../plan.ts";
import type { Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { problemBuffers, resultElements } from "../tensors.ts";
import { depthwiseShape, packsFilter } from "./geometry.ts";

/** Plans one filter a channel. */
export function planDepthwise(request: PlanRequest, mode: SizeMode): Planned<Plan> {
  const { problem, limits } = request;
  const shape = depthwiseShape(request, mode);
  const { buffers, tensor, bias, elements } = problemBuffers(request);
  const packing = packsFilter(request) ? packShape(request) : undefined;
  const filter = packing === undefined
    ? tensor.filter
    : buffers.add("packed filter", "workspace", packedElements(packing), elements.storage);
  const source = operandTensors(problem.op)[0];
  const result = resultTensor(problem.op);
  const kernel = depthwiseKernel(shape, convEpilogue(request), {
    source: buffers.split(tensor[source]),
    filter: buffers.split(filter),
    result: buffers.split(tensor[result]),
  });
  const multiplications = directFlops(problem) / 2;
  const places = { ...tensor, filter, bias };
  const main = pass(kernel, buffers, places, depthwiseWorkgroups(shape), limits, multiplications);
  const pack = packing === undefined ? [] : packFilterPass(
    packing,
    mode,
    buffers,
    { unpacked: tensor.filter, packed: filter },
    limits,
    elements.storage,
  );
  return buffers.plan({
    kernel: canonicalName(kernel.kernel),
    algorithm: "depthwise",
    passes: resultElements(problem) === 0 ? [] : [...pack, main],
    multiplications,
    arithmetic: { inner: "taps" },
    notes: [
      `one filter a channel, a thread makes ${shape.results} results` +
      (shape.vector === "none" ? "" : ` of four ${shape.vector}`),
    ],
  });
}

/** The filter as [taps][channels]. */
function packShape({ problem, filterLayout }: PlanRequest): PackShape {
  const shape = tensorShape(problem, "filter");
  const taps = elementCount(problem.filterSize);
  const strides = stridesInLayout(shape, filterLayout);
  return {
    groups: 1,
    rows: problem.outChannels,
    paddedRows: problem.outChannels,
    channels: 1,
    paddedChannels: 1,
    taps,
    depth: taps,
    groupStride: 0,
    rowStride: strides[0]!,
    channelStride: 0,
    tapStride: strides.at(-1)!,
  };
}
