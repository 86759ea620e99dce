import { elementsOf } from "../../elements/elements.ts";
import type { FilterAxis, FilterTransformShape } from "../../kernels/slices/filter_transform.ts";
import {
  paddedChannels,
  type SliceGeometry,
  tapCount,
  tileCount,
} from "../../kernels/slices/geometry.ts";
import type { SlicePolicy } from "../../kernels/slices/policy.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { formatTile, type WinogradTile } from "../../winograd/tile.ts";
import { ceilTo, groupOf, stridesOf } from "../geometry.ts";
import type { PlanRequest } from "../request.ts";

/** Largest α of a one-dimensional tile where the user names none, and smaller ones that may be faster. */
const ALPHA = 8;
const SHORTER = [6, 4];
/** Longer filter axes are cut into pieces: with one tiled axis, and with two. */
const LONGEST = [9, 7] as const;

/** Taps of a piece: the whole filter, or as even a share of it as fits. */
function pieceOf(taps: number, axes: 1 | 2): number {
  return Math.ceil(taps / Math.ceil(taps / LONGEST[axes - 1]!));
}

/** The kernels of a plan, each with a run of tiles along each tiled axis. */
export type TileRuns = readonly (readonly TileRun[])[];

/**
 * The ways of cutting the tiled axes into runs of tiles. One axis: whole tiles and one of what is left, so that no tile is
 * wasted (14 = 6 + 6 + 2, two kernels), or tiles that reach beyond the edge (14 of 4 · 4, one kernel); where no tile is given,
 * of the default and of shorter ones. Two axes: tiles that may reach beyond the edge.
 */
export function tileRuns(
  places: readonly number[],
  filter: readonly number[],
  tile: WinogradTile | undefined,
): TileRuns[] {
  if (places.length > 1) {
    return [[
      places.map((size, d) => {
        const r = tile?.r[d] ?? pieceOf(filter[d]!, 2);
        const n = tile?.n[d] ?? 2;
        return { n, r, first: 0, count: Math.ceil(size / n) };
      }),
    ]];
  }
  const [size, taps] = [places[0]!, filter[0]!];
  const r = tile?.r[0] ?? pieceOf(taps, 1);
  const within = (n: number) => Math.max(1, Math.min(size, n));
  const results = tile === undefined
    ? [r <= 7 ? ALPHA : 2 * ALPHA, ...SHORTER.filter((alpha) => alpha > r)]
      .map((alpha) => alpha + 1 - r)
    : [tile.n[0]!];
  return [...new Set(results.map(within))].flatMap((n) => axisRuns(size, n, r));
}

/** One axis by tiles of `n` results: exactly, and beyond the edge where that is another way. */
function axisRuns(size: number, n: number, r: number): TileRuns[] {
  const count = Math.floor(size / n);
  const rest = size - count * n;
  if (rest === 0) return [[[{ n, r, first: 0, count }]]];
  return [
    [[{ n, r, first: 0, count }], [{ n: rest, r, first: count * n, count: 1 }]],
    [[{ n, r, first: 0, count: count + 1 }]],
  ];
}

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

/** Whether sums may be flushed: what is stored is rounded to the result's type. */
function storesParts(request: PlanRequest): boolean {
  return elementsOf(request).result === "f32";
}

/**
 * Why a problem is none for fused Winograd along its last `tiled` axes, or undefined. An outer axis may have any
 * stride forward and any dilation; a tiled one has neither.
 */
export function unsupportedReason(request: PlanRequest, tiled: number): string | undefined {
  const { op, stride, dilation, filterSize } = request.problem;
  if (op === "bwd-filter") return "it computes fwd and bwd-data";
  const rank = filterSize.length;
  if (rank < tiled) return `the problem has ${rank} spatial axis, it tiles ${tiled}`;
  for (let d = 0; d < rank; d++) {
    const isTiled = d >= rank - tiled;
    if (stride[d] !== 1 && (isTiled || op === "bwd-data")) return `stride ${stride[d]} is not 1`;
    if (dilation[d] !== 1 && isTiled) return `dilation ${dilation[d]} is not 1`;
  }
  if (request.schedule?.flush && !storesParts(request)) {
    return "it stores parts of sums (--flush) in results of f32";
  }
  return undefined;
}

/** How the kernel of `runs`, one a tiled axis, reads and writes the problem's tensors. */
export function sliceGeometry(request: PlanRequest, runs: readonly TileRun[]): SliceGeometry {
  const { problem, layout } = request;
  const forward = problem.op === "fwd";
  const [source, target] = forward ? ["input", "output"] as const : ["output", "input"] as const;
  const [from, to] = [stridesOf(request, source), stridesOf(request, target)];
  const sizes = forward ? problem.inputSize : problem.outputSize;
  const places = forward ? problem.outputSize : problem.inputSize;
  const { inputs, outputs } = groupOf(request);
  const [channels, targets] = forward ? [inputs, outputs] : [outputs, inputs];
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
    channels,
    sourceChannelStride: from[1]!,
    targets,
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
  const stride = stridesOf(request, "filter");
  const { inputs, outputs } = groupOf(request);
  const outerCount = filterSize.length - runs.length;
  const axis = (d: number): FilterAxis => {
    const { r } = runs[d - outerCount] ?? { r: 1 };
    const taps = filterSize[d]!;
    return { taps, r, chunks: Math.ceil(taps / r), stride: stride[2 + d]! };
  };
  const [places, channels] = forward ? [outputs, inputs] : [inputs, outputs];
  return {
    groups,
    places,
    paddedPlaces: ceilTo(places, extent),
    channels,
    paddedChannels: paddedChannels(channels, depth),
    strides: {
      group: outputs * stride[0]!,
      place: stride[forward ? 0 : 1]!,
      channel: stride[forward ? 1 : 0]!,
    },
    outer: filterSize.slice(0, outerCount).map((_, d) => axis(d)),
    tiled: runs.map((_, d) => axis(outerCount + d)),
    rotated: !forward,
    outermost,
  };
}

