import {
  activationStep,
  addTensorStep,
  biasStep,
  type EpilogueFactory,
  scaleStep,
} from "../../kernels/epilogue.ts";
import type { GemmProblem, GemmTensor } from "../../problem/gemm_problem.ts";
import type { BufferList } from "../tensors.ts";
import { type Elements, sumOf } from "../../elements/elements.ts";

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
