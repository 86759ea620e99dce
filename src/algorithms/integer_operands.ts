/** How convolutions of u8 operands, or with zero points, become plain ones of i8. */
import { elementsOf } from "../elements/elements.ts";
import {
  finishSumsKernel,
  signedBytes,
  signedBytesKernel,
  type SignedBytesShape,
  zeroBiasKernel,
} from "../kernels/bytes.ts";
import { accumulationLength, type ConvProblem } from "../problem/conv_problem.ts";
import type { ByteDType } from "../problem/conv_elements.ts";
import { planTime, predictPlanMs } from "./cost/auto.ts";
import { deviceOf } from "./device/h200.ts";
import { convEpilogue, pass, runnable } from "./passes.ts";
import type { BufferRole, Pass, Plan } from "./plan.ts";
import { isRefusal, type Planned, refusal } from "./refusal.ts";
import type { PlanRequest } from "./request.ts";
import { type BufferList, problemBuffers, resultElements, tensorElements } from "./tensors.ts";

/** Subtracted from the values of each type to make them i8. */
const OFFSET: Readonly<Record<ByteDType, number>> = { i8: 0, u8: 128 };

/** How operands become i8, and what the sums then need. */
interface Signed {
  /** The input's zero point, as i8. */
  readonly inputZero: number;
  /** The filters', as i8; `channel` where an operand holds them, from which kernels subtract `filterOffset`. */
  readonly filterZero: number | "channel";
  readonly filterOffset: number;
  /** The copy of the input as i8, with a border of its zero point; undefined where the input serves as it is. */
  readonly input: SignedBytesShape | undefined;
  /** The copy of the filters as i8, with a filter of ones after each group's; undefined where they serve as they are. */
  readonly filter: SignedBytesShape | undefined;
  /** Whether a last pass subtracts zeroPoint·Σx from the sums, for the filters' zero points. */
  readonly corrected: boolean;
  /** Whether a pass writes the bias: with the input's zero point in it, or with a place for each filter of ones. */
  readonly biased: boolean;
  readonly problem: ConvProblem;
}

/** How a request's operands become plain i8; undefined where they are: i8 with zero points of 0. */
function signedOperands({ problem, epilogue, integers = {} }: PlanRequest): Signed | undefined {
  const { inputDtype = "i8", inputZeroPoint = 0, filterDtype = "i8", filterZeroPoint = 0 } =
    integers;
  const filterOffset = OFFSET[filterDtype];
  const inputZero = inputZeroPoint - OFFSET[inputDtype];
  const filterZero = filterZeroPoint === "channel" ? "channel" : filterZeroPoint - filterOffset;
  const corrected = filterZero !== 0;
  const { batch, inChannels, outChannels, groups, inputSize, paddingBegin, paddingEnd } = problem;
  const bordered = inputZero !== 0 && [...paddingBegin, ...paddingEnd].some((pad) => pad > 0);
  const input = bordered
    ? {
      batch,
      axes: inputSize.map((size, d) => ({
        size,
        before: paddingBegin[d]!,
        after: paddingEnd[d]!,
      })),
      run: inChannels,
      unsigned: inputDtype === "u8",
      border: inputZero,
    }
    : inputDtype === "u8"
    ? flipped(tensorElements(problem, "input"))
    : undefined;
  const filter = corrected
    ? {
      batch: groups,
      axes: [{ size: outChannels / groups, before: 0, after: 1 }],
      run: accumulationLength(problem),
      unsigned: filterDtype === "u8",
      border: 1,
    }
    : filterDtype === "u8"
    ? flipped(tensorElements(problem, "filter"))
    : undefined;
  if (input === undefined && filter === undefined && inputZero === 0) return undefined;
  const none = paddingBegin.map(() => 0);
  return {
    inputZero,
    filterZero,
    filterOffset,
    input,
    filter,
    corrected,
    biased: inputZero !== 0 || corrected && epilogue.bias,
    problem: {
      ...problem,
      ...(bordered
        ? {
          inputSize: inputSize.map((size, d) => size + paddingBegin[d]! + paddingEnd[d]!),
          paddingBegin: none,
          paddingEnd: none,
        }
        : {}),
      outChannels: outChannels + (corrected ? groups : 0),
    },
  };
}

/** A copy of u8 as i8 without borders, in whole words as buffers are. */
function flipped(bytes: number): SignedBytesShape {
  return { batch: 1, axes: [], run: Math.ceil(bytes / 4) * 4, unsigned: true, border: 0 };
}

/**
 * Plans a convolution of u8 operands or with zero points as a plain one of i8. u8 values and their zero points become i8 by
 * subtracting 128. A border of the input's zero point replaces padding, and the bias subtracts zeroPoint·Σw, which that zero
 * point adds to a filter's sums. Where filters have zero points, a filter of ones in each group gives Σx, and a last pass
 * subtracts zeroPoint·Σx. Sums are exact modulo 2^32.
 *
 * @param plain Plans the plain convolution.
 * @returns undefined where the operands are plain.
 */
