/** How a tensor is written once more, so that channels lie innermost: images, filters, and gradients of filters. */
import type { Scalar } from "../../elements/scalar.ts";
import { unfoldedElements, unfoldKernel, type UnfoldShape } from "../../kernels/im2col.ts";
import {
  packBytesKernel,
  type PackBytesShape,
  packedElements,
  packedWords,
  type PackShape,
  packStridedKernel,
  type PackStrides,
} from "../../kernels/pack.ts";
import { type ConvProblem, type ConvTensor, tensorShape } from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { stridesOf } from "../geometry.ts";
import { pass } from "../passes.ts";
import type { Pass } from "../plan.ts";
import type { PlanRequest } from "../request.ts";
import { bufferBytes, type BufferList, fitsBuffer } from "../tensors.ts";

/** From so many channels on a copy through workgroup memory is faster than one by single elements. */
const FEW_ROWS = 16;

/** Taps and channels that may become channels. */
export const MOST_UNFOLDED = 64;

/** How a tensor is written once more: turned, taken apart along an axis, or its bytes as words. */
export type Copy = PackShape | UnfoldShape | PackBytesShape;

/** An image with so many channels innermost; taps of the last axis among them where it is unfolded. */
export function imageCopy(
  request: PlanRequest,
  which: ConvTensor,
  paddedChannels: number,
  unfolded: true,
): UnfoldShape;
export function imageCopy(
  request: PlanRequest,
  which: ConvTensor,
  paddedChannels: number,
  unfolded: boolean,
): PackShape | UnfoldShape;
export function imageCopy(
  request: PlanRequest,
  which: ConvTensor,
  paddedChannels: number,
  unfolded: boolean,
): PackShape | UnfoldShape {
  const { problem, layout } = request;
  const [batch, channels, ...sizes] = tensorShape(problem, which) as [number, number];
  const strides = stridesOf(request, which);
  const [batchStride, channelStride] = strides as [number, number];
  if (layout === "nchw" && !unfolded && (channels === paddedChannels || channels >= FEW_ROWS)) {
    return matrices({
      groups: batch,
      rows: channels,
      paddedRows: paddedChannels,
      channels: elementCount(sizes),
      strides: { group: batchStride, row: channelStride, channel: strides.at(-1)! },
    });
  }
  const last = (key: "stride" | "dilation" | "paddingBegin" | "filterSize") => problem[key].at(-1)!;
  const size = sizes.at(-1)!;
  const sourceStride = strides.at(-1)!;
  const axis = unfolded
    ? {
      places: problem.outputSize.at(-1)!,
      taps: last("filterSize"),
      size,
      stride: last("stride"),
      padding: last("paddingBegin"),
      dilation: last("dilation"),
      sourceStride,
    }
    : { ...ONE_TAP, places: size, size, sourceStride };
  return inOneRun({
    batch,
    rows: elementCount(sizes.slice(0, -1)),
    axis,
    channels,
    paddedChannels,
    batchStride,
    rowStride: sizes.length > 1 ? strides.at(-2)! : 0,
    channelStride,
  });
}

/** Taps that lie beside each other with all their channels, as taps of one channel, whose place takes no division to find. */
function inOneRun(shape: UnfoldShape): UnfoldShape {
  const { axis, channels, channelStride } = shape;
  const beside = axis.dilation === 1 || axis.taps === 1;
  if (channelStride !== 1 || axis.sourceStride !== channels || !beside) return shape;
  return {
    ...shape,
    axis: {
      places: axis.places,
      taps: axis.taps * channels,
      size: axis.size * channels,
      stride: axis.stride * channels,
      padding: axis.padding * channels,
      dilation: 1,
      sourceStride: 1,
    },
    channels: 1,
  };
}

const ONE_TAP = { taps: 1, stride: 1, padding: 0, dilation: 1 };

/** A filter whose channels that are summed are padded: of forward innermost, of backward-data outermost, where they lie. */
export function filterCopy(request: PlanRequest, padded: ConvProblem, taps: number): UnfoldShape {
  const [filters, channels, ...sizes] = tensorShape(request.problem, "filter") as [number, number];
  if (request.problem.op !== "fwd") {
    const rest = channels * elementCount(sizes);
    const axis = { ...ONE_TAP, places: padded.outChannels, size: filters, sourceStride: rest };
    return { ...flat(axis), channels: rest, paddedChannels: rest };
  }
  const strides = stridesOf(request, "filter");
  const places = elementCount(sizes) / taps;
  const [batchStride, channelStride] = strides as [number, number];
  return {
    batch: filters,
    rows: places,
    axis: { ...ONE_TAP, places: 1, taps, size: taps, sourceStride: strides.at(-1)! },
    channels,
    paddedChannels: padded.inChannels,
    batchStride,
    rowStride: taps * strides.at(-1)!,
    channelStride,
  };
}

