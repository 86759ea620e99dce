import type { MatrixStack, TileAxis, TiledTensor } from "../../kernels/winograd_tiles.ts";
import {
  type ConvTensor,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../../problem/conv_problem.ts";
import { stridesInLayout } from "../../tensor/layout.ts";
import { type Matrix, transpose } from "../../winograd/matrix.ts";
import type { PlanRequest } from "../request.ts";
import { planar, type PlannedTile } from "./tiles.ts";

type Along = MatrixStack["along"];
type Matrices = readonly [Matrix, Matrix];

/** An operand of the products: patches of a tensor, transformed. */
export interface WinogradOperand {
  readonly which: ConvTensor;
  /** Enters the kernel's name. */
  readonly role: "data" | "gradient" | "filter";
  /** The tensor with so many images (all of them, for a filter). */
  tensor(images: number): TiledTensor;
  readonly matrices: Matrices;
  /** The side that is summed over; the other one is rows or columns of the product. */
  readonly depth: Along;
  /** The contiguous side. */
  readonly along: Along;
}

/** The result of the products: tiles of a tensor. */
export interface WinogradResult {
  readonly which: ConvTensor;
  tensor(images: number): TiledTensor;
  readonly matrices: Matrices;
  readonly masked: boolean;
  /** The side that is the columns of the product. */
  readonly columns: Along;
}

/** A convolution as α0·α1·groups products. */
export interface WinogradGeometry {
  /** Operand of the rows, then of the columns. */
  readonly operands: readonly [WinogradOperand, WinogradOperand];
  readonly result: WinogradResult;
}

/** How a request's tensors and transforms enter the products. */
export function geometryOf(request: PlanRequest, tile: PlannedTile): WinogradGeometry {
  return request.problem.op === "bwd-filter"
    ? filterGradient(request, tile)
    : filteredImages(request, tile);
}

/** Forward, and backward-data with the filter rotated: transformed filter times transformed images. */
function filteredImages(request: PlanRequest, tile: PlannedTile): WinogradGeometry {
  const { problem, layout } = request;
  const forward = problem.op === "fwd";
  const [sourceName] = operandTensors(problem.op);
  const target = resultTensor(problem.op);
  const padding = planar(problem.paddingBegin, 0);
  const filterSize = planar(problem.filterSize, 1);
  const sizes = planar(tensorShape(problem, target).slice(2), 1);
  const step = transformSizes(tile, "n");
  const axes = (origins: readonly number[]) =>
    step.map((m, d) => ({ tiles: Math.ceil(sizes[d]! / m), step: m, origin: origins[d]! }));
  const origins = padding.map((pad, d) => forward ? -pad : pad + 1 - filterSize[d]!);
  const inner: Along = layout === "nhwc" ? "channel" : "tile";
  const data: WinogradOperand = {
    which: sourceName,
    role: "data",
    tensor: (images) => activations(request, sourceName, images, axes(origins)),
    matrices: [transpose(tile.transforms[0].d), transpose(tile.transforms[1].d)],
    depth: "channel",
    along: inner,
  };
  const filter: WinogradOperand = {
    which: "filter",
    role: "filter",
    tensor: () => filterTensor(request),
    matrices: [tile.transforms[0].g, tile.transforms[1].g],
    depth: forward ? "channel" : "tile",
    along: forward ? "tile" : "channel",
  };
  return {
    operands: inner === "tile" ? [filter, data] : [data, filter],
    result: {
      which: target,
      tensor: (images) => activations(request, target, images, axes([0, 0])),
      matrices: [transpose(tile.transforms[0].a), transpose(tile.transforms[1].a)],
      masked: true,
      columns: inner,
    },
  };
}

/** Backward-filter, F(filter, step): transformed gradient times transformed images, summed over all tiles. */
function filterGradient(request: PlanRequest, tile: PlannedTile): WinogradGeometry {
  const { problem, layout, filterLayout } = request;
  const padding = planar(problem.paddingBegin, 0);
  const sizes = planar(problem.outputSize, 1);
  const step = transformSizes(tile, "r");
  const axes = (origins: readonly number[]) =>
    step.map((m, d) => ({ tiles: Math.ceil(sizes[d]! / m), step: m, origin: origins[d]! }));
  const operand = (
    which: "input" | "output",
    role: WinogradOperand["role"],
    matrices: Matrices,
    origins: readonly number[],
  ): WinogradOperand => ({
    which,
    role,
    tensor: (images) => activations(request, which, images, axes(origins)),
    matrices,
    depth: "tile",
    along: layout === "nhwc" ? "channel" : "tile",
  });
  const images = operand(
    "input",
    "data",
    [transpose(tile.transforms[0].d), transpose(tile.transforms[1].d)],
    padding.map((pad) => -pad),
  );
  const gradient = operand(
    "output",
    "gradient",
    [tile.transforms[0].g, tile.transforms[1].g],
    [0, 0],
  );
  // Columns are what lies innermost in the filter, so that neighbours store neighbours.
  const outputsInner = filterLayout === "crsk";
  return {
    operands: outputsInner ? [images, gradient] : [gradient, images],
    result: {
      which: "filter",
      tensor: () => filterTensor(request),
      matrices: [transpose(tile.transforms[0].a), transpose(tile.transforms[1].a)],
      masked: false,
      columns: outputsInner ? "tile" : "channel",
    },
  };
}

function transformSizes({ transforms }: PlannedTile, side: "n" | "r"): [number, number] {
  return [transforms[0][side], transforms[1][side]];
}

/** Images of the input or output. */
function activations(
  { problem, layout }: PlanRequest,
  which: "input" | "output" | "filter",
  images: number,
  axes: readonly Pick<TileAxis, "tiles" | "step" | "origin">[],
): TiledTensor {
  const shape = tensorShape(problem, which);
  const strides = stridesInLayout(shape, layout);
  const channels = shape[1]! / problem.groups;
  const sizes = planar(shape.slice(2), 1);
  const steps = planar(strides.slice(2), 0);
  const axis = (d: 0 | 1): TileAxis => ({ size: sizes[d], stride: steps[d], ...axes[d]! });
  return {
    groups: problem.groups,
    groupStride: channels * strides[1]!,
    batch: images,
    batchStride: strides[0]!,
    channels,
    channelStride: strides[1]!,
    batchInner: layout === "chwn",
    axes: [axis(0), axis(1)],
  };
}

/** The filter, one tile for each of a group's K x C. */
function filterTensor({ problem, filterLayout }: PlanRequest): TiledTensor {
  const shape = tensorShape(problem, "filter");
  const strides = stridesInLayout(shape, filterLayout);
  const outputs = shape[0]! / problem.groups;
  const sizes = planar(shape.slice(2), 1);
  const steps = planar(strides.slice(2), 0);
  const axis = (d: 0 | 1): TileAxis => ({
    size: sizes[d],
    stride: steps[d],
    tiles: 1,
    step: 0,
    origin: 0,
  });
  return {
    groups: problem.groups,
    groupStride: outputs * strides[0]!,
    batch: outputs,
    batchStride: strides[0]!,
    channels: shape[1]!,
    channelStride: strides[1]!,
    batchInner: false,
    axes: [axis(0), axis(1)],
  };
}
