import {
  activationStep,
  addTensorStep,
  biasStep,
  type EpilogueFactory,
  scaleStep,
} from "../../kernels/epilogue.ts";
import type { GemmProblem, GemmTensor } from "../../problem/gemm_problem.ts";
import type { ModuleBuilder } from "../../kernels/module.ts";
import type { OutputMap } from "../../kernels/output.ts";
import type { BufferList } from "../tensors.ts";
import { type Elements, sumOf } from "../../elements/elements.ts";

/** Where a product's results lie: row by row, a matrix of the batch after the other, and so each of several splits. */
export function resultMap(
  module: ModuleBuilder,
  { m, n, batch }: GemmProblem,
  vector: OutputMap["vector"],
  splits = 1,
): OutputMap {
  const columns = module.size("n", n);
  return {
    rows: module.size("m", m),
    columns,
    rowStride: columns,
    period: columns,
    outerStride: module.size("zero", 0),
    innerStride: module.size("one", 1),
    base: `group * ${module.size("out_batch", m * n)}${
      splits === 1 ? "" : ` + split * ${module.size("out_split", batch * m * n)}`
    }`,
    vector,
  };
}

/** α, then β·C, then bias, then the activation, then the residual. */
export function gemmEpilogue(
  problem: GemmProblem,
  elements: Elements,
  buffers: BufferList,
  place: Partial<Record<GemmTensor, number>>,
): EpilogueFactory {
  const { result } = elements;
  const sum = sumOf(elements);
  return (module, width, rowIndex) => {
    const tensor = (name: "c" | "residual") =>
      module.tensor(name, "read", width, buffers.split(place[name]!), result);
    const { alpha, beta, bias, activation, residual } = problem;
    return [
      ...(alpha === 1 ? [] : [scaleStep("alpha", alpha, sum)]),
      ...(beta === 0 ? [] : [addTensorStep("beta", tensor("c"), beta)]),
      ...(bias === "none" ? [] : [
        biasStep(
          module,
          bias === "row" ? "rows" : "columns",
          buffers.split(place.bias!),
          bias === "row" ? rowIndex : undefined,
          result,
        ),
      ]),
      ...(activation === "none" ? [] : [activationStep(activation, sum)]),
      ...(residual ? [addTensorStep("residual", tensor("residual"), 1)] : []),
    ];
  };
}