/** Rows along one axis, as they lie. */
function flat(axis: UnfoldShape["axis"]) {
  return { batch: 1, rows: 1, axis, batchStride: 0, rowStride: 0, channelStride: 1 };
}

/** A filter's gradient of padded krsc, with so many taps among its channels, as it is asked for. */
export function gradientCopy(
  { problem, filterLayout }: PlanRequest,
  padded: ConvProblem,
  taps: number,
): PackShape | UnfoldShape {
  const [filters, channels, ...sizes] = tensorShape(problem, "filter") as [number, number];
  const lying = padded.inChannels / padded.groups;
  const places = elementCount(sizes) / taps;
  if (filterLayout === "krsc") {
    const row = taps * channels;
    const axis = {
      ...ONE_TAP,
      places: filters * places,
      size: filters * places,
      sourceStride: lying,
    };
    return { ...flat(axis), channels: row, paddedChannels: row };
  }
  return lying === channels
    ? matrices({
      groups: filters,
      rows: places,
      paddedRows: places,
      channels,
      strides: { group: channels * places, row: channels, channel: 1 },
    })
    : {
      batch: filters,
      rows: channels,
      axis: { ...ONE_TAP, places, size: places, sourceStride: lying },
      channels: taps,
      paddedChannels: taps,
      batchStride: places * lying,
      rowStride: 1,
      channelStride: channels,
    };
}

/** Matrices of channels x rows, as {@linkcode PackShape} has them of one tap. */
function matrices(
  shape: Pick<PackShape, "groups" | "rows" | "paddedRows" | "channels"> & {
    readonly strides: Omit<PackStrides, "tap">;
  },
): PackShape {
  const { channels } = shape;
  const strides = { ...shape.strides, tap: 0 };
  return { ...shape, paddedChannels: channels, taps: 1, depth: channels, strides };
}

export function copiedElements(copy: Copy): number {
  return "axis" in copy
    ? unfoldedElements(copy)
    : "panel" in copy
    ? packedWords(copy)
    : packedElements(copy);
}

/** The pass that copies a tensor; none where there is nothing to copy. */
export function copyPasses(
  copy: Copy,
  buffers: BufferList,
  at: { readonly unpacked: number; readonly packed: number },
  element: Scalar,
): Pass[] {
  if (copiedElements(copy) === 0) return [];
  const module = buffers.module(at);
  const kernel = "axis" in copy
    ? unfoldKernel(module, copy, element)
    : "panel" in copy
    ? packBytesKernel(module, copy)
    : packStridedKernel(module, copy, element);
  return [pass(kernel, buffers, at)];
}

/** A problem of images whose places along the last axis hold all that its taps met there. */
export function withoutTaps(problem: ConvProblem): ConvProblem {
  const last = (sizes: readonly number[], value: number) => [...sizes.slice(0, -1), value];
  return {
    ...problem,
    inputSize: last(problem.inputSize, problem.outputSize.at(-1)!),
    filterSize: last(problem.filterSize, 1),
    stride: last(problem.stride, 1),
    dilation: last(problem.dilation, 1),
    paddingBegin: last(problem.paddingBegin, 0),
    paddingEnd: last(problem.paddingEnd, 0),
  };
}

/**
 * Whether a tensor may stand once more in a buffer: one that there can be, that takes no more bindings than the tensor, and that
 * a pass binds beside it.
 */
export function copyFits(
  { limits }: PlanRequest,
  lying: number,
  copied: number,
  element: Scalar,
): boolean {
  const { maxStorageBufferBindingSize, maxStorageBuffersPerShaderStage } = limits;
  const parts = (elements: number) =>
    Math.max(1, Math.ceil(bufferBytes(elements, element) / maxStorageBufferBindingSize));
  return fitsBuffer(copied, element, limits) &&
    parts(copied) <= parts(lying) &&
    parts(lying) + parts(copied) <= maxStorageBuffersPerShaderStage;
}
