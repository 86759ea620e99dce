import {
  packBytesKernel,
  type PackBytesShape,
  packBytesThreads,
  packedWords,
} from "../../kernels/pack_bytes.ts";
import type { SizeMode } from "../../kernels/module.ts";
import { type ConvProblem, type ConvTensor, tensorShape } from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { deviceOf } from "../device/h200.ts";
import { moveTime, passTime } from "../device/model.ts";
import { pass } from "../passes.ts";
import type { Pass } from "../plan.ts";
import type { PlanRequest } from "../request.ts";
import type { BufferList } from "../tensors.ts";

/** Words of four channels that a group takes. */
function groupWords({ inChannels, groups }: ConvProblem): number {
  return Math.ceil(inChannels / groups / 4);
}

/**
 * The request whose channels are words of four int8, of operands with channels innermost: to all but the product of two
 * words it is a convolution like any other. Of other operands the request itself.
 */
export function inWords(request: PlanRequest): PlanRequest {
  const { problem, dtype } = request;
  if (dtype !== "i8") return request;
  return {
    ...request,
    problem: { ...problem, inChannels: problem.groups * groupWords(problem) },
  };
}

/** Whether groups have no whole words of channels, so that a pass pads them with zeros. */
export function isPadded({ problem, dtype }: PlanRequest): boolean {
  return dtype === "i8" && problem.inChannels / problem.groups % 4 !== 0;
}

const OPERANDS = ["input", "filter"] as const satisfies readonly ConvTensor[];

/** Runs of a group's channels in an operand, as rows of bytes that become rows of words. */
function channelRuns({ problem }: PlanRequest, which: ConvTensor): PackBytesShape {
  const depth = problem.inChannels / problem.groups;
  return {
    groups: elementCount(tensorShape(problem, which)) / depth,
    places: 1,
    paddedPlaces: 1,
    depth,
    paddedWords: groupWords(problem),
    along: "depth",
    panel: 1,
  };
}

/** Bytes of the operands with padded channels; 0 where nothing is padded. */
export function paddedBytes(request: PlanRequest): number {
  if (!isPadded(request) || request.problem.inChannels === 0) return 0;
  return OPERANDS.reduce(
    (sum, which) => sum + 4 * packedWords(channelRuns(request, which)),
    0,
  );
}

/** Microseconds of padding: what is read, and what is written. */
export function paddingTime(request: PlanRequest): number {
  if (!isPadded(request)) return 0;
  const device = deviceOf(request);
  return OPERANDS.reduce((sum, which) => {
    const bytes = elementCount(tensorShape(request.problem, which));
    return sum + passTime(0, moveTime(bytes, device.rates.stream), device);
  }, moveTime(paddedBytes(request), device.rates.stream));
}

/** Adds the operands with padded channels and the passes that write them. */
export function paddedOperands(
  request: PlanRequest,
  mode: SizeMode,
  buffers: BufferList,
  tensor: Readonly<Record<ConvTensor, number>>,
): { places: Readonly<Record<ConvTensor, number>>; passes: Pass[] } {
  const passes: Pass[] = [];
  const places = { ...tensor };
  for (const which of OPERANDS) {
    const shape = channelRuns(request, which);
    const packed = buffers.add(`padded ${which}`, "workspace", packedWords(shape), "u32");
    const at = { unpacked: tensor[which], packed };
    const [from, to] = [buffers.split(at.unpacked), buffers.split(packed)];
    const kernel = packBytesKernel(shape, mode, from, to);
    passes.push(
      pass(kernel, buffers, at, Math.ceil(packBytesThreads(shape) / 256), request.limits),
    );
    places[which] = packed;
  }
  return { places, passes };
}
