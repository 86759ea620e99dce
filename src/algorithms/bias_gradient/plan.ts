import { biasOf, elementsOf } from "../../elements/elements.ts";
import {
  channelSumsKernel,
  type ChannelSumsShape,
  channelSumsThreads,
} from "../../kernels/channel_sums.ts";
import { NO_STEPS } from "../../kernels/epilogue.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { convProblem, FLOAT_DTYPES, tensorShape } from "../../problem/conv_problem.ts";
import { LAYOUTS } from "../../tensor/layout.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { deviceOf } from "../device/h200.ts";
import { copyTime, type DeviceModel } from "../device/model.ts";
import { pass, reducePass, runnable } from "../passes.ts";
import type { Plan } from "../plan.ts";
import { expectPlanned, type Planned, refusal } from "../refusal.ts";
import { expectRequest, type PlanRequest } from "../request.ts";
import { BufferList, flatRow } from "../tensors.ts";

/** Workgroups that a multiprocessor should have, to hide its loads. */
const WORKGROUPS = 8;
/** Loads of a thread that are worth a workgroup more. */
const LEAST_LOADS = 8;
/** Segments at most: one pass sums what they leave. */
const MOST_SEGMENTS = 4096;

/** Milliseconds: the gradient is read once, and what segments leave is written and read again. */
function predictedMs({ list }: BufferList, device: DeviceModel): number {
  const [gradient, , partials] = list;
  const { stream } = device.rates;
  const read = copyTime(gradient!.bytes, stream, device);
  if (partials === undefined) return read / 1000;
  return (read + copyTime(2 * partials.bytes, stream, device)) / 1000;
}

/** All that planning a bias' gradient needs to know; the problem's operation does not matter. */
export interface BiasGradientRequest
  extends Pick<PlanRequest, "problem" | "layout" | "limits" | "device" | "sizes"> {
  /** Of the output's gradient. */
  readonly dtype: "f32" | "f16" | "bf16";
  /** Of the bias' gradient; the output's where absent. */
  readonly outDtype?: "f32" | "f16" | "bf16";
}

/** The output's gradient as [outer][channels][inner]. */
function channelSumsShape({ problem, layout }: BiasGradientRequest) {
  const [batch, channels, ...size] = tensorShape(problem, "output") as [number, number];
  const places = elementCount(size);
  if (layout === "nhwc") return { outer: batch * places, channels, inner: 1 };
  return layout === "nchw"
    ? { outer: batch, channels, inner: places }
    : { outer: 1, channels, inner: places * batch };
}

/** As many segments as give each multiprocessor enough workgroups, and each thread enough to do. */
function segmentsOf(shape: Omit<ChannelSumsShape, "segments">, device: DeviceModel): number {
  const { blocks, along, places } = channelSumsThreads(shape);
  const wanted = Math.ceil(WORKGROUPS * device.multiprocessors / Math.max(1, blocks));
  const worth = Math.floor(places / (along * LEAST_LOADS));
  const needed = Math.ceil(places / (along * 2 ** 16));
  return Math.max(1, needed, Math.min(wanted, worth, MOST_SEGMENTS));
}

/**
 * Plans the gradient of a convolution's bias: the output's gradient summed over images and places, in f32, always in the
 * same order on the same device.
 *
 * @throws {RangeError | UnsupportedError} where there is no plan.
 * @example
 * ```ts
 * import { DEFAULT_LIMITS, parseDescriptor } from "@wgconv/wgconv";
 * import { planBiasGradient } from "@wgconv/wgconv/internals";
 * import assert from "node:assert/strict";
 *
 * const problem = parseDescriptor("mb32ic64ih56oc64kh3ph1");
 * const request = { problem, dtype: "f32", layout: "nhwc", limits: DEFAULT_LIMITS } as const;
 * assert.deepEqual(planBiasGradient(request).buffers.map(({ role }) => role), [
 *   "output",
 *   "bias",
 *   "workspace",
 * ]);
 * ```
 */
export function planBiasGradient(request: BiasGradientRequest): Plan {
  return expectPlanned(tryPlanBiasGradient(request));
}

/** As {@linkcode planBiasGradient}, a refusal as data. */
export function tryPlanBiasGradient(given: BiasGradientRequest): Planned<Plan> {
  expectRequest(given);
  const request = { ...given, problem: convProblem(given.problem) };
  const { dtype, outDtype = dtype, layout, limits, sizes: mode = "constant" } = request;
  const said: readonly (readonly [string, string, readonly string[]])[] = [
    ["dtype", dtype, FLOAT_DTYPES],
    ["outDtype", outDtype, FLOAT_DTYPES],
    ["layout", layout, LAYOUTS],
  ];
  const wrong = said.find(([, word, words]) => !words.includes(word));
  if (wrong !== undefined) {
    const [name, word, words] = wrong;
    return refusal("problem", `${name} ${word} of a bias' gradient is none of ${words.join(", ")}`);
  }
  const device = deviceOf(request);
  const types = elementsOf(request);
  const whole = channelSumsShape(request);
  const { channels } = whole;
  const segments = segmentsOf(whole, device);
  const shape = { ...whole, segments };
  const buffers = new BufferList(limits, mode);
  const elements = whole.outer * channels * whole.inner;
  const output = buffers.add("output", "output", elements, types.storage);
  const bias = buffers.add("bias", "bias", channels, biasOf(types));
  const sums = segments === 1
    ? bias
    : buffers.workspace("partial sums", segments * channels, "f32");
  const stored = segments === 1 ? biasOf(types) : "f32";
  const places = { output, sums };
  const kernel = channelSumsKernel(buffers.module(places), shape, types.storage, stored);
  const passes = [pass(kernel, buffers, places)];
  if (segments > 1) {
    const between = { partials: sums, result: bias };
    passes.push(reducePass(flatRow(channels, segments), NO_STEPS, buffers, between, biasOf(types)));
  }
  const plan = buffers.plan({
    kernel: canonicalName(kernel.kernel),
    algorithm: "bias-gradient",
    passes: channels === 0 ? [] : passes,
    multiplications: 0,
    ...(device.software ? {} : {
      predictedMs: predictedMs(buffers, device),
      predictedDevice: device.name,
    }),
    arithmetic: {},
    notes: [`${segments} workgroups share the places of a channel`],
  });
  return runnable(plan, request);
}
