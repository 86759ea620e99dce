import type { Scalar } from "../../elements/scalar.ts";
import { type ColumnMatrix, matrixExtents } from "../../kernels/im2col.ts";
import type { TileLoader } from "../../kernels/loader.ts";
import { matrixLoader } from "../../kernels/loaders/matrix.ts";
import { fullVariant } from "../../kernels/main_loop_variant.ts";
import type { ModuleBuilder, TensorAccess } from "../../kernels/module.ts";
import type { PackShape } from "../../kernels/pack.ts";
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
  };
}

/** The matrix of the input's windows. */
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
    inner: geometry.inner,
    chunked,
  };
}

/** How a product reads a matrix whose places are its columns, and whose depth its rows. */
function operandShape(matrix: ColumnMatrix) {
  const { lines, leading, group } = matrixExtents(matrix);
  return matrix.inner === "columns"
    ? { places: leading, depth: lines, along: "place" as const, batchStride: group }
    : { places: lines, depth: leading, along: "depth" as const, batchStride: group };
}

/** Which way threads read an operand: vectors of four either way, since the matrix is padded to them. */
export function matrixAccess(matrix: ColumnMatrix, value: Scalar) {
  return { along: operandShape(matrix).along, vector: 4 as const, value };
}

/** The loader of a matrix as a product's right operand. */
export function columnLoader(
  module: ModuleBuilder,
  access: TensorAccess,
  matrix: ColumnMatrix,
  policy: TilePolicy,
): TileLoader {
  const { vector } = access;
  return matrixLoader(module, "b", access, {
    ...operandShape(matrix),
    vector,
    tileDepth: policy.depth,
  });
}

/** Elements of a load of a matrix. */
export function loadVector(request: PlanRequest): 1 | 4 {
  return fullVariant(request.variant).vectorLoads ? 4 : 1;
}

/** The packed filter of a product: K/g rows. */
export function im2colFilter(
  request: PlanRequest,
  geometry: Im2colGeometry,
  policy: TilePolicy,
): PackShape {
  const { problem } = request;
  const { inChannels, outChannels, taps, filter } = geometry;
  const padded = (value: number, tile: number) => Math.ceil(value / tile) * tile;
  return {
    groups: problem.groups,
    rows: outChannels,
    paddedRows: padded(outChannels, policy.rows),
    channels: inChannels,
    paddedChannels: inChannels,
    taps,
    depth: padded(taps * inChannels, policy.depth),
    groupStride: outChannels * filter[0]!,
    rowStride: filter[0]!,
    channelStride: filter[1]!,
    tapStride: filter.at(-1)!,
  };
}
