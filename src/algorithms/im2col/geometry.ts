import type { Scalar } from "../../elements/scalar.ts";
import type { Axis } from "../../kernels/axes.ts";
import { type ColumnMatrix, matrixExtents } from "../../kernels/im2col.ts";
import type { TileLoader } from "../../kernels/loader.ts";
import { matrixLoader, type MatrixShape } from "../../kernels/loaders/matrix.ts";
import { fullVariant } from "../../kernels/main_loop_variant.ts";
import type { ModuleBuilder, TensorAccess } from "../../kernels/module.ts";
import type { PackShape } from "../../kernels/pack_strided.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import { tensorShape } from "../../problem/conv_problem.ts";
import { stridesInLayout } from "../../tensor/layout.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { prefersSingleImages } from "../interleave.ts";
import type { PlanRequest } from "../request.ts";
import { spatialAxes } from "../spatial_axes.ts";

/** What the problem is to im2col; strides are in elements, per canonical axis. */
export interface Im2colGeometry {
  /** Which side of the matrices lies together: channels where the images have them together (nhwc). */
  readonly inner: "columns" | "rows";
  readonly interleave: 1 | 4;
  /** Of a group. */
  readonly inChannels: number;
  readonly outChannels: number;
  readonly taps: number;
  readonly spots: number;
  readonly input: readonly number[];
  readonly output: readonly number[];
  readonly filter: readonly number[];
  /** Of the matrix of windows: the filter's own order where its rows are read or written as they lie. */
  readonly rowOrder: "channel" | "tap";
}

/** The sizes, strides and orders that a request's matrices are made by. */
export function im2colGeometry(request: PlanRequest): Im2colGeometry {
  const { problem, layout, filterLayout } = request;
  const inner = layout === "nhwc" ? "rows" : "columns";
  const taps = elementCount(problem.filterSize);
  const spots = elementCount(problem.outputSize);
  const fours = inner === "columns" && problem.batch > 0 && problem.batch % 4 === 0;
  return {
    inner,
    interleave: fours && !prefersSingleImages(request) ? 4 : 1,
    inChannels: problem.inChannels / problem.groups,
    outChannels: problem.outChannels / problem.groups,
    taps,
    spots,
    input: stridesInLayout(tensorShape(problem, "input"), layout),
    output: stridesInLayout(tensorShape(problem, "output"), layout),
    filter: stridesInLayout(tensorShape(problem, "filter"), filterLayout),
    rowOrder: problem.op === "fwd" || filterLayout === "krsc" ? "channel" : "tap",
  };
}

/** The matrix of the input's windows; of its gradient's, for backward-data. */
export function windowMatrix(
  request: PlanRequest,
  geometry: Im2colGeometry,
  images: number,
  chunked: boolean,
): ColumnMatrix {
  const { problem } = request;
  return {
    axes: spatialAxes(problem, "forward", geometry.input),
    images,
    interleave: geometry.interleave,
    groups: problem.groups,
    channels: geometry.inChannels,
    batchStride: geometry.input[0]!,
    channelStride: geometry.input[1]!,
    rowOrder: geometry.rowOrder,
    inner: geometry.inner,
    chunked,
  };
}

/** The output's gradient as a matrix of channels by place, its columns as the windows' count. */
export function gradientMatrix(
  request: PlanRequest,
  geometry: Im2colGeometry,
  images: number,
  chunked: boolean,
): ColumnMatrix {
  const { problem } = request;
  return {
    axes: problem.outputSize.map((size, d): Axis => ({
      taps: 1,
      places: size,
      size,
      stride: 1,
      padding: 0,
      dilation: 1,
      sourceStride: geometry.output[2 + d]!,
    })),
    images,
    interleave: geometry.interleave,
    groups: problem.groups,
    channels: geometry.outChannels,
    batchStride: geometry.output[0]!,
    channelStride: geometry.output[1]!,
    rowOrder: "channel",
    inner: geometry.inner,
    chunked,
  };
}

/**
 * How a product reads a matrix whose places are its columns, and whose depth its rows; or, `turned`, the other
 * way round.
 */
function operandShape(matrix: ColumnMatrix, turned: boolean) {
  const { rows, columns, leading, group } = matrixExtents(matrix);
  const placesInner = (matrix.inner === "columns") !== turned;
  const lines = matrix.inner === "columns" ? rows : columns;
  return {
    places: placesInner ? leading : lines,
    depth: placesInner ? lines : leading,
    along: placesInner ? "place" as const : "depth" as const,
    batchStride: group,
  };
}

/** Which way threads read an operand: vectors of four either way, since the matrix is padded to them. */
export function matrixAccess(matrix: ColumnMatrix, value: Scalar, turned = false) {
  return { along: operandShape(matrix, turned).along, vector: 4 as const, value };
}

/** The loader of a matrix as a product's operand. */
export function columnLoader(
  module: ModuleBuilder,
  operand: "a" | "b",
  access: TensorAccess,
  matrix: ColumnMatrix,
  policy: TilePolicy,
  turned = false,
): TileLoader {
  const shape: MatrixShape = {
    ...operandShape(matrix, turned),
    vector: access.vector,
    tileDepth: policy.depth,
  };
  return matrixLoader(module, operand, access, shape);
}

/** Elements of a load of a matrix. */
export function loadVector(request: PlanRequest): 1 | 4 {
  return fullVariant(request.variant).vectorLoads ? 4 : 1;
}

/** The packed filter of a product: K/g rows forward, (tap, channel) rows backward-data. */
export function im2colFilter(
  request: PlanRequest,
  geometry: Im2colGeometry,
  policy: TilePolicy,
): PackShape {
  const { problem, filterLayout } = request;
  const { inChannels, outChannels, taps, filter } = geometry;
  const groupStride = outChannels * filter[0]!;
  const padded = (value: number, tile: number) => Math.ceil(value / tile) * tile;
  if (problem.op === "fwd") {
    return {
      groups: problem.groups,
      rows: outChannels,
      paddedRows: padded(outChannels, policy.rows),
      channels: inChannels,
      paddedChannels: inChannels,
      taps,
      depth: padded(taps * inChannels, policy.depth),
      groupStride,
      rowStride: filter[0]!,
      channelStride: filter[1]!,
      tapStride: filter.at(-1)!,
    };
  }
  return {
    groups: problem.groups,
    rows: taps * inChannels,
    paddedRows: padded(taps * inChannels, policy.rows),
    channels: outChannels,
    paddedChannels: outChannels,
    taps: 1,
    depth: padded(outChannels, policy.depth),
    groupStride,
    // (channel, tap) or (tap, channel), as they follow each other in the filter.
    rowStride: filterLayout === "crsk" ? filter.at(-1)! : 1,
    channelStride: filter[0]!,
    tapStride: 0,
  };
}