export function planIntegers(
  request: PlanRequest,
  plain: (request: PlanRequest) => Planned<Plan>,
): Planned<Plan> | undefined {
  const signed = signedOperands(request);
  if (signed === undefined) return undefined;
  const { problem, corrected, biased } = signed;
  const { epilogue, maxWorkspaceBytes = Infinity } = request;
  const nothing = resultElements(problem) === 0 || accumulationLength(problem) === 0;
  const { buffers, tensor, ends: { bias, scale } } = problemBuffers(
    request,
    nothing ? "uniform" : request.sizes ?? "constant",
  );
  const filterZeroPoint = signed.filterZero === "channel"
    ? buffers.list.push({
      name: "filter's zero points",
      role: "filterZeroPoint",
      bytes: Math.max(16, 4 * request.problem.outChannels),
    }) - 1
    : undefined;
  const copyOf = (name: string, shape: SignedBytesShape | undefined) =>
    shape && buffers.workspace(name, signedBytes(shape), "i8");
  const input = copyOf("input as i8", signed.input) ?? tensor.input;
  const filter = copyOf("filter as i8", signed.filter) ?? tensor.filter;
  const zeroBias = biased
    ? buffers.workspace("bias of zero points", problem.outChannels, "i32")
    : bias;
  const sums = corrected
    ? buffers.workspace("sums", resultElements(problem), "i32")
    : tensor.output;
  if (buffers.refused !== undefined) return buffers.refused;
  const taken = buffers.workspaceBytes();
  if (taken > maxWorkspaceBytes) {
    return refusal(
      "workspace",
      `operands of u8 and zero points take ${taken} bytes of workspace, ` +
        `at most ${maxWorkspaceBytes} are allowed`,
    );
  }
  const { integers: _, maxWorkspaceShare: __, ...others } = request;
  const following = corrected
    ? { bias: biased, activation: "none" as const }
    : { ...epilogue, bias: biased || epilogue.bias };
  const becomes: PlanRequest = {
    ...others,
    problem,
    epilogue: following,
    ...(corrected ? { outDtype: "i32" } : {}),
    maxWorkspaceBytes: maxWorkspaceBytes - taken,
  };
  const plan = plain(becomes);
  if (isRefusal(plan)) return plan;
  const operands = { input, filter, output: sums, bias: zeroBias, scale };
  const places: Partial<Record<BufferRole, number | undefined>> = operands;
  // The place in the whole plan of each buffer of the plain one.
  const own = plan.buffers.map((buffer) => places[buffer.role] ?? buffers.list.push(buffer) - 1);
  const before = [
    ...signedPass(signed.input, buffers, tensor.input, input),
    ...signedPass(signed.filter, buffers, tensor.filter, filter),
    ...(biased ? [zeroBiasPass(signed, request, buffers, { filter, bias, zeroBias })] : []),
  ];
  const ends = { sums, result: tensor.output, scale, filterZeroPoint };
  const after = corrected ? [zeroSumsPass(signed, request, buffers, ends)] : [];
  const products = plan.passes.map((one) => ({
    ...one,
    bindings: one.bindings.map((binding) => ({ ...binding, buffer: own[binding.buffer]! })),
  }));
  const predicted = predictPlanMs(becomes, plan);
  const around = planTime({ passes: [...before, ...after] }, deviceOf(request)) / 1e3;
  const whole = buffers.plan({
    ...plan,
    passes: plan.passes.length === 0 ? [] : [...before, ...products, ...after],
    ...(predicted === undefined
      ? {}
      : { predictedMs: predicted + around, predictedDevice: deviceOf(request).name }),
    notes: [...plan.notes, ...notesOf(signed)],
  });
  return runnable(whole, request);
}

function signedPass(
  shape: SignedBytesShape | undefined,
  buffers: BufferList,
  unsigned: number,
  signed: number,
): Pass[] {
  if (shape === undefined || signedBytes(shape) === 0) return [];
  const places = { unsigned, signed };
  return [pass(signedBytesKernel(buffers.module(places), shape), buffers, places)];
}

function zeroBiasPass(
  { problem, inputZero }: Signed,
  { problem: { outChannels } }: PlanRequest,
  buffers: BufferList,
  { filter, bias, zeroBias }: Readonly<
    Record<"bias" | "zeroBias", number | undefined> & { filter: number }
  >,
): Pass {
  const { groups } = problem;
  const shape = {
    groups,
    filters: problem.outChannels / groups,
    biased: outChannels / groups,
    depth: accumulationLength(problem),
    zeroPoint: inputZero,
  };
  const kernel = zeroBiasKernel(buffers.module({ filter }), shape, bias !== undefined);
  return pass(kernel, buffers, { filter, bias, zero_bias: zeroBias });
}

function zeroSumsPass(
  { filterZero, filterOffset }: Signed,
  request: PlanRequest,
  buffers: BufferList,
  places:
    & Readonly<Record<"scale" | "filterZeroPoint", number | undefined>>
    & Readonly<Record<"sums" | "result", number>>,
): Pass {
  const { problem, epilogue } = request;
  const { sums, result } = places;
  const stored = elementsOf(request).result === "i8" ? "i8" : "i32";
  const shape = {
    elements: resultElements(problem),
    channels: problem.outChannels,
    zeros: { groups: problem.groups, point: filterZero, offset: filterOffset },
  };
  // The bias is in the sums.
  const ending = convEpilogue({ ...request, epilogue: { ...epilogue, bias: false } });
  const kernel = finishSumsKernel(buffers.module({ sums, result }), shape, ending, stored);
  return pass(kernel, buffers, places);
}

function notesOf({ input, filter, biased, corrected, inputZero }: Signed): string[] {
  const copied = [...(input ? ["input"] : []), ...(filter ? ["filter"] : [])].join(" and ");
  return [
    ...(copied === "" ? [] : [
      `${copied} written once as i8` +
      (input && input.axes.length > 0 ? `, the padding as zero point ${inputZero}` : ""),
    ]),
    ...(biased && inputZero !== 0 ? ["the input's zero point is in the bias"] : []),
    ...(corrected
      ? ["a filter of ones in each group sums the input for the filters' zero points"]
      : []),
  ];
}
