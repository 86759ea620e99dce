import { elementsOf } from "../../elements/elements.ts";
import { fullVariant } from "../../kernels/main_loop_variant.ts";
import type { FilterAxis, FilterTransformShape } from "../../kernels/slices/filter_transform.ts";
import { paddedChannels, type SliceGeometry } from "../../kernels/slices/geometry.ts";
import { type ConvTensor, tensorShape } from "../../problem/conv_problem.ts";
import { stridesInLayout } from "../../tensor/layout.ts";
import { formatTile } from "../../winograd/tile.ts";
import type { PlanRequest } from "../request.ts";

/** The tiles of one kernel along a tiled axis: `count` of F(n,r) from place `first` on. */
export interface TileRun {
  readonly n: number;
  readonly r: number;
  readonly first: number;
  readonly count: number;
}

/** The tile of one kernel's runs: "F(2x2,3x3)". */
export function runTile(runs: readonly TileRun[]): string {
  return formatTile({ n: runs.map(({ n }) => n), r: runs.map(({ r }) => r) });
}

/** Strides in elements of one of the problem's tensors, per canonical axis. */
function strides({ problem, layout, filterLayout }: PlanRequest, which: ConvTensor): number[] {
  return stridesInLayout(
    tensorShape(problem, which),
    which === "filter" ? filterLayout : layout,
  );
}

/**
 * Whether sums may be stored in parts: what is stored is rounded to the result's type, and another layout of sums takes the memory of
 * the step that comes next.
 */
export function storesParts(request: PlanRequest): boolean {
  return elementsOf(request).result === "f32" &&
    fullVariant(request.variant).outputLayout === "threads";
}

/**
 * Why a problem is none for fused Winograd along its last `tiled` axes, or undefined. An outer axis may have any
 * stride forward and any dilation; a tiled one has neither.
 */
export function unsupportedReason(
  request: PlanRequest,
  tiled: number,
): string | undefined {
  const { op, stride, dilation, filterSize } = request.problem;
  if (op === "bwd-filter") return "it computes fwd and bwd-data";
  const rank = filterSize.length;
  if (rank < tiled) return `the problem has ${rank} spatial axis, it tiles ${tiled}`;
  for (let d = 0; d < rank; d++) {
    const isTiled = d >= rank - tiled;
    if (stride[d] !== 1 && (isTiled || op === "bwd-data")) return `stride ${stride[d]} is not 1`;
    if (dilation[d] !== 1 && isTiled) return `dilation ${dilation[d]} is not 1`;
  }
  if (request.flush && !storesParts(request)) {
    return "it stores parts of sums (--flush) in results of f32, and with no other layout of sums";
  }
  return undefined;
}

/** How the kernel of `runs`, one a tiled axis, reads and writes the problem's tensors. */
export function sliceGeometry(request: PlanRequest, runs: readonly TileRun[]): SliceGeometry {
  const { problem, layout } = request;
  const forward = problem.op === "fwd";
  const [source, target] = forward ? ["input", "output"] as const : ["output", "input"] as const;
  const [from, to] = [strides(request, source), strides(request, target)];
  const sizes = forward ? problem.inputSize : problem.outputSize;
  const places = forward ? problem.outputSize : problem.inputSize;
  const [channels, targets] = forward
    ? [problem.inChannels, problem.outChannels]
    : [problem.outChannels, problem.inChannels];
  const outerCount = problem.filterSize.length - runs.length;
  const axes = problem.filterSize.map((taps, d) => {
    const dilation = problem.dilation[d]!;
    const begin = problem.paddingBegin[d]!;
    return {
      size: sizes[d]!,
      sourceStride: from[2 + d]!,
      padding: forward ? begin : (taps - 1) * dilation - begin,
      places: places[d]!,
      targetStride: to[2 + d]!,
      taps,
      stride: problem.stride[d]!,
      dilation,
    };
  });
  return {
    batch: problem.batch,
    sourceBatchStride: from[0]!,
    targetBatchStride: to[0]!,
    batchInner: layout === "chwn",
    channelsInner: layout === "nhwc",
    channels: channels / problem.groups,
    sourceChannelStride: from[1]!,
    targets: targets / problem.groups,
    targetChannelStride: to[1]!,
    outer: axes.slice(0, outerCount),
    tiled: axes.slice(outerCount).map(({ stride: _, dilation: __, taps, ...axis }, d) => {
      const { n, r, first, count } = runs[d]!;
      return { ...axis, n, r, first, tiles: count, chunks: Math.ceil(taps / r) };
    }),
  };
}

/** The filter that such a kernel reads, transformed and padded to whole tiles of `extent` places and `depth` channels. */
export function filterShape(
  request: PlanRequest,
  runs: readonly TileRun[],
  extent: number,
  depth: number,
  outermost: FilterTransformShape["outermost"] = "group",
): FilterTransformShape {
  const { problem } = request;
  const { groups, filterSize } = problem;
  const forward = problem.op === "fwd";
  const stride = strides(request, "filter");
  const outputs = problem.outChannels / groups;
  const inputs = problem.inChannels / groups;
  const outerCount = filterSize.length - runs.length;
  const axis = (d: number): FilterAxis => {
    const run = runs[d - outerCount];
    const taps = filterSize[d]!;
    return run === undefined
      ? { taps, r: 1, chunks: taps, stride: stride[2 + d]! }
      : { taps, r: run.r, chunks: Math.ceil(taps / run.r), stride: stride[2 + d]! };
  };
  const [places, channels] = forward ? [outputs, inputs] : [inputs, outputs];
  return {
    groups,
    places,
    paddedPlaces: Math.ceil(places / extent) * extent,
    channels,
    paddedChannels: paddedChannels(channels, depth),
    groupStride: outputs * stride[0]!,
    placeStride: stride[forward ? 0 : 1]!,
    channelStride: stride[forward ? 1 : 0]!,
    outer: filterSize.slice(0, outerCount).map((_, d) => axis(d)),
    tiled: runs.map((_, d) => axis(outerCount + d)),
    rotated: !forward,
    outermost,
  };
}
