import { sumOf } from "../../elements/elements.ts";
import { directKernel } from "../../kernels/direct.ts";
import { NO_STEPS } from "../../kernels/epilogue.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import type { SizeMode } from "../../kernels/module.ts";
import {
  accumulationLength,
  CONV_DTYPES,
  directFlops,
  operandTensors,
  resultTensor,
} from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import { deviceOf } from "../device/h200.ts";
import { passTime, productTime } from "../device/model.ts";
import {
  convEpilogue,
  MOST_ITERATIONS,
  pass,
  quantizePass,
  reducePass,
  sumsRequest,
} from "../passes.ts";
import type { Plan } from "../plan.ts";
import type { Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { problemBuffers, reduceShape, resultElements, tensorScalar } from "../tensors.ts";

/** Products of a thread, the check that ends the loop left aside. */
const MOST_TERMS = MOST_ITERATIONS - 5_000;

export function planDirect(request: PlanRequest, mode: SizeMode): Planned<Plan> {
  const { problem, layout, filterLayout } = request;
  const tensors = problemBuffers(request, mode);
  const { buffers, tensor, ends, elements: types } = tensors;
  const elements = resultElements(problem);
  const products = accumulationLength(problem);
  const splits = Math.max(1, Math.ceil(products / MOST_TERMS));
  const perSplit = Math.ceil(products / splits);
  const which = resultTensor(problem.op);
  // A thread has one result, and a word of int8 four.
  const apart = types.result === "i8";
  const stored = apart ? "i32" : types.result;
  const result = apart ? buffers.workspace("sums", elements, stored) : tensor[which];
  const partials = splits > 1
    ? buffers.workspace("partial results", splits * elements, sumOf(types))
    : result;
  const storage = tensorScalar(request, operandTensors(problem.op)[0]);
  const shape = { problem, layout, filterLayout, splits };
  const epilogue = convEpilogue(apart ? sumsRequest(request) : request);
  const places = { ...tensor, [which]: partials };
  const kernel = directKernel(
    buffers.module(places),
    { ...shape, elements: { ...types, storage, result: stored } },
    splits > 1 ? NO_STEPS : epilogue,
  );
  const multiplications = directFlops(problem) / 2;
  const between = { partials, result, ...ends };
  const passes = [
    pass(kernel, buffers, { ...places, ...ends }, multiplications),
    ...(splits > 1
      ? [reducePass(reduceShape(request, splits), epilogue, buffers, between, stored)]
      : []),
    ...(apart ? [quantizePass(request, tensors, result, tensor[which])] : []),
  ];
  return buffers.plan({
    kernel: canonicalName(kernel.kernel),
    algorithm: "direct",
    passes: elements === 0 ? [] : passes,
    multiplications,
    arithmetic: {
      inner: "taps",
      ...(splits === 1 ? {} : { chain: perSplit, segment: perSplit }),
    },
    notes: [`one thread for each of ${elements} results, ${products} products`],
  });
}

/** One thread a result: the oracle on the GPU, and the last resort, since it needs no workspace. */
export const direct: Algorithm<PlanRequest> = {
  name: "direct",
  options: [],
  dtypes: CONV_DTYPES,
  refuse: () => undefined,
  geometry: (request) => request,
  price(request) {
    const device = deviceOf(request);
    return passTime(productTime(directFlops(request.problem) / 2, device.rates.direct), 0, device);
  },
  plan: planDirect,
};
