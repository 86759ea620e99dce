import type { Axis } from "../../kernels/axes.ts";
import type {
  DepthwiseGroup,
  DepthwiseShape,
  DepthwiseStrides,
} from "../../kernels/depthwise/shape.ts";
import { type ConvProblem, type ConvTensor, tensorShape } from "../../problem/conv_problem.ts";
import { stridesInLayout } from "../../tensor/layout.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { isSoftware, type PlanRequest } from "../request.ts";
import { operandBytes } from "../tensors.ts";

/** Results of a run: enough that a load is worth several products, few enough that all sums stay in registers. */
export const RUN = 8;
/** The same forward, where strides or long filters make a run of vectors reach far: more threads hide more. */
export const SHORT_RUN = { taps: 5, results: 4 };
/** The same where filters are so long that loads of their taps count, and values are single. */
const LONG_RUN = { taps: 7, results: 16 };
/** Taps of a run's axis, and its stride in backward-data, that a kernel's text takes. */
const MOST_TAPS = 64;
const MOST_STRIDE = 16;
/** Neighbouring channels that the threads of a workgroup take: as vectors, one by one, and where they share taps. */
export const LANES = { vectors: 16, single: 32, sources: [8, 4, 2, 1] };
export const THREADS = 256;
/** Threads of a workgroup whose sums go through its memory. */
const SHARING_THREADS = 128;
/** Neighbouring threads that share a run: enough to read a line together. */
const SHARING = { least: 4, most: 8 };
/** Channels that a group has at most to be small. */
export const SMALL_GROUP = 32;

/** A spatial axis that a problem lacks. */
export const UNIT: Axis = {
  places: 1,
  taps: 1,
  size: 1,
  stride: 1,
  padding: 0,
  dilation: 1,
  sourceStride: 0,
};

/** Pads the sizes of a problem's axes at the front to those of three. */
export function threeOf<T>(values: readonly T[], unit: T): T[] {
  return [...Array.from({ length: 3 - values.length }, () => unit), ...values];
}

/** Channels of a group. */
export function groupOf({ problem }: Pick<PlanRequest, "problem">): DepthwiseGroup {
  const { inChannels, outChannels, groups } = problem;
  return { inputs: inChannels / groups, outputs: outChannels / groups };
}

/** How many elements of which kind a load takes. */
export function depthwiseVector(
  { problem, layout }: PlanRequest,
): { readonly vector: DepthwiseShape["vector"]; readonly width: 1 | 4 } {
  const { op, inChannels, outChannels, groups, batch } = problem;
  const single = inChannels === groups && outChannels === groups;
  if (layout === "nhwc" && single && inChannels % 4 === 0) {
    return { vector: "channels", width: 4 };
  }
  const sources = (op === "fwd" ? inChannels : outChannels) / groups;
  if (layout === "nhwc" && op !== "bwd-filter" && sources % 4 === 0) {
    return { vector: "sources", width: 4 };
  }
  if (layout === "chwn" && batch % 4 === 0) return { vector: "images", width: 4 };
  return { vector: "none", width: 1 };
}

/** Strides of input or output in vectors of `width`, of three axes. */
export function depthwiseStrides(
  { problem, layout }: PlanRequest,
  which: ConvTensor,
  width: 1 | 4,
): DepthwiseStrides {
  const strides = stridesInLayout(tensorShape(problem, which), layout);
  // What a vector lies along has stride 1 in both units.
  const [image, channel, ...axes] = strides.map((stride) => stride === 1 ? 1 : stride / width);
  return { image: image!, channel: channel!, axes: threeOf(axes, 0) };
}

/** The problem's axes, three of them, between its output and its input or the other way around. */
export function depthwiseAxes(
  problem: ConvProblem,
  source: DepthwiseStrides,
  back = false,
): Axis[] {
  const rank = problem.filterSize.length;
  const places = back ? problem.inputSize : problem.outputSize;
  const sizes = back ? problem.outputSize : problem.inputSize;
  const own = problem.filterSize.map((taps, d): Axis => ({
    places: places[d]!,
    taps,
    size: sizes[d]!,
    stride: problem.stride[d]!,
    padding: problem.paddingBegin[d]!,
    dilation: problem.dilation[d]!,
    sourceStride: source.axes[3 - rank + d]!,
  }));
  return threeOf(own, UNIT);
}

/** How many threads of a workgroup take neighbouring channels: what leaves the fewest idle. */
export function channelLanes(vectors: number, most: number): number {
  if (vectors <= most) return Math.max(1, vectors);
  let best = most;
  const padded = (lanes: number) => Math.ceil(vectors / lanes) * lanes;
  for (let lanes = most; lanes >= most / 2; lanes--) {
    if (padded(lanes) < padded(best)) best = lanes;
  }
  return best;
}

