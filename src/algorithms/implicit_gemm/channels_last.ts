import { elementsOf } from "../../elements/elements.ts";
import type { SizeMode } from "../../kernels/module.ts";
import { packedElements, type PackShape } from "../../kernels/pack_strided.ts";
import { type ConvTensor, operandTensors, tensorShape } from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { packFilterPass } from "../conv_product.ts";
import { deviceOf } from "../device/h200.ts";
import { moveTime, passTime } from "../device/model.ts";
import type { Pass } from "../plan.ts";
import { productUnit } from "../product.ts";
import type { PlanRequest } from "../request.ts";
import { bufferBytes, type BufferList, operandBytes } from "../tensors.ts";

/** Channels of a group that lie in one load of matrix units. */
const VECTOR = 8;

/**
 * The request whose images are written once more with channels innermost before they are multiplied, where implicit GEMM may do
 * that: of nchw, which matrix units load one half at a time, and so it does where it is asked for. Filters' gradients then leave
 * with channels innermost, too. Undefined elsewhere.
 */
export function channelsLast(request: PlanRequest): PlanRequest | undefined {
  const { problem, layout, filterLayout, dtype, variant } = request;
  if (layout !== "nchw" || dtype === "i8") return undefined;
  const wanted = productUnit(request) !== undefined &&
    images(request).every((which) =>
      tensorShape(problem, which)[1]! / problem.groups % VECTOR === 0 && bindable(request, which)
    );
  if (!wanted && !variant?.channelsLast) return undefined;
  const rewritten = problem.op === "bwd-filter" && filterLayout === "kcrs";
  return { ...request, layout: "nhwc", ...(rewritten ? { filterLayout: "krsc" } : {}) };
}

/** Whether a pass can bind an image as it lies and as it is written. */
function bindable(request: PlanRequest, which: ConvTensor): boolean {
  const { problem, limits } = request;
  const bytes = elementCount(tensorShape(problem, which)) * operandBytes(request);
  const parts = Math.ceil(bytes / limits.maxStorageBufferBindingSize);
  return 2 * parts <= limits.maxStorageBuffersPerShaderStage;
}

/** Tensors of the operands that are images. */
function images({ problem }: PlanRequest): readonly ConvTensor[] {
  return operandTensors(problem.op).filter((which) => which !== "filter");
}

/** An image as a stack of matrices of channels x places, which are packed to places x channels. */
function imageShape({ problem }: PlanRequest, which: ConvTensor): PackShape {
  const [batch, channels, ...sizes] = tensorShape(problem, which) as [number, number];
  const places = elementCount(sizes);
  return {
    groups: batch,
    rows: channels,
    paddedRows: channels,
    channels: places,
    paddedChannels: places,
    taps: 1,
    depth: places,
    groupStride: channels * places,
    rowStride: places,
    channelStride: 1,
    tapStride: 0,
  };
}

/** A filter's gradient of krsc as a stack of matrices of taps x channels, which are packed to kcrs; undefined where it leaves as it lies. */
function filterShape({ problem, layout, filterLayout }: PlanRequest): PackShape | undefined {
  if (problem.op !== "bwd-filter" || layout !== "nchw" || filterLayout !== "kcrs") return undefined;
  const [rows, channels, ...sizes] = tensorShape(problem, "filter") as [number, number];
  const taps = elementCount(sizes);
  return {
    groups: rows,
    rows: taps,
    paddedRows: taps,
    channels,
    paddedChannels: channels,
    taps: 1,
    depth: channels,
    groupStride: channels * taps,
    rowStride: channels,
    channelStride: 1,
    tapStride: 0,
  };
}

/** Bytes of the images with channels innermost, and of a filter's gradient. */
export function channelsLastBytes(request: PlanRequest): number {
  const { storage, result } = elementsOf(request);
  const filter = filterShape(request);
  return images(request)
    .map((which) => bufferBytes(packedElements(imageShape(request, which)), storage))
    .reduce((sum, bytes) => sum + bytes, 0) +
    (filter === undefined ? 0 : bufferBytes(packedElements(filter), result));
}

/** Microseconds of writing them. */
export function channelsLastTime(request: PlanRequest): number {
  const device = deviceOf(request);
  const { filterStream } = device.rates;
  const filter = filterShape(request);
  const shapes = images(request).map((which) => imageShape(request, which));
  return [...shapes, ...(filter === undefined ? [] : [filter])].reduce((sum, shape) => {
    const bytes = operandBytes(request) * 2 * packedElements(shape);
    return sum + passTime(0, moveTime(bytes, filterStream), device);
  }, 0);
}

/** Adds the images with channels innermost and the passes that write them. */
export function channelsLastImages(
  request: PlanRequest,
  mode: SizeMode,
  buffers: BufferList,
  tensor: Readonly<Record<ConvTensor, number>>,
): { places: Readonly<Record<ConvTensor, number>>; passes: Pass[] } {
  const { storage } = elementsOf(request);
  const passes: Pass[] = [];
  const places = { ...tensor };
  for (const which of images(request)) {
    const shape = imageShape(request, which);
    const name = `${which} with channels last`;
    places[which] = buffers.add(name, "workspace", packedElements(shape), storage);
    const at = { unpacked: tensor[which], packed: places[which] };
    passes.push(...packFilterPass(shape, mode, buffers, at, request.limits, storage));
  }
  return { places, passes };
}

/** Adds a filter's gradient with channels innermost, and the passes that write the result by it; undefined where it leaves as it lies. */
export function channelsLastFilter(
  request: PlanRequest,
  mode: SizeMode,
  buffers: BufferList,
  result: number,
): { place: number; passes: Pass[] } | undefined {
  const shape = filterShape(request);
  if (shape === undefined) return undefined;
  const { result: element } = elementsOf(request);
  const name = "filter with channels last";
  const place = buffers.add(name, "workspace", packedElements(shape), element);
  const at = { unpacked: place, packed: result };
  return { place, passes: packFilterPass(shape, mode, buffers, at, request.limits, element) };
}
