import type { Axis, Direction } from "../kernels/axes.ts";
import type { DepthwiseGroup } from "../kernels/depthwise/shape.ts";
import type { PackShape } from "../kernels/pack.ts";
import type { TilePolicy } from "../kernels/policy.ts";
import { type ConvProblem, type ConvTensor, tensorShape } from "../problem/conv_problem.ts";
import { type FilterLayout, type Layout, stridesInLayout } from "../tensor/layout.ts";
import { elementCount } from "../tensor/tensor.ts";
import type { PlanRequest } from "./request.ts";

/**
 * The spatial axes between places of a result, the filter's taps and a source: forward the output's places and the input,
 * backward the input's and the output's gradient.
 *
 * @param strides The source's, in elements, per canonical axis.
 */
export function spatialAxes(
  { inputSize, outputSize, filterSize, stride, paddingBegin, dilation }: ConvProblem,
  direction: Direction,
  strides: readonly number[],
): Axis[] {
  const [places, sizes] = direction === "forward"
    ? [outputSize, inputSize]
    : [inputSize, outputSize];
  return places.map((_, d): Axis => ({
    places: places[d]!,
    taps: filterSize[d]!,
    size: sizes[d]!,
    stride: stride[d]!,
    padding: paddingBegin[d]!,
    dilation: dilation[d]!,
    sourceStride: strides[2 + d]!,
  }));
}

/** Depth up to which storing four images one by one takes longer than loading four at once saves. */
const SHALLOW_DEPTH = 64;

/**
 * Whether columns of a forward product count single images although four could be interleaved: with few products
 * a result and images' places together, four places leave in one store. An H200 then does cv7 of the im2win paper
 * (27 products a result) in 0.64 (fused) to 0.78 of the time.
 */
export function prefersSingleImages({ problem, layout }: PlanRequest): boolean {
  const depth = problem.inChannels / problem.groups * elementCount(problem.filterSize);
  return problem.op === "fwd" && layout === "nchw" && depth <= SHALLOW_DEPTH &&
    elementCount(problem.outputSize) % 4 === 0;
}

/** Rows up to which loads of a gathered product take longer than its stores. */
const NARROW_ROWS = 16;

/**
 * Whether columns of a gathered product of so many rows a group take four images at one place in turn, where places alone would
 * leave one by one: neighbouring threads then store neighbouring places. Few rows rather load neighbours. Of nine layers with
 * odd numbers of places an H200 then does eight forward in 0.57 to 1.00 of the time.
 */
export function prefersInterleaved(
  { problem, layout }: Pick<PlanRequest, "problem" | "layout">,
  rows: number,
): boolean {
  const places = problem.op === "fwd" ? problem.outputSize : problem.inputSize;
  return layout === "nchw" && problem.batch % 4 === 0 && elementCount(places) % 4 !== 0 &&
    rows > NARROW_ROWS;
}

export function ceilTo(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}

/**
 * Strides in elements of one of the problem's tensors, or of the one that it is a part of, per canonical axis. A part of a filter's
 * gradient lies in one piece.
 */
export function stridesOf(
  { problem, within = problem, layout: images, filterLayout }: PlanRequest,
  which: ConvTensor,
  layout: Layout | FilterLayout = which === "filter" ? filterLayout : images,
): number[] {
  const whole = problem.op === "bwd-filter" && which === "filter" ? problem : within;
  return stridesInLayout(tensorShape(whole, which), layout);
}

export function groupOf({ problem }: Pick<PlanRequest, "problem">): DepthwiseGroup {
  const { inChannels, outChannels, groups } = problem;
  return { inputs: inChannels / groups, outputs: outChannels / groups };
}

/** How a filter is packed whose outputs, or backward whose inputs, are rows of a product. */
export function packedShape(
  request: PlanRequest,
  policy: TilePolicy,
  paddedChannels: number,
): PackShape {
  const { problem } = request;
  const { inputs, outputs } = groupOf(request);
  const [out, input, ...taps] = stridesOf(request, "filter") as [number, number];
  const forward = problem.op === "fwd";
  const count = elementCount(problem.filterSize);
  const rows = forward ? outputs : inputs;
  return {
    groups: problem.groups,
    rows,
    paddedRows: ceilTo(rows, policy.rows),
    channels: forward ? inputs : outputs,
    paddedChannels,
    taps: count,
    depth: ceilTo(count * paddedChannels, policy.depth),
    strides: {
      group: outputs * out,
      row: forward ? out : input,
      channel: forward ? input : out,
      tap: taps.at(-1)!,
    },
  };
}
