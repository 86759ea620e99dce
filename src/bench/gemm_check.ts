import {
  F16,
  F16_SUMS,
  F32,
  F64,
  I32,
  judge,
  measureAccuracy,
  NO_ERRORS,
  type Precision,
  type Yardstick,
} from "../accuracy/mod.ts";
import { type GemmDType, gemmFlops, type GemmProblem } from "../problem/gemm_problem.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { type GemmInputs, referenceGemm } from "../reference/gemm.ts";
import type { ReferenceResult } from "../reference/reference.ts";
import { gemmYardstick } from "../simulate/gemm_yardstick.ts";
import type { TensorData } from "../tensor/dtype.ts";
import { rowMajorStrides } from "../tensor/tensor.ts";
import { type Checked, judged, sampleCount, WHOLE_FLOPS, yardstickFor } from "./check.ts";
import type { GemmData } from "./gemm_operands.ts";

/** What a reference is computed from. */
export interface GemmReferenceRequest {
  readonly problem: GemmProblem;
  readonly dtype: GemmDType;
  readonly operands: GemmData;
  readonly mode: "sample" | "full";
  readonly seed: number;
  readonly onProgress?: (fraction: number) => void;
}

/** The FP64 reference of a product, and what it was computed from. */
export interface GemmReference extends ReferenceResult {
  readonly problem: GemmProblem;
  readonly dtype: GemmDType;
  readonly operands: GemmInputs;
  readonly seed: number;
}

/** A sample reads B across its rows, so it is a quarter of what a convolution's may be. */
const SAMPLE_SHARE = 4;
/** Sums in twice the precision of f64 take as much longer. */
const COMPENSATED_SHARE = 10;

/** How much longer a sum takes than in FP64. */
function sumCost(dtype: GemmDType): number {
  return dtype === "f64" ? COMPENSATED_SHARE : 1;
}

/** Results that a sample has. */
function sampleOf({ m, k, batch }: GemmProblem, dtype: GemmDType): number {
  return sampleCount(m * batch, SAMPLE_SHARE * sumCost(dtype) * k);
}

/** Whether the reference is computed whole: where that was asked for, or the problem is small. */
export function wholeReference(
  problem: GemmProblem,
  dtype: GemmDType,
  mode: "sample" | "full",
): boolean {
  const { m, n, batch } = problem;
  return mode === "full" || gemmFlops(problem) <= WHOLE_FLOPS / sumCost(dtype) ||
    batch * m * n <= sampleOf(problem, dtype);
}

/**
 * Computes the FP64 reference: whole, or a seeded sample where that was asked for and the problem is large.
 *
 * @throws {RangeError} where results of int8 leave 32 bits.
 */
export async function computeGemmReference(
  request: GemmReferenceRequest,
): Promise<GemmReference> {
  const { dtype, mode, seed, onProgress } = request;
  const operands = request.operands as GemmInputs;
  // Kernels of f32 and f16 hold the factors in f32.
  const exact = dtype === "f64" || dtype === "i8";
  const round = exact ? (factor: number) => factor : Math.fround;
  const { alpha, beta } = request.problem;
  const problem = { ...request.problem, alpha: round(alpha), beta: round(beta) };
  const whole = wholeReference(problem, dtype, mode);
  const result = await referenceGemm(problem, operands, {
    ...(whole ? {} : { sample: { count: sampleOf(problem, dtype), seed } }),
    ...(onProgress ? { onProgress } : {}),
    integers: dtype === "i8",
    compensated: dtype === "f64",
  });
  return { ...result, problem, dtype, operands, seed };
}

const PRECISIONS: Readonly<Record<GemmDType, Precision>> = {
  f32: F32,
  f16: F16,
  f64: F64,
  i8: I32,
};

/** What errors of a product are measured by. */
function precisionOf({ dtype }: GemmReference, { sums }: PlanArithmetic): Precision {
  return sums === "f16" ? F16_SUMS : PRECISIONS[dtype];
}

/** Compares a result, as it lies in memory, with its reference. Rows are its channels. */
export function checkGemm(
  reference: GemmReference,
  result: TensorData,
  arithmetic: PlanArithmetic,
): Checked {
  if (result instanceof BigInt64Array || result instanceof BigUint64Array) {
    throw new TypeError("Cannot check a product: its result is made of 64-bit integers");
  }
  const { problem, dtype } = reference;
  const precision = precisionOf(reference, arithmetic);
  const measured = measureAccuracy(result, reference, {
    strides: rowMajorStrides(reference.shape),
    precision,
    accumulationLength: problem.k,
    grouping: { rowAxis: 1, names: ["row", "product"], otherInner: false, tile: [1] },
  });
  const yardstick = dtype === "i8" ? EXACT : gemmYardstickOf(reference, arithmetic);
  return judged(
    measured,
    judge(measured, yardstick, { precision, activation: problem.activation }),
  );
}

/** The yardstick of a product's reference: what its arithmetic errs by on this data. */
export function gemmYardstickOf(reference: GemmReference, arithmetic: PlanArithmetic): Yardstick {
  const precision = precisionOf(reference, arithmetic);
  return yardstickFor(
    reference,
    arithmetic,
    () => gemmYardstick({ ...reference, arithmetic, precision }),
  );
}

/** Whole numbers have no errors. */
const EXACT: Yardstick = { sample: NO_ERRORS, of: () => NO_ERRORS };
