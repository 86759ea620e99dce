import { type Scalar, scalarBytes } from "../../elements/scalar.ts";
import { type Axis, columnsOf } from "../../kernels/axes.ts";
import { windowExtents, type WindowShape } from "../../kernels/im2win.ts";
import { fullVariant } from "../../kernels/main_loop_variant.ts";
import type { PackShape } from "../../kernels/pack.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import { tensorShape } from "../../problem/conv_problem.ts";
import { stridesInLayout } from "../../tensor/layout.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { prefersSingleImages } from "../interleave.ts";
import type { PlanRequest } from "../request.ts";
import { spatialAxes } from "../spatial_axes.ts";

/** Forward convolution as im2win's product: K/g rows, images · places columns, taps · C/g deep. */
export interface WindowGeometry {
  readonly axes: readonly Axis[];
  /** Four images to a vector, where the batch divides into fours and results are of many products. */
  readonly interleave: 1 | 4;
  /** Rows of a group. */
  readonly rows: number;
  /** Channels of a group. */
  readonly channels: number;
  readonly taps: number;
  readonly spots: number;
  readonly input: readonly number[];
  readonly output: readonly number[];
  readonly filter: readonly number[];
}

/** What the problem is to im2win; strides are in elements, per canonical axis. */
export function windowGeometry(request: PlanRequest): WindowGeometry {
  const { problem, layout, filterLayout } = request;
  const input = stridesInLayout(tensorShape(problem, "input"), layout);
  const { vectorLoads } = fullVariant(request.variant);
  const fours = vectorLoads && problem.batch > 0 && problem.batch % 4 === 0;
  return {
    axes: spatialAxes(problem, "forward", input),
    interleave: fours && !prefersSingleImages(request) ? 4 : 1,
    rows: problem.outChannels / problem.groups,
    channels: problem.inChannels / problem.groups,
    taps: elementCount(problem.filterSize),
    spots: elementCount(problem.outputSize),
    input,
    output: stridesInLayout(tensorShape(problem, "output"), layout),
    filter: stridesInLayout(tensorShape(problem, "filter"), filterLayout),
  };
}

/** The tensor in window order of so many images. */
export function windowShape(
  request: PlanRequest,
  geometry: WindowGeometry,
  images: number,
  chunked: boolean,
): WindowShape {
  const { problem } = request;
  const { axes, interleave, channels, input } = geometry;
  return {
    axes,
    images,
    interleave,
    groups: problem.groups,
    channels,
    width: problem.inputSize.at(-1)! + problem.paddingBegin.at(-1)! + problem.paddingEnd.at(-1)!,
    batchStride: input[0]!,
    channelStride: input[1]!,
    chunked,
  };
}

/** Columns of the product of so many images. */
export function windowColumns(
  { axes, interleave }: Pick<WindowGeometry, "axes" | "interleave">,
  images: number,
): number {
  return columnsOf({ images, interleave, places: axes.map(({ places }) => places) });
}

/** The filter in window order, [group][depth][rows], padded to a policy's tiles. */
export function windowFilter(
  request: PlanRequest,
  geometry: WindowGeometry,
  policy: TilePolicy,
  paddedChannels = geometry.channels,
): PackShape {
  const { rows, channels, taps, filter } = geometry;
  const innerTaps = geometry.axes.at(-1)!.taps;
  return {
    groups: request.problem.groups,
    rows,
    paddedRows: Math.ceil(rows / policy.rows) * policy.rows,
    channels,
    paddedChannels,
    taps,
    depth: Math.ceil(taps * paddedChannels / policy.depth) * policy.depth,
    groupStride: rows * filter[0]!,
    rowStride: filter[0]!,
    channelStride: filter[1]!,
    tapStride: filter.at(-1)!,
    window: { outerTaps: taps / innerTaps, innerTaps },
  };
}

/** Where results go, from an image on. */
export function windowTarget(geometry: WindowGeometry) {
  const { output, rows, spots, interleave } = geometry;
  return {
    row: output[1]!,
    outer: interleave * output[0]!,
    inner: output.at(-1)!,
    ...(interleave === 4 ? { interleave: output[0]! } : {}),
    period: interleave * spots,
    group: rows * output[1]!,
  };
}

/** Why the problem cannot be done by im2win, or undefined if it can. */
export function windowReason({ problem }: PlanRequest): string | undefined {
  if (problem.op !== "fwd") {
    return `windows are of the input of fwd, ${problem.op} sums over other ones`;
  }
  return undefined;
}

/** Depth of the product. */
export function windowDepth({ taps, channels }: Pick<WindowGeometry, "taps" | "channels">): number {
  return taps * channels;
}

/** Bytes of the tensor in window order. */
export function windowBytes(shape: WindowShape, element: Scalar): number {
  const { outerPlaces, row } = windowExtents(shape);
  return scalarBytes(element) * shape.images * shape.groups * outerPlaces * row;
}