/** Lanes of a request's channels; 0 where channels do not lie innermost. */
export function lanesOf(request: PlanRequest, channels: number): number {
  if (request.layout !== "nhwc") return 0;
  const { vector, width } = depthwiseVector(request);
  if (vector === "sources") return LANES.sources.find((lanes) => channels % lanes === 0)!;
  return channelLanes(channels / width, width === 4 ? LANES.vectors : LANES.single);
}

/** Threads of a workgroup with so many lanes, of whose threads so many share a run. */
export function threadsOf(lanes: number, sharing: number): number {
  if (lanes === 0) return THREADS;
  const together = lanes * sharing;
  return together * Math.max(1, Math.floor((sharing > 1 ? SHARING_THREADS : THREADS) / together));
}

/**
 * Neighbouring threads that share a run's sources, where a load brings four of them: so they read whole lines, which alone they would
 * read a place each. As many as leave the fewest idle in their last round. A CPU, which runs the threads of a workgroup one after the
 * other, has no lines to share; a filter that is to be packed wants its workspace.
 */
export function sharingOf(request: PlanRequest): number {
  const { problem, maxWorkspaceBytes = Infinity } = request;
  if (isSoftware(request) || depthwiseVector(request).vector !== "sources") return 1;
  const { inputs, outputs } = groupOf(request);
  const vectors = (problem.op === "fwd" ? inputs : outputs) / 4;
  if (vectors < SHARING.least) return 1;
  if (!loadsFours(request) && filterBytes(request) > maxWorkspaceBytes) return 1;
  const taken = (threads: number) => Math.ceil(vectors / threads) * threads;
  let best = SHARING.most;
  for (let threads = best - 1; threads >= SHARING.least; threads--) {
    if (taken(threads) < taken(best)) best = threads;
  }
  return best;
}

/** Whether four sources of a filter's tap lie together. */
export function loadsFours({ problem, filterLayout }: PlanRequest): boolean {
  const [channel, input] = stridesInLayout(tensorShape(problem, "filter"), filterLayout);
  return (problem.op === "fwd" ? input : channel) === 1;
}

/** Bytes of a filter as it lies, and as it is packed. */
export function filterBytes(request: PlanRequest): number {
  return operandBytes(request) * elementCount(tensorShape(request.problem, "filter"));
}

/** A run of about `most` results, a multiple of `unit`, so that runs fill `places` well. */
export function runLength(places: number, most: number, unit: number): number {
  const whole = Math.max(unit, Math.floor(most / unit) * unit);
  const runs = Math.max(1, Math.ceil(places / whole));
  return unit * Math.max(1, Math.ceil(Math.ceil(places / runs) / unit));
}

/** The axis along which a thread makes several results; 3 for none. */
export function runAxis(request: PlanRequest, axes: readonly Axis[]): number {
  const { layout, problem } = request;
  const [, rows, columns] = axes as [Axis, Axis, Axis];
  // Backward-filter takes long filters in pieces.
  const long = ({ taps, stride }: Axis) =>
    (problem.op !== "bwd-filter" && taps > MOST_TAPS) ||
    (problem.op === "bwd-data" && stride > MOST_STRIDE);
  const fitting = (d: number) => long(axes[d]!) ? 3 : d;
  const across = layout === "nchw" || depthwiseVector(request).vector === "sources";
  if (!across) return fitting(columns.taps === 1 && rows.taps > 1 ? 1 : 2);
  // Neighbouring threads take neighbouring columns; where there is one row they would lie apart.
  if (rows.places > 1) return fitting(1);
  return columns.taps > 4 || columns.stride > 1 ? fitting(2) : 3;
}

/** Results that a run may have, or places that backward-filter takes at once. */
export function mostResults(request: PlanRequest, { taps, stride }: Axis, run: number): number {
  const { vector, width: loaded } = depthwiseVector(request);
  const width = vector === "sources" ? 1 : loaded;
  const far = stride > 1 || width === 4 && taps >= SHORT_RUN.taps && taps < LONG_RUN.taps;
  if (request.problem.op === "fwd" && far && !isSoftware(request)) return SHORT_RUN.results;
  const long = width === 1 && taps >= LONG_RUN.taps && request.problem.op !== "bwd-filter";
  // Neighbouring threads' runs lie apart where they go along the innermost axis.
  return request.layout === "nchw" && run === 2 ? RUN / 2 : long ? LONG_RUN.results : RUN;
}
