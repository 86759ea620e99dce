import { type ConvProblem, convProblem } from "../problem/conv_problem.ts";
import { gemmOperands, type GemmProblem, gemmShape } from "../problem/gemm_problem.ts";
import { elementCount } from "../tensor/tensor.ts";
import { activate } from "./activate.ts";
import type { HostArray } from "./geometry.ts";
import {
  activationScale,
  referenceConv,
  type ReferenceInputs,
  type ReferenceResult,
} from "./reference.ts";

/** What `gemmOperands(problem)` names, as it lies in memory. */
export interface GemmInputs {
  readonly a?: HostArray;
  readonly b?: HostArray;
  readonly c?: HostArray | Int32Array;
  readonly bias?: HostArray | Int32Array;
  readonly residual?: HostArray | Int32Array;
}

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

/** @throws {TypeError} if an operand is missing or of another size. */
export function checkGemmOperands(problem: GemmProblem, operands: GemmInputs): void {
  for (const which of gemmOperands(problem) as (keyof GemmInputs)[]) {
    const shape = gemmShape(problem, which);
    const length = operands[which]?.length;
    if (length === undefined) {
      throw new TypeError(`Cannot compute the gemm reference: ${which} is missing`);
    }
    if (length !== elementCount(shape)) {
      throw new TypeError(
        `Cannot compute the gemm reference: ${which} has ${length} elements, ` +
          `its shape [${shape}] has ${elementCount(shape)}`,
      );
    }
  }
}

/**
 * op(A)·op(B) of one of the batch: a 1-tap convolution whose filter [K = m, C = k] is A and whose input
 * [N = 1, C = k, W = n] is B. Transposes are layouts, so nothing is copied.
 */
export function gemmConv(
  problem: GemmProblem,
  { a, b }: GemmInputs,
  one: number,
): { conv: ConvProblem; inputs: ReferenceInputs } {
  const { m, n, k, transpose } = problem;
  const conv = convProblem({
    batch: 1,
    inChannels: k,
    outChannels: m,
    inputSize: [n],
    filterSize: [1],
  });
  const inputs: ReferenceInputs = {
    filter: {
      data: a!.subarray(one * m * k, (one + 1) * m * k),
      layout: transpose[0] === "n" ? "kcrs" : "crsk",
    },
    input: {
      data: b!.subarray(one * k * n, (one + 1) * k * n),
      layout: transpose[1] === "n" ? "nchw" : "nhwc",
    },
  };
  return { conv, inputs };
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
