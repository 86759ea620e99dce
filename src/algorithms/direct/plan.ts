import { sumOf } from "../../elements/elements.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { directKernel } from "../../kernels/direct.ts";
import { NO_STEPS } from "../../kernels/epilogue.ts";
import { type SizeMode, WHOLE } from "../../kernels/module.ts";
import {
  accumulationLength,
  type ConvTensor,
  directFlops,
  operandTensors,
  resultTensor,
} from "../../problem/conv_problem.ts";
import { MOST_ITERATIONS } from "../loops.ts";
import type { Plan } from "../plan.ts";
import type { Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { convEpilogue } from "../conv_epilogue.ts";
import { pass, reducePass } from "../passes.ts";
import { quantizePass, sumsRequest } from "../quantize.ts";
import { problemBuffers, reduceShape, resultElements, tensorScalar } from "../tensors.ts";

/** Products of a thread, the check that ends the loop left aside. */
const MOST_TERMS = MOST_ITERATIONS - 5_000;

/** Plans the direct algorithm: works for every problem. */
export function planDirect(request: PlanRequest, mode: SizeMode): Planned<Plan> {
  const { problem, limits } = request;
  const { buffers, tensor, bias, scale, elements: types } = problemBuffers(request);
  const elements = resultElements(problem);
  const splits = Math.max(1, Math.ceil(accumulationLength(problem) / MOST_TERMS));
  const perSplit = Math.ceil(accumulationLength(problem) / splits);
  const [left, right] = operandTensors(problem.op);
  // A thread has one result, and a word of int8 four.
  const apart = types.result === "i8";
  const stored = apart ? "i32" : types.result;
  const whole = tensor[resultTensor(problem.op)];
  const result = apart ? buffers.add("sums", "workspace", elements, stored) : whole;
  const partials = splits > 1
    ? buffers.add("partial results", "workspace", splits * elements, sumOf(types))
    : result;
  const split = { input: WHOLE, filter: WHOLE, output: WHOLE };
  for (const which of [left, right] satisfies ConvTensor[]) {
    split[which] = buffers.split(tensor[which]);
  }
  split[resultTensor(problem.op)] = buffers.split(partials);
  const epilogue = convEpilogue(apart ? sumsRequest(request) : request);
  const kernel = directKernel(
    {
      problem,
      layout: request.layout,
      filterLayout: request.filterLayout,
      splits,
      mode,
      elements: { ...types, storage: tensorScalar(request, left), result: stored },
    },
    splits > 1 ? NO_STEPS : epilogue,
    split,
  );
  const multiplications = directFlops(problem) / 2;
  const places = { ...tensor, bias, [resultTensor(problem.op)]: partials };
  const passes = [pass(kernel, buffers, places, limits, multiplications)];
  if (splits > 1) {
    const shape = reduceShape(request, splits);
    passes.push(
      reducePass(shape, mode, epilogue, buffers, { partials, result, bias }, limits, stored),
    );
  }
  if (apart) {
    passes.push(quantizePass(request, mode, buffers, { sums: result, result: whole, bias, scale }));
  }
  return buffers.plan({
    kernel: canonicalName(kernel.kernel),
    algorithm: "direct",
    passes: elements === 0 ? [] : passes,
    multiplications,
    arithmetic: {
      inner: "taps",
      ...(splits === 1 ? {} : { chain: perSplit, segment: perSplit }),
    },
    notes: [`one thread for each of ${elements} results, ${accumulationLength(problem)} products`],
  });
}
