import {
  type GemmDType,
  gemmElement,
  gemmOperands,
  type GemmProblem,
  gemmShape,
  type GemmTensor,
} from "../problem/gemm_problem.ts";
import type { DType, TensorData, TypedArrayOf } from "../tensor/dtype.ts";
import { type FillKind, fillTensor } from "../tensor/fill.ts";
import { elementCount } from "../tensor/tensor.ts";
import type { PlanResult } from "./gpu_case.ts";

/** A product's operands. */
export type GemmOperand = Exclude<GemmTensor, "output">;

/** Operands in memory: A and B in the dtype, the others as `gemmElement()` says. */
export type GemmData = { readonly [which in GemmOperand]?: TensorData };

/** What is added to a run's seed, so that no two of its tensors are alike. */
const SEED_OFFSET: Readonly<Record<GemmOperand, number>> = {
  a: 0,
  b: 1,
  c: 2,
  bias: 3,
  residual: 4,
};

/** The operands a problem reads. */
export function gemmReads(problem: GemmProblem): GemmOperand[] {
  return gemmOperands(problem).filter((which) => which !== "output");
}

/** Fills one operand: the same bits for the same shape, dtype, kind and seed everywhere. */
export function fillGemmOperand(
  problem: GemmProblem,
  which: GemmOperand,
  dtype: GemmDType,
  fill: FillKind,
  seed: number,
): TypedArrayOf<DType> {
  const shape = gemmShape(problem, which);
  return fillTensor(gemmElement(dtype, which), shape, fill, seed + SEED_OFFSET[which]).data;
}

/** Fills all operands a problem reads. */
export function fillGemm(
  problem: GemmProblem,
  dtype: GemmDType,
  fill: FillKind,
  seed: number,
): GemmData {
  return Object.fromEntries(
    gemmReads(problem).map((
      which,
    ) => [which, fillGemmOperand(problem, which, dtype, fill, seed)]),
  );
}

/** The fill of made data where none is named: of integers all that int8 holds. */
export function defaultFill(dtype: GemmDType): FillKind {
  return dtype === "i8" ? "int8" : "uniform01";
}

/** What a product's plan leaves. */
export function gemmResult(problem: GemmProblem, dtype: GemmDType): PlanResult<DType> {
  return {
    role: "output",
    dtype: gemmElement(dtype, "output"),
    count: elementCount(gemmShape(problem, "output")),
  };
}

/** Features that a device needs for a dtype. */
export function gemmFeatures(dtype: GemmDType): string[] {
  return dtype === "f16" ? ["shader-f16"] : dtype === "f64" ? ["shader-f64"] : [];
}
