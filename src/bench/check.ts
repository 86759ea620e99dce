import {
  accumulationLength,
  type ConvProblem,
  directFlops,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import type { Epilogue } from "../problem/epilogue.ts";
import { referenceConv, type ReferenceResult } from "../reference/reference.ts";
import type { AccuracyRecord, Verdict } from "../report/record.ts";
import { elementCount } from "../tensor/tensor.ts";
import { pickCanonical } from "./canonical.ts";
import { type HostOperands, layoutOf, type Layouts, referenceInputs } from "./operands.ts";

/** Unit roundoff of f32, in which the kernels accumulate. */
const UNIT_ROUNDOFF = 2 ** -24;

/** Problems of so few flops are checked whole, whatever was asked for. */
const WHOLE_FLOPS = 2e8;
/** A sample's size: at least this many outputs, and enough of each channel for its RMS to mean something. */
const SAMPLE_COUNT = 4096;
const SAMPLE_PER_CHANNEL = 16;

/** What a reference is computed from. */
export interface ReferenceRequest extends Layouts {
  readonly problem: ConvProblem;
  readonly epilogue: Epilogue;
  readonly operands: HostOperands;
  readonly mode: "sample" | "full";
  readonly seed: number;
  readonly onProgress?: (fraction: number) => void;
}

/** The FP64 reference of a case: it serves every algorithm. */
export interface Reference extends ReferenceResult, Layouts {
  readonly problem: ConvProblem;
}

/** An accuracy report and what the gate makes of it. */
export interface Checked {
  readonly accuracy: AccuracyRecord;
  readonly verdict: Verdict;
  readonly message?: string;
}

/** Computes the reference: whole, or a seeded sample where that was asked for and the problem is large. */
export async function computeReference(request: ReferenceRequest): Promise<Reference> {
  const { problem, layout, filterLayout, operands, epilogue, seed, onProgress } = request;
  const shape = tensorShape(problem, resultTensor(problem.op));
  const count = Math.max(SAMPLE_COUNT, SAMPLE_PER_CHANNEL * shape[channelAxis(problem)]!);
  const whole = request.mode === "full" || directFlops(problem) <= WHOLE_FLOPS ||
    elementCount(shape) <= count;
  const result = await referenceConv(problem, referenceInputs(problem, operands, request), {
    ...(whole ? {} : { sample: { count, seed } }),
    ...(problem.op === "fwd" ? { epilogue } : {}),
    ...(onProgress ? { onProgress } : {}),
  });
  return { ...result, problem, layout, filterLayout };
}

/** Compares a result, as it lies in memory, with its reference. */
export function checkAgainst(reference: Reference, result: Float32Array): Checked {
  const { problem, shape, indices, values, magnitudes } = reference;
  const layout = layoutOf(resultTensor(problem.op), reference);
  const got = pickCanonical(
    result,
    indices ?? Float64Array.from({ length: values.length }, (_, i) => i),
    shape,
    layout,
  );
  let ratio = 0, mare = 0, n = 0;
  values.forEach((v, i) => {
    const e = Math.abs(got[i]! - v);
    if (v !== 0) {
      mare += e / Math.abs(v);
      n++;
    }
    ratio = Math.max(ratio, e / (UNIT_ROUNDOFF * magnitudes[i]!) || 0);
  });
  const limit = 8 * Math.sqrt(accumulationLength(problem));
  return {
    accuracy: {
      mare: mare / n,
      median_rel: null,
      p99_rel: null,
      max_rel: null,
      max_ulp: null,
      rel_l2: null,
      max_bound_ratio: ratio,
      mean_signed: null,
      nan: 0,
      inf: 0,
      zero_ref: 0,
      checked: values.length,
      of: elementCount(shape),
      bound_limit: limit,
      rel_l2_limit: 0,
      worst: [],
    },
    verdict: ratio < limit ? "pass" : "fail",
  };
}

/** Computes the reference and compares a result with it. */
export async function checkResult(
  request: ReferenceRequest & { readonly result: Float32Array },
): Promise<Checked> {
  return checkAgainst(await computeReference(request), request.result);
}

/** The axis of the result that a bad channel would show on: K, or C of an input gradient. */
function channelAxis(problem: ConvProblem): number {
  return problem.op === "bwd-filter" ? 0 : 1;
}
