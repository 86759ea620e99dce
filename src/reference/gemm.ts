import { InputRangeError } from "../errors.ts";
import { expectFields, expectObject } from "../expect.ts";
import { type ConvProblem, convProblem } from "../problem/conv_problem.ts";
import {
  gemmOperands,
  type GemmProblem,
  gemmProblem,
  gemmShape,
  summedDepth,
} from "../problem/gemm_problem.ts";
import { elementCount } from "../tensor/tensor.ts";
import { activate } from "../problem/activations.ts";
import { addTo, type DoubleDouble, productError, sumError, times } from "./double_double.ts";
import type { HostArray } from "./geometry.ts";
import {
  activatedMagnitude,
  referenceConv,
  type ReferenceInputs,
  type ReferenceResult,
} from "./reference.ts";

/** What `gemmOperands(problem)` names, as it lies in memory. */
export interface GemmInputs {
  /** [batch, m, k], or [batch, k, m] where it is transposed. */
  readonly a?: HostArray;
  /** [batch, k, n], or [batch, n, k] where it is transposed. */
  readonly b?: HostArray;
  /** [batch, m, n], where beta is not 0. */
  readonly c?: HostArray | Int32Array;
  /** m or n values, by the problem's side. */
  readonly bias?: HostArray | Int32Array;
  /** [batch, m, n] */
  readonly residual?: HostArray | Int32Array;
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

/** A product of no depth where alpha is 0, so that nothing reads A and B; else the product as it is. */
export function summedProduct<Inputs extends GemmInputs>(
  problem: GemmProblem,
  operands: Inputs,
): { problem: GemmProblem; operands: Inputs } {
  const k = summedDepth(problem);
  if (k === problem.k) return { problem, operands };
  const none = new Float32Array(0);
  return { problem: { ...problem, k }, operands: { ...operands, a: none, b: none } };
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

/** Which results are computed, how exactly and by how many. */
export interface GemmReferenceOptions {
  /** At least `count` results, equally many per row, chosen by `seed`; all where absent. */
  readonly sample?: { readonly count: number; readonly seed: number };
  /** Flat indices of the results that are wanted, ascending, in place of a sample. */
  readonly indices?: Float64Array;
  /** Most Workers to start, 0 for none; as many as cores where absent. */
  readonly workers?: number;
  /** Whether everything is a whole number of 32 bits; results that are none are refused. */
  readonly integers?: boolean;
  /** Whether sums are to be exact to about twice a double's precision: for results in f64. */
  readonly compensated?: boolean;
  /** Ends the computation early. */
  readonly signal?: AbortSignal;
  /** Called with the done fraction, 0 to 1, now and then. */
  readonly onProgress?: (fraction: number) => void;
}

/**
 * Computes a product in double precision on the CPU. Its shape is [batch, m, n]; magnitudes are
 * |α|·Σ|a||b| + |β·C| + |bias| + |residual|.
 *
 * @throws {TypeError} if an operand is missing or of another size.
 * @throws {RangeError} if a result of integers leaves 32 bits.
 * @throws as {@linkcode referenceConv}.
 * @example
 * ```ts
 * import { gemmProblem, referenceGemm } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const { values } = await referenceGemm(gemmProblem({ m: 1, n: 1, k: 2 }), {
 *   a: new Float32Array([1, 2]),
 *   b: new Float32Array([3, 4]),
 * });
 * assert.deepEqual([...values], [11]);
 * ```
 */
export async function referenceGemm(
  asked: GemmProblem,
  given: GemmInputs,
  options: GemmReferenceOptions = {},
): Promise<ReferenceResult> {
  const doing = "Cannot compute the gemm reference";
  expectObject(doing, "operands", given, "arrays");
  expectObject(doing, "options", options, "options");
  const whole = gemmProblem(asked);
  expectFields(doing, "operand", given, gemmOperands(whole));
  checkGemmOperands(whole, given);
  const { problem, operands } = summedProduct(whole, given);
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
    parts.push(
      options.compensated
        ? compensated(problem, operands, one, sums)
        : finished(problem, operands, one, sums, options.integers ?? false),
    );
  }
  if (parts.length === 1) return { ...parts[0]!, shape };
  return {
    ...(parts[0]!.indices ? { indices: joined(parts.map(({ indices }) => indices!)) } : {}),
    values: joined(parts.map(({ values }) => values)),
    magnitudes: joined(parts.map(({ magnitudes }) => magnitudes)),
    ...(parts[0]!.rests ? { rests: joined(parts.map(({ rests }) => rests!)) } : {}),
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

/** As on a device: exact modulo 2^32, hence where what is combined is an int32, whatever its parts are. */
const INTEGERS: Arithmetic = {
  combine: (alpha, sum, beta, c, bias) =>
    int32(
      (Math.imul(alpha, sum) + Math.imul(beta, c) + bias) | 0,
      alpha * sum + beta * c + bias,
    ),
  add: (a, b) => int32((a + b) | 0, a + b),
};

/**
 * A value modulo 2^32, which is the value itself.
 *
 * @param real The value itself, rounded; NaN where that is no int32.
 */
function int32(modular: number, real: number): number {
  // What wrapped around is off by 2^32, roundings of doubles by far less.
  return Math.abs(modular - real) < 2 ** 31 ? modular : NaN;
}

/** What follows the sums, with indices and operands of the whole batch. */
function finished(
  problem: GemmProblem,
  { c, bias, residual }: GemmInputs,
  one: number,
  { indices, values, magnitudes }: ReferenceResult,
  integers: boolean,
): ReferenceResult {
  const { combine, add } = integers ? INTEGERS : REALS;
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
    const argument = combine(alpha, values[i]!, beta, own, shift);
    const value = activate(activation, argument);
    values[i] = add(value, skip);
    if (integers && Number.isNaN(values[i])) {
      throw new InputRangeError(
        `Cannot multiply: result [${row}, ${column}] is beyond the 32 bits that i8 products make`,
      );
    }
    const magnitude = Math.abs(alpha) * magnitudes[i]! + Math.abs(beta * own) + Math.abs(shift);
    magnitudes[i] = activatedMagnitude(activation, { argument, value, magnitude, skip });
  }
  return { ...(places ? { indices: places } : {}), values, magnitudes, shape: [] };
}

/** A sum with all that follows it. */
interface FinishedSum extends DoubleDouble {
  /** What the activation was taken of. */
  readonly argument: number;
  /** Its value, before the residual. */
  readonly active: number;
}

/** What follows an exact sum: α·sum + β·c + bias, its activation, and the residual. */
export function finishExact(
  { alpha, beta, activation }: Pick<GemmProblem, "alpha" | "beta" | "activation">,
  sum: DoubleDouble,
  own: number,
  shift: number,
  skip: number,
): FinishedSum {
  let exact = alpha === 1 ? sum : times(sum, alpha);
  if (own !== 0) {
    const product = beta * own;
    exact = addTo(addTo(exact, product), productError(beta, own, product));
  }
  if (shift !== 0) exact = addTo(exact, shift);
  const argument = exact.value + exact.rest;
  if (activation !== "none") exact = { value: activate(activation, argument), rest: 0 };
  const active = exact.value;
  if (skip !== 0) exact = addTo(exact, skip);
  return { ...exact, argument, active };
}

/** As {@linkcode finished}, of sums that are computed again with what every product and addition rounds off. */
function compensated(
  problem: GemmProblem,
  { a, b, c, bias, residual }: GemmInputs,
  one: number,
  { indices, magnitudes }: ReferenceResult,
): ReferenceResult {
  const { m, n, k, transpose, alpha, beta, activation } = problem;
  const [aRow, aStep] = transpose[0] === "n" ? [k, 1] : [1, m];
  const [bColumn, bStep] = transpose[1] === "n" ? [1, n] : [k, 1];
  const first = one * m * n;
  const places = indices?.map((index) => first + index);
  const values = new Float64Array(magnitudes.length);
  const rests = new Float64Array(magnitudes.length);
  for (let i = 0; i < values.length; i++) {
    const place = places?.[i] ?? first + i;
    const column = place % n;
    const row = (place - column) / n % m;
    let at = one * m * k + row * aRow, to = one * k * n + column * bColumn;
    let value = 0, rest = 0;
    for (let step = 0; step < k; step++, at += aStep, to += bStep) {
      const product = a![at]! * b![to]!;
      const sum = value + product;
      rest += sumError(value, product, sum) + productError(a![at]!, b![to]!, product);
      value = sum;
    }
    const own = beta === 0 ? 0 : c![place]!;
    const shift = problem.bias === "none" ? 0 : bias![problem.bias === "row" ? row : column]!;
    const skip = problem.residual ? residual![place]! : 0;
    const sum = Number.isFinite(rest) ? { value, rest } : { value, rest: 0 };
    const exact = finishExact(problem, sum, own, shift, skip);
    values[i] = exact.value + exact.rest;
    rests[i] = Number.isFinite(values[i]) ? (exact.value - values[i]!) + exact.rest : 0;
    const { argument, active } = exact;
    const magnitude = Math.abs(alpha) * magnitudes[i]! + Math.abs(beta * own) + Math.abs(shift);
    magnitudes[i] = activatedMagnitude(activation, { argument, value: active, magnitude, skip });
  }
  return { ...(places ? { indices: places } : {}), values, rests, magnitudes, shape: [] };
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
