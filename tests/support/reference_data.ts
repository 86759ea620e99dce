/** Data of references' tests: small problems with operands, and their sums. */
import fc from "fast-check";
import {
  type ConvProblem,
  convProblem,
  type ConvProblemInit,
  type ConvTensor,
  operandTensors,
  type Operation,
  outputSizeOf,
  tensorShape,
} from "../../src/problem/conv_problem.ts";
import { convertLayout, filterLayoutFor, type Layout } from "../../src/tensor/layout.ts";
import { elementCount, tensor } from "../../src/tensor/tensor.ts";
import type { ReferenceInputs } from "../../src/reference/reference.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { plainConv, type PlainResult } from "./plain_reference.ts";
import { randomStream } from "../../src/reference/sample.ts";

/** X, W and Y (or their gradients) in canonical order. */
export type Tensors = { readonly [T in ConvTensor]: Float64Array<ArrayBuffer> };

/** Random sizes of axes into which their filter fits, of at most so many each. */
export function axisSizes(
  most: { input: number; filter: number; stride: number; dilation: number },
) {
  const size = (max: number, min = 1) => fc.integer({ min, max });
  const axis = fc.record({
    input: size(most.input),
    filter: size(most.filter),
    stride: size(most.stride),
    dilation: size(most.dilation),
    begin: size(3, 0),
    end: size(3, 0),
  }).filter((a) => outputSizeOf(a.input, a.filter, a.stride, a.begin, a.end, a.dilation) >= 1);
  return (count: number) =>
    fc.array(axis, { minLength: 1, maxLength: count }).map((axes) => ({
      inputSize: axes.map((a) => a.input),
      filterSize: axes.map((a) => a.filter),
      stride: axes.map((a) => a.stride),
      dilation: axes.map((a) => a.dilation),
      paddingBegin: axes.map((a) => a.begin),
      paddingEnd: axes.map((a) => a.end),
    }));
}

/** Seeded values in [−1, 1) for all three tensors of a problem. */
export function randomTensors(problem: ConvProblem, seed: number): Tensors {
  const random = randomStream(seed);
  const make = (which: ConvTensor) =>
    Float64Array.from(
      { length: elementCount(tensorShape(problem, which)) },
      () => 2 * random() - 1,
    );
  return { input: make("input"), filter: make("filter"), output: make("output") };
}

/** The operands of `problem.op`, copied to `layout` and the filter layout that goes with it. */
export function inputsOf(
  problem: ConvProblem,
  tensors: Partial<Tensors>,
  layout: Layout = "nchw",
): ReferenceInputs {
  return Object.fromEntries(
    operandTensors(problem.op).map((which) => {
      const canonical = tensor("f64", tensorShape(problem, which), tensors[which]!);
      return which === "filter"
        ? [which, {
          data: convertLayout(canonical, "kcrs", filterLayoutFor(layout)).data,
          layout: filterLayoutFor(layout),
        }]
        : [which, { data: convertLayout(canonical, "nchw", layout).data, layout }];
    }),
  );
}

/** The same problem with another operation. */
export function withOp(init: ConvProblemInit, op: Operation): ConvProblem {
  return convProblem({ ...init, op });
}

/** Sums straight from the definition, of tensors in canonical order. */
export function naiveConv(problem: ConvProblem, tensors: Tensors): PlainResult {
  return plainConv(problem, tensors, "nchw", "kcrs", NO_EPILOGUE);
}