/**
 * Longest sum that is not flushed: up to here one accumulator has a MARE near 4e-7; half of it for large tiles.
 */
const LONGEST_SUM = 768;
/** Slices of a large tile, above those of F(4x4,3x3). */
const LARGE_SLICES = 37;
/** Flush interval in products, at most, where the user sets none. */
const LONGEST_CHAIN = 512;

/** The product of a fused Winograd kernel, on which its policy and price depend. */
export interface SlicedProduct {
  /** "F(2x2,3x3)", its axes, slices and results. */
  readonly tile: string;
  readonly axes: number;
  readonly slices: number;
  readonly results: number;
  /** Whether each tile's results of a row lie in whole fours of the row's. */
  readonly aligned: boolean;
  /** Target channels of a group, and tiles of all images. */
  readonly targets: number;
  readonly tiles: number;
  readonly groups: number;
  /** Source channels of a group, and taps that are no part of the tile. */
  readonly channels: number;
  readonly taps: number;
  /** Workgroups that share the depth of a tile. */
  readonly splits: number;
  /** Whether sums are one chain (`whole`), or are flushed to the stored result. */
  readonly chains: "whole" | "stored";
}

/** The product of a kernel with so many splits. */
export function slicedProduct(
  request: PlanRequest,
  runs: readonly TileRun[],
  splits: number,
): SlicedProduct {
  const geometry = sliceGeometry(request, runs);
  const { targets, channels } = geometry;
  const last = geometry.tiled.at(-1)!;
  const slices = elementCount(runs.map(({ n, r }) => n + r - 1));
  const taps = tapCount(geometry);
  return {
    tile: runTile(runs),
    axes: runs.length,
    slices,
    results: elementCount(runs.map(({ n }) => n)),
    aligned: last.n % 4 === 0 && last.places % 4 === 0,
    targets,
    tiles: tileCount(geometry),
    groups: request.problem.groups,
    channels,
    taps,
    splits,
    chains: chainCount(request, slices, Math.ceil(taps * channels / splits)) === 1
      ? "whole"
      : "stored",
  };
}

/** Flushes of a sum of `length` products, the last one included. */
function chainCount(request: PlanRequest, slices: number, length: number): number {
  const { schedule: { flush } = {} } = request;
  if (!storesParts(request)) return 1;
  if (flush !== undefined) return flush === 0 ? 1 : Math.max(1, Math.ceil(length / flush));
  const most = slices < LARGE_SLICES ? LONGEST_SUM : LONGEST_SUM / 2;
  return length > most ? Math.ceil(length / Math.min(most, LONGEST_CHAIN)) : 1;
}

/** Whether a full depth is summed without a flush. */
export function isWholeDepth(request: PlanRequest, product: SlicedProduct): boolean {
  return chainCount(request, product.slices, product.taps * product.channels) === 1;
}

/** Steps of a full depth with tiles so deep. */
export function depthSteps(
  { taps, channels }: Pick<SlicedProduct, "taps" | "channels">,
  depth: number,
): number {
  return taps * paddedChannels(channels, depth) / depth;
}

/**
 * Steps of a full depth, of the longest split, and between its flushes: equally many each time, unless the user sets the interval. With
 * padding a split may need no flush.
 */
export function chainSteps(
  request: PlanRequest,
  { slices, taps, channels, chains, splits }: SlicedProduct,
  depth: number,
) {
  const steps = depthSteps({ taps, channels }, depth);
  const longest = Math.ceil(steps / splits);
  const { schedule: { flush } = {} } = request;
  const chain = flush === undefined
    ? Math.ceil(longest / chainCount(request, slices, Math.ceil(taps * channels / splits)))
    : Math.ceil(flush / depth);
  const whole = chains === "whole" || chain >= longest;
  return {
    steps,
    longest,
    chain: whole ? longest : chain,
    chains: whole ? "whole" as const : chains,
  };
}

/** Most slices with which a thread is faster with four patches at once: more need too many registers. */
const WIDE_SLICES = 6;

/** Whether images lie innermost in whole vectors. */
export function imageVectors(
  { layout, problem }: Pick<PlanRequest, "layout" | "problem">,
): boolean {
  return layout === "chwn" && problem.batch % 4 === 0;
}

/** Patches that a thread loads at once: of four images where these are innermost. */
export function loadVector(
  request: Pick<PlanRequest, "layout" | "problem">,
  slices: number,
  { allSlices }: SlicePolicy,
): 1 | 4 {
  return imageVectors(request) && slices <= WIDE_SLICES && !allSlices ? 4 : 1;
}
