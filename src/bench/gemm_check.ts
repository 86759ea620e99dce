import { type Gate, gateFor, measureAccuracy } from "../accuracy/mod.ts";
import { F16_CHAIN } from "../kernels/micro_kernel.ts";
import type { GemmArithmetic } from "../problem/gemm_arithmetic.ts";
import type { GemmDType, GemmProblem } from "../problem/gemm_problem.ts";
import { type GemmInputs, referenceGemm } from "../reference/gemm.ts";
import type { ReferenceResult } from "../reference/reference.ts";
import type { TensorData } from "../tensor/dtype.ts";
import { rowMajorStrides } from "../tensor/tensor.ts";
import { type Checked, judged, sampleCount } from "./check.ts";
import { type CheckMode, type Coverage, coverageOf, gemmCoverable, strataOf } from "./coverage.ts";
import type { GemmData } from "./gemm_operands.ts";

/** What a reference is computed from. */
export interface GemmReferenceRequest {
  readonly problem: GemmProblem;
  readonly dtype: GemmDType;
  readonly operands: GemmData;
  readonly mode: CheckMode;
  /** Whether there is a result that no activation has changed, to be projected. */
  readonly linear?: boolean;
  readonly seed: number;
  readonly onProgress?: (fraction: number) => void;
}

/** A sample reads B across its rows, so it is a quarter of what a convolution's may be. */
const SAMPLE_SHARE = 4;

/** How a product is covered. */
export function gemmCoverage(
  { problem, mode, linear = problem.activation === "none" }: Pick<
    GemmReferenceRequest,
    "problem" | "mode" | "linear"
  >,
): Coverage {
  return coverageOf({ mode, linear, ...gemmCoverable(problem) });
}

/** The problem with its factors as kernels hold them: in f32, of f32 and f16. */
export function heldProblem(problem: GemmProblem, dtype: GemmDType): GemmProblem {
  if (dtype === "f64" || dtype === "i8") return problem;
  return { ...problem, alpha: Math.fround(problem.alpha), beta: Math.fround(problem.beta) };
}

/** Computes the FP64 reference: whole, or a seeded sample, as `gemmCoverage()` says. */
export async function computeGemmReference(
  request: GemmReferenceRequest,
): Promise<ReferenceResult> {
  const { dtype, seed, onProgress } = request;
  const problem = heldProblem(request.problem, dtype);
  const { m, n, k, batch } = problem;
  const count = sampleCount(m * batch, SAMPLE_SHARE * k);
  const coverage = gemmCoverage(request);
  const whole = coverage === "whole" || batch * m * n <= count;
  return await referenceGemm(problem, request.operands as GemmInputs, {
    ...(whole
      ? {}
      : coverage === "strata"
      ? { indices: strataOf([batch, m, n], 1, m, k, seed) }
      : { sample: { count, seed } }),
    ...(onProgress ? { onProgress } : {}),
    integers: dtype === "i8",
  });
}

/** Compares a result, as it lies in memory, with its reference. Rows are its channels. */
export function checkGemm(
  problem: GemmProblem,
  arithmetic: GemmArithmetic,
  reference: ReferenceResult,
  result: TensorData,
): Checked {
  if (result instanceof BigInt64Array || result instanceof BigUint64Array) {
    throw new TypeError("Cannot check a product: its result is made of 64-bit integers");
  }
  const { unitRoundoff, gate } = precision(problem, arithmetic);
  const report = measureAccuracy(result, reference, {
    strides: rowMajorStrides(reference.shape),
    channelAxis: 1,
    unitRoundoff,
    lengths: new Float64Array(problem.m).fill(problem.k),
  });
  return judged(report, gate);
}

/** What rounds, and how often. */
function precision(
  problem: GemmProblem,
  { dtype, accumulate }: GemmArithmetic,
): { unitRoundoff: number; gate: Gate } {
  // A step of the epilogue may round a product and a sum.
  const steps = [
    problem.alpha !== 1,
    problem.beta !== 0,
    problem.bias !== "none",
    problem.residual,
  ].filter(Boolean).length;
  const { k, activation } = problem;
  const gate = (unitRoundoff: number, sums: number) => ({
    unitRoundoff,
    gate: gateFor({ unitRoundoff, accumulationLength: sums + 2 * steps, activation }),
  });
  switch (dtype) {
    case "f32":
      return gate(2 ** -24, k);
    case "f64":
      return gate(2 ** -53, k);
    case "f16":
      // Sums in f32 are rounded to f16 once; chains in f16 at every step.
      return gate(2 ** -11, 1 + (accumulate === "f16" ? Math.min(k, F16_CHAIN) : 0));
    case "i8":
      return { unitRoundoff: 2 ** -24, gate: EXACT };
  }
}

/** No error at all; the smallest number, as it is multiplied by what may be infinite. */
const EXACT: Gate = {
  maxBoundRatio: 0,
  maxRelL2: 0,
  maxMagnitudeL2: Number.MIN_VALUE,
  maxChannelRmsRatio: 0,
  independentErrors: Infinity,
};
