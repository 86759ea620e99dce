import type { GemmProblem } from "../problem/gemm_problem.ts";
import { checkGemmOperands, gemmConv, type GemmInputs, summedProduct } from "./gemm.ts";
import type { ProjectedArray } from "./project_channels.ts";
import { projectConv, type Projection, type ProjectionOptions } from "./projection.ts";
import { randomStream } from "./sample.ts";

/**
 * Projects α·op(A)·op(B) + β·C + bias + residual over its rows, each of the batch with weights of its own. An
 * activation is not applied.
 *
 * @throws {TypeError} if an operand is missing or of another size.
 */
export async function projectGemm(
  asked: GemmProblem,
  given: GemmInputs,
  options: ProjectionOptions,
): Promise<Projection> {
  checkGemmOperands(asked, given);
  const { problem, operands } = summedProduct(asked, given);
  const { m, n, batch, alpha, beta } = problem;
  const count = batch * n;
  const expected = new Float64Array(count);
  const variances = new Float64Array(count);
  const weightSquares = new Float64Array(batch);
  const additions = new Float64Array(count);
  const parts: Projection[] = [];
  const { bias } = operands;
  for (let one = 0; one < batch; one++) {
    const { conv, inputs } = gemmConv(problem, operands, one);
    const row = problem.bias === "row" ? { bias: Float64Array.from(bias!) } : {};
    const part = await projectConv(conv, { ...inputs, ...row, result: "nchw" }, {
      ...options,
      factor: alpha,
      seed: options.seed + one,
      onProgress: (fraction) => options.onProgress?.((one + fraction) / batch),
    });
    const add = (data: ProjectedArray, factor: number) => {
      const { sums, squares } = part.project(data);
      for (let j = 0; j < n; j++) {
        part.expected[j]! += factor * sums[j]!;
        additions[one * n + j]! += factor * factor * squares[j]!;
      }
    };
    const own = (data: ProjectedArray) => data.subarray(one * m * n, (one + 1) * m * n);
    if (beta !== 0) add(own(operands.c!), beta);
    if (problem.residual) add(own(operands.residual!), 1);
    if (problem.bias === "column") {
      const sum = part.weights!.reduce((total, weight) => total + weight, 0);
      for (let j = 0; j < n; j++) {
        part.expected[j]! += sum * bias![j]!;
        additions[one * n + j]! += part.weightSquares[0]! * bias![j]! ** 2;
      }
    }
    part.additions?.forEach((value, j) => additions[one * n + j]! += value);
    expected.set(part.expected, one * n);
    variances.set(part.variances, one * n);
    weightSquares[one] = part.weightSquares[0]!;
    parts.push(part);
  }
  return {
    shape: [batch, 1, n],
    members: m,
    expected,
    variances,
    additions,
    weightSquares,
    project: (result) => {
      const sums = new Float64Array(count);
      const squares = new Float64Array(count);
      parts.forEach((part, one) => {
        const own = part.project(result.subarray(one * m * n, (one + 1) * m * n));
        sums.set(own.sums, one * n);
        squares.set(own.squares, one * n);
      });
      return { sums, squares };
    },
    indicesOf: (place) => {
      const column = place % n;
      const first = (place - column) / n * m;
      return Float64Array.from({ length: m }, (_, row) => (first + row) * n + column);
    },
  };
}

/** The projection of sums of integers, modulo 2^32 as they themselves: exact. */
export interface IntegerProjection {
  /** Sizes of what is expected: [what is outside, groups, places...]. */
  readonly shape: readonly number[];
  readonly expected: Int32Array;
  project(result: Int32Array): Int32Array;
}

/**
 * Projects a product of integers with odd random weights, modulo 2^32: a single wrong result is always seen.
 *
 * @throws {TypeError} if an operand is missing or of another size.
 */
export function projectIntegers(
  problem: GemmProblem,
  operands: GemmInputs,
  seed: number,
): IntegerProjection {
  checkGemmOperands(problem, operands);
  const { m, n, k, batch, alpha, beta, transpose } = problem;
  const random = randomStream(seed);
  const weights = Int32Array.from({ length: m }, () => (random() * 2 ** 32) | 1);
  const a = operands.a as Int8Array;
  const b = operands.b as Int8Array;
  const bias = operands.bias as Int32Array | undefined;
  const sumOfWeights = weights.reduce((sum, weight) => (sum + weight) | 0, 0);
  const project = (result: Int32Array) => {
    const sums = new Int32Array(batch * n);
    for (let one = 0; one < batch; one++) {
      addRows(result, one * m * n, n, 1, weights, sums.subarray(one * n, (one + 1) * n));
    }
    return sums;
  };
  const expected = new Int32Array(batch * n);
  for (let one = 0; one < batch; one++) {
    const row = new Int32Array(k);
    const [rowStep, step] = transpose[0] === "n" ? [k, 1] : [1, m];
    addRows(a, one * m * k, rowStep, step, weights, row);
    const own = expected.subarray(one * n, (one + 1) * n);
    const [depthStep, columnStep] = transpose[1] === "n" ? [n, 1] : [1, k];
    addRows(b, one * k * n, depthStep, columnStep, row, own);
    for (let j = 0; j < n; j++) own[j] = Math.imul(alpha, own[j]!);
  }
  const add = (sums: Int32Array, factor: number) =>
    sums.forEach((sum, j) => expected[j] = (expected[j]! + Math.imul(factor, sum)) | 0);
  if (beta !== 0) add(project(operands.c as Int32Array), beta);
  if (problem.residual) add(project(operands.residual as Int32Array), 1);
  if (problem.bias === "row") {
    const shift = weights.reduce((sum, weight, i) => (sum + Math.imul(weight, bias![i]!)) | 0, 0);
    add(new Int32Array(batch * n).fill(shift), 1);
  } else if (problem.bias === "column") {
    add(Int32Array.from({ length: batch * n }, (_, j) => bias![j % n]!), sumOfWeights);
  }
  return { shape: [batch, 1, n], expected, project };
}

/** sums[j] += Σ_i weights[i]·matrix[i][j], modulo 2^32. */
function addRows(
  matrix: Int8Array | Int32Array,
  start: number,
  rowStep: number,
  step: number,
  weights: Int32Array,
  sums: Int32Array,
): void {
  if (step === 1) {
    for (let i = 0; i < weights.length; i++) {
      const weight = weights[i]!;
      let at = start + i * rowStep;
      for (let j = 0; j < sums.length; j++) {
        sums[j] = (sums[j]! + Math.imul(weight, matrix[at++]!)) | 0;
      }
    }
    return;
  }
  for (let j = 0; j < sums.length; j++) {
    let sum = sums[j]!;
    let at = start + j * step;
    for (let i = 0; i < weights.length; i++, at += rowStep) {
      sum = (sum + Math.imul(weights[i]!, matrix[at]!)) | 0;
    }
    sums[j] = sum;
  }
}
