import type { GemmProblem } from "../problem/gemm_problem.ts";
import { elementCount } from "../tensor/tensor.ts";
import { activate } from "./activate.ts";
import { checkGemmOperands, gemmConv, type GemmInputs } from "./gemm_conv.ts";
import { activationScale, referenceConv, type ReferenceResult } from "./reference.ts";

export type { GemmInputs } from "./gemm_conv.ts";

export interface GemmReferenceOptions {
  /** At least `count` results, equally many per row, chosen by `seed`; all where absent. */
  readonly sample?: { readonly count: number; readonly seed: number };
  /** Flat indices of the results that are wanted, ascending, in place of a sample. */
  readonly indices?: Float64Array;
  /** Most Workers to start, 0 for none; as many as cores where absent. */
  readonly workers?: number;
  /** Whether everything is a whole number of 32 bits; results then wrap as a device's int32 do. */
  readonly integers?: boolean;
  readonly signal?: AbortSignal;
  /** Called with the done fraction, 0 to 1, now and then. */
  readonly onProgress?: (fraction: number) => void;
}

/**
 * Computes a product in double precision on the CPU. Its shape is [batch, m, n]; magnitudes are
 * |α|·Σ|a||b| + |β·C| + |bias| + |residual|.
 *
 * @throws {TypeError} if an operand is missing or of another size.
 * @throws as {@linkcode referenceConv}.
 */
export async function referenceGemm(
  problem: GemmProblem,
  operands: GemmInputs,
  options: GemmReferenceOptions = {},
): Promise<ReferenceResult> {
  checkGemmOperands(problem, operands);
  const { m, n, batch } = problem;
  const { sample, indices, onProgress } = options;
  const shape = [batch, m, n];
  if (elementCount(shape) === 0) {
    return { values: new Float64Array(0), magnitudes: new Float64Array(0), shape };
  }
  const parts: ReferenceResult[] = [];
  for (let one = 0; one < batch; one++) {
    const { conv, inputs } = gemmConv(problem, operands, one);
    const sums = await referenceConv(conv, inputs, {
      ...options,
      ...(sample ? { sample: { count: sample.count / batch, seed: sample.seed + one } } : {}),
      ...(indices ? { indices: indicesWithin(indices, one * m * n, m * n) } : {}),
      onProgress: (fraction) => onProgress?.((one + fraction) / batch),
    });
    parts.push(finished(problem, operands, one, sums, options.integers ? INTEGERS : REALS));
  }
  if (parts.length === 1) return { ...parts[0]!, shape };
  return {
    ...(parts[0]!.indices ? { indices: joined(parts.map(({ indices }) => indices!)) } : {}),
    values: joined(parts.map(({ values }) => values)),
    magnitudes: joined(parts.map(({ magnitudes }) => magnitudes)),
    shape,
  };
}

/** Those of `indices` that lie in a run of `count` results, counted from its first one. */
function indicesWithin(indices: Float64Array, first: number, count: number): Float64Array {
  return indices.filter((index) => index >= first && index < first + count)
    .map((index) => index - first);
}

/** How what follows the sums is computed. */
interface Arithmetic {
  /** α·sum + β·c + bias. */
  combine(alpha: number, sum: number, beta: number, c: number, bias: number): number;
  add(a: number, b: number): number;
}

const REALS: Arithmetic = {
  combine: (alpha, sum, beta, c, bias) => alpha * sum + beta * c + bias,
  add: (a, b) => a + b,
};

/** Modulo 2^32; sums up to 2^53 are exact before that. */
const INTEGERS: Arithmetic = {
  combine: (alpha, sum, beta, c, bias) => (Math.imul(alpha, sum) + Math.imul(beta, c) + bias) | 0,
  add: (a, b) => (a + b) | 0,
};

/** What follows the sums, with indices and operands of the whole batch. */
function finished(
  problem: GemmProblem,
  { c, bias, residual }: GemmInputs,
  one: number,
  { indices, values, magnitudes }: ReferenceResult,
  { combine, add }: Arithmetic,
): ReferenceResult {
  const { m, n, alpha, beta, activation } = problem;
  const first = one * m * n;
  const places = indices?.map((index) => first + index);
  for (let i = 0; i < values.length; i++) {
    const place = places?.[i] ?? first + i;
    const column = place % n;
    const row = (place - column) / n % m;
    const own = beta === 0 ? 0 : c![place]!;
    const shift = problem.bias === "none" ? 0 : bias![problem.bias === "row" ? row : column]!;
    const skip = problem.residual ? residual![place]! : 0;
    const value = activate(activation, combine(alpha, values[i]!, beta, own, shift));
    values[i] = add(value, skip);
    magnitudes[i] = Math.abs(alpha) * magnitudes[i]! + Math.abs(beta * own) + Math.abs(shift) +
      activationScale(activation, value) + Math.abs(skip);
  }
  return { ...(places ? { indices: places } : {}), values, magnitudes, shape: [] };
}

function joined(parts: readonly Float64Array[]): Float64Array {
  const whole = new Float64Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
