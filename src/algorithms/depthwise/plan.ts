import { sumOf } from "../../elements/elements.ts";
import type { Scalar } from "../../elements/scalar.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { depthwiseChain, depthwiseKernel } from "../../kernels/depthwise/convolve.ts";
import { depthwiseFilterChains, depthwiseFilterKernel } from "../../kernels/depthwise/gradient.ts";
import type { DepthwiseGroup } from "../../kernels/depthwise/shape.ts";
import { NO_STEPS } from "../../kernels/epilogue.ts";
import type { SizeMode } from "../../kernels/module.ts";
import { packedElements, type PackShape } from "../../kernels/pack.ts";
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
import { pass, reducePass } from "../passes.ts";
import type { Plan } from "../plan.ts";
import type { Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { problemBuffers, reduceShape, resultElements } from "../tensors.ts";
import { depthwiseVector } from "./geometry.ts";
import { depthwiseFilterShape } from "./gradient.ts";
import { depthwiseShape, packsFilter } from "./results.ts";

/** Plans one filter a channel, small groups, or results of few channels. */
export function planDepthwise(request: PlanRequest, mode: SizeMode): Planned<Plan> {
  return request.problem.op === "bwd-filter"
    ? planGradient(request, mode)
    : planResults(request, mode);
}

/** Forward and backward-data: one kernel, one that orders long filters, and one that sums segments. */
function planResults(request: PlanRequest, mode: SizeMode): Planned<Plan> {
  const { problem, limits } = request;
  const shape = depthwiseShape(request, mode);
  const { buffers, tensor, bias, elements } = problemBuffers(request);
  const packing = packsFilter(request) ? packShape(request) : undefined;
  const filter = packing === undefined
    ? tensor.filter
    : buffers.add("packed filter", "workspace", packedElements(packing), elements.storage);
  const source = operandTensors(problem.op)[0];
  const result = resultTensor(problem.op);
  const { segments } = shape;
  const partials = segments > 1
    ? buffers.add(
      "partial results",
      "workspace",
      segments * resultElements(problem),
      sumOf(elements),
    )
    : tensor[result];
  const epilogue = convEpilogue(request);
  const kernel = depthwiseKernel(shape, segments > 1 ? NO_STEPS : epilogue, {
    source: buffers.split(tensor[source]),
    filter: buffers.split(filter),
    result: buffers.split(partials),
  });
  const multiplications = directFlops(problem) / 2;
  const places = { ...tensor, filter, bias, [result]: partials };
  const main = pass(kernel, buffers, places, limits, multiplications);
  const pack = packing === undefined ? [] : packFilterPass(
    packing,
    mode,
    buffers,
    { unpacked: tensor.filter, packed: filter },
    limits,
    elements.storage,
  );
  const sum = segments === 1 ? [] : [
    reducePass(
      reduceShape(request, segments),
      mode,
      epilogue,
      buffers,
      { partials, result: tensor[result], bias },
      limits,
      elements.result,
    ),
  ];
  const inSegment = depthwiseChain(shape);
  return buffers.plan({
    kernel: canonicalName(kernel.kernel),
    algorithm: "depthwise",
    passes: resultElements(problem) === 0 ? [] : [...pack, main, ...sum],
    multiplications,
    arithmetic: {
      inner: "taps",
      ...(segments * shape.sharing === 1 ? {} : { chain: inSegment, segment: inSegment }),
    },
    notes: [
      `${groupsText(shape)}, a thread makes ${shape.results} ${
        shape.results === 1 ? "result" : "results"
      }` +
      (shape.own > 1 ? ` of each of ${shape.own} channels` : "") +
      (shape.vector === "none" || shape.vector === "sources" ? "" : ` of four ${shape.vector}`) +
      (shape.sharing === 1 ? "" : `, ${shape.sharing} threads share what it sums`) +
      (segments === 1 ? "" : `, ${segments} segments of the channels that it sums`),
    ],
  });
}

/** Backward-filter: sums of segments, and one or two passes that add them up. */
function planGradient(request: PlanRequest, mode: SizeMode): Planned<Plan> {
  const { problem, limits } = request;
  const { shape, grouped } = depthwiseFilterShape(request, mode);
  const { segments, taps, walkers } = shape;
  const { buffers, tensor, elements: types } = problemBuffers(request);
  const elements = resultElements(problem);
  const sum = sumOf(types);
  const partials = segments > 1
    ? buffers.add("partial results", "workspace", segments * elements, sum)
    : tensor.filter;
  const kernel = depthwiseFilterKernel(shape, {
    input: buffers.split(tensor.input),
    output: buffers.split(tensor.output),
    filter: buffers.split(partials),
  });
  const multiplications = directFlops(problem) / 2;
  const places = { ...tensor, filter: partials };
  const passes = [pass(kernel, buffers, places, limits, multiplications)];
  const reduce = (partials: number, splits: number, parts: number, result: number, of: Scalar) => {
    const flat = reduceShape(request, splits);
    const all = { ...flat, elements: parts * elements, rowStride: parts * elements };
    const shape = { ...all, columns: parts * elements };
    const places = { partials, result };
    return reducePass(shape, mode, NO_STEPS, buffers, places, limits, of);
  };
  if (grouped > 1) {
    const sums = buffers.add("sums of segments", "workspace", grouped * elements, sum);
    passes.push(reduce(partials, segments / grouped, grouped, sums, sum));
    passes.push(reduce(sums, grouped, 1, tensor.filter, types.result));
  } else if (segments > 1) {
    passes.push(reduce(partials, segments, 1, tensor.filter, types.result));
  }
  return buffers.plan({
    kernel: canonicalName(kernel.kernel),
    algorithm: "depthwise",
    passes: elements === 0 ? [] : passes,
    multiplications,
    arithmetic: depthwiseFilterChains(shape),
    notes: [
      `${groupsText(shape)}, a thread sums ${taps.run * taps.others} taps` +
      (shape.vector === "none" ? "" : ` of four ${shape.vector}`) +
      `, a workgroup ${walkers} threads, ${segments} segments of the places`,
    ],
  });
}

/** What the groups are, for notes. */
function groupsText({ group: { inputs, outputs } }: { readonly group: DepthwiseGroup }): string {
  return inputs === 1 ? "one filter a channel" : `${inputs} to ${outputs} channels a group`;
}

/** The filter as [taps][channels], or where a load brings four sources as [taps][channels that are not summed][sources]. */
function packShape(request: PlanRequest): PackShape {
  const { problem, filterLayout } = request;
  const taps = elementCount(problem.filterSize);
  const inputs = problem.inChannels / problem.groups;
  const strides = stridesInLayout(tensorShape(problem, "filter"), filterLayout);
  const outputSide = [problem.outChannels, strides[0]!] as const;
  const inputSide = [inputs, strides[1]!] as const;
  const [rows, channels] = depthwiseVector(request).vector === "sources" && problem.op === "fwd"
    ? [inputSide, outputSide]
    : [outputSide, inputSide];
  return {
    groups: 1,
    rows: rows[0],
    paddedRows: rows[0],
    channels: channels[0],
    paddedChannels: channels[0],
    taps,
    depth: taps * channels[0],
    groupStride: 0,
    rowStride: rows[1],
    channelStride: channels[0] === 1 ? 0 : channels[1],
    tapStride: strides.at(-1)!,
  };
}
