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
import { InputTypeError } from "../errors.ts";
import type { GemmDType, GemmProblem } from "../problem/gemm_problem.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { type GemmInputs, referenceGemm } from "../reference/gemm.ts";
import type { ReferenceResult } from "../reference/reference.ts";
import { gemmYardstick } from "../simulate/gemm_yardstick.ts";
import type { TensorData } from "../tensor/dtype.ts";
import { rowMajorStrides } from "../tensor/tensor.ts";
import { type Checked, judged, sampleCount, yardstickFor } from "./check.ts";
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

/** How a product is covered. */
export function gemmCoverage(
  { problem, dtype, mode, linear = problem.activation === "none" }: Pick<
    GemmReferenceRequest,
    "problem" | "dtype" | "mode" | "linear"
  >,
): Coverage {
  const size = gemmCoverable(problem);
  const coverage = coverageOf({
    mode,
    linear,
    ...size,
    products: size.products * sumCost(dtype),
  });
  return size.outputs <= sampleOf(problem, dtype) ? "whole" : coverage;
}

/** The problem with its factors as kernels hold them: in f32, of f32 and f16. */
export function heldProblem(problem: GemmProblem, dtype: GemmDType): GemmProblem {
  if (dtype === "f64" || dtype === "i8") return problem;
  return { ...problem, alpha: Math.fround(problem.alpha), beta: Math.fround(problem.beta) };
}

/**
 * Computes the FP64 reference: whole, or a seeded sample, as `gemmCoverage()` says.
 *
 * @throws {RangeError} where results of int8 leave 32 bits.
 */
export async function computeGemmReference(
  request: GemmReferenceRequest,
): Promise<GemmReference> {
  const { dtype, seed, onProgress } = request;
  const operands = request.operands as GemmInputs;
  const problem = heldProblem(request.problem, dtype);
  const { m, n, k, batch } = problem;
  const coverage = gemmCoverage(request);
  const result = await referenceGemm(problem, operands, {
    ...(coverage === "whole"
      ? {}
      : coverage === "strata"
      ? { indices: strataOf([batch, m, n], 1, m, k, seed) }
      : { sample: { count: sampleOf(problem, dtype), seed } }),
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
export function gemmPrecision(dtype: GemmDType, { sums }: PlanArithmetic): Precision {
  return sums === "f16" ? F16_SUMS : PRECISIONS[dtype];
}

/** Compares a result, as it lies in memory, with its reference. Rows are its channels. */
export function checkGemm(
  reference: GemmReference,
  result: TensorData,
  arithmetic: PlanArithmetic,
): Checked {
  if (result instanceof BigInt64Array || result instanceof BigUint64Array) {
    throw new InputTypeError("Cannot check a product: its result is made of 64-bit integers");
  }
  const { problem, dtype } = reference;
  const precision = gemmPrecision(reference.dtype, arithmetic);
  const measured = measureAccuracy(result, reference, {
    strides: rowMajorStrides(reference.shape),
    precision,
    accumulationLength: problem.k,
    activation: problem.activation,
    grouping: { rowAxis: 1, names: ["row", "product"], otherInner: false, tile: [1] },
  });
  const yardstick = dtype === "i8" ? EXACT : gemmYardstickOf(reference, arithmetic);
  return judged(
    measured,
    judge(measured, yardstick, precision),
  );
}

/** The yardstick of a product's reference: what its arithmetic errs by on this data. */
export function gemmYardstickOf(
  reference: Pick<GemmReference, "problem" | "dtype" | "operands" | "seed">,
  arithmetic: PlanArithmetic,
): Yardstick {
  const precision = gemmPrecision(reference.dtype, arithmetic);
  return yardstickFor(
    reference,
    arithmetic,
    () => gemmYardstick({ ...reference, arithmetic, precision }),
  );
}

/** Whole numbers have no errors. */
const EXACT: Yardstick = { sample: NO_ERRORS, of: () => NO_ERRORS, again: () => [] };
