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

/** Channels of a group from which on loads take several at once where these lie together. */
const VECTOR = 4;

/**
 * The request whose images are written once more with channels innermost before they are multiplied, where implicit GEMM may do
 * that: of nchw, which matrix units load one half at a time, and so it does where it is asked for. Undefined elsewhere.
 */
export function channelsLast(request: PlanRequest): PlanRequest | undefined {
  const { problem, layout, dtype, variant } = request;
  if (layout !== "nchw" || dtype === "i8") return undefined;
  const whole = images(request).every((which) =>
    tensorShape(problem, which)[1]! / problem.groups % VECTOR === 0
  );
  const wanted = whole && productUnit(request) !== undefined;
  return wanted || variant?.channelsLast ? { ...request, layout: "nhwc" } : undefined;
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

/** Bytes of the images with channels innermost. */
export function channelsLastBytes(request: PlanRequest): number {
  const { storage } = elementsOf(request);
  return images(request)
    .reduce(
      (sum, which) => sum + bufferBytes(packedElements(imageShape(request, which)), storage),
      0,
    );
}

/** Microseconds of writing them. */
export function channelsLastTime(request: PlanRequest): number {
  const device = deviceOf(request);
  const { filterStream } = device.rates;
  return images(request).reduce((sum, which) => {
    const bytes = operandBytes(request) * 2 * packedElements(imageShape(request, which));
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
