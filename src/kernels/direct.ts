import template from "../../shaders/direct.wgsl" with { type: "text" };
import { accumulationLength, resultTensor, tensorShape } from "../problem/conv_problem.ts";
import { type Elements, elementsTrait, sumOf } from "../elements/elements.ts";
import { zeroOf } from "../elements/scalar.ts";
import { elementCount } from "../tensor/tensor.ts";
import { type ConvTensors, convTerms } from "./conv_terms.ts";
import { applyEpilogue, type EpilogueFactory, epilogueTrait } from "./epilogue.ts";
import { loopIterations, type ModuleBuilder, type SizedKernel, templateKernel } from "./module.ts";

export interface DirectShape extends ConvTensors {
  /** Threads that share one result; more than one leaves partial results to be reduced. */
  readonly splits: number;
  readonly elements: Elements;
}

/** The definition of the convolution, one thread a result: slow, simple, the oracle of the other kernels. */
export function directKernel(
  module: ModuleBuilder,
  shape: DirectShape,
  epilogue: EpilogueFactory,
): SizedKernel {
  const { problem, layout, filterLayout, elements } = shape;
  const { op } = problem;
  const result = resultTensor(op);
  const text = convTerms(module, shape, elements.storage);
  const sum = sumOf(elements);
  const stored = shape.splits > 1 ? sum : elements.result;
  const out = module.bind(result, "write", 1, stored);
  const steps = epilogue(module, 1, (row) => row);
  const rank = problem.filterSize.length;
  const { size } = module;
  const name = `direct_${op.replace("-", "_")}_${
    elementsTrait(elements)
  }_${rank}d_${layout}_${filterLayout}${epilogueTrait(steps)}${module.splitTrait()}`;
  const terms = accumulationLength(problem);
  const count = elementCount(tensorShape(problem, result));
  const values = {
    count: size("count", count),
    splits: size("splits", shape.splits),
    terms: size("terms", terms),
    termsPerSplit: size("terms_per_split", Math.ceil(terms / shape.splits)),
    ...text,
    zero: zeroOf(sum, 1),
    whole: sum === "i32",
    store: out.store(
      "id",
      applyEpilogue(steps, "sum", {
        width: 1,
        side: "rows",
        row: "r1",
        column: "s0",
        offset: "id",
      }),
    ),
    functions: steps.map(({ declarations }) => declarations).join("\n"),
  };
  return templateKernel(module, name, template, values, {
    workgroups: Math.ceil(count * shape.splits / 64),
    threads: 64,
    iterations: loopIterations(Math.ceil(terms / shape.splits)),
  });
}
