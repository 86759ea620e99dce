/** Data of the tests beside it: small problems with operands, and the plainest convolution. */
import {
  type ConvProblem,
  convProblem,
  type ConvProblemInit,
  type ConvTensor,
  operandTensors,
  type Operation,
  resultTensor,
  tensorShape,
} from "../../src/problem/conv_problem.ts";
import { convertLayout, filterLayoutFor, type Layout } from "../../src/tensor/layout.ts";
import { elementCount, rowMajorStrides, tensor, unravelIndex } from "../../src/tensor/tensor.ts";
import type { ReferenceInputs } from "../../src/reference/reference.ts";
import { randomStream } from "../../src/reference/sample.ts";

/** X, W and Y (or their gradients) in canonical order. */
export type Tensors = { readonly [T in ConvTensor]: Float64Array<ArrayBuffer> };

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

/** Sums over every output and every tap, straight from the definition. */
export function naiveConv(
  problem: ConvProblem,
  tensors: Tensors,
): { values: Float64Array; magnitudes: Float64Array } {
  const result = resultTensor(problem.op);
  const [first, second] = operandTensors(problem.op);
  const count = elementCount(tensorShape(problem, result));
  const values = new Float64Array(count);
  const magnitudes = new Float64Array(count);
  const [outputShape, filterShape, inputShape] = (["output", "filter", "input"] as const)
    .map((which) => tensorShape(problem, which)) as [number[], number[], number[]];
  const inputStrides = rowMajorStrides(inputShape);
  const filterStrides = rowMajorStrides(filterShape);
  for (let output = 0; output < elementCount(outputShape); output++) {
    const [n, k, ...p] = unravelIndex(output, outputShape) as [number, number, ...number[]];
    const group = Math.floor(k / (problem.outChannels / problem.groups));
    for (let tap = 0; tap < elementCount(filterShape) / problem.outChannels; tap++) {
      const [c, ...r] = unravelIndex(tap, filterShape.slice(1)) as [number, ...number[]];
      const h = p.map((at, axis) =>
        at * problem.stride[axis]! + r[axis]! * problem.dilation[axis]! -
        problem.paddingBegin[axis]!
      );
      if (h.some((at, axis) => at < 0 || at >= problem.inputSize[axis]!)) continue;
      const at = {
        input: [n, group * filterShape[1]! + c, ...h]
          .reduce((sum, place, axis) => sum + place * inputStrides[axis]!, 0),
        filter: k * filterStrides[0]! + tap,
        output,
      };
      const product = tensors[first][at[first]]! * tensors[second][at[second]]!;
      values[at[result]]! += product;
      magnitudes[at[result]]! += Math.abs(product);
    }
  }
  return { values, magnitudes };
}
