import { InputRangeError } from "../errors.ts";
import { type ConvProblem, tensorShape } from "../problem/conv_problem.ts";
import { BYTE_RANGE, type ByteDType } from "../problem/conv_elements.ts";
import { stridesInLayout } from "../tensor/layout.ts";
import { elementCount, unravelIndex } from "../tensor/tensor.ts";
import { checkedOperand, geometryOf } from "./geometry.ts";
import type { IntegerProjection } from "./gemm_projection.ts";
import { referenceConv, type ReferenceInputs, type ReferenceOptions } from "./reference.ts";
import type { ProjectionInputs } from "./projection.ts";
import { randomStream } from "./sample.ts";
import { activate, operandOf } from "../problem/activations.ts";

const MOST = 2 ** 31 - 1;

/** Bytes that results are rounded to: their type, and which of them stands for zero. */
interface QuantizedTo {
  readonly dtype: ByteDType;
  readonly zeroPoint: number;
}

/**
 * saturate(round(f32(sum)·scale) + zeroPoint): what kernels make of a sum in i32 where results are bytes. Sum and product round
 * to the nearest f32, halves to the even whole number.
 *
 * @param scale A number of f32.
 */
export function quantized(
  sum: number,
  scale: number,
  { dtype, zeroPoint }: QuantizedTo = { dtype: "i8", zeroPoint: 0 },
): number {
  const [least, most] = BYTE_RANGE[dtype];
  // Without the sign of a zero.
  return Math.max(least, Math.min(most, scaledWhole(sum, scale) + zeroPoint)) + 0;
}

/** round(f32(sum)·scale), however large. */
export function scaledWhole(sum: number, scale: number): number {
  const value = Math.fround(Math.fround(sum) * scale);
  const below = Math.floor(value);
  const rest = value - below;
  return rest > 0.5 || rest === 0.5 && below % 2 !== 0 ? below + 1 : below;
}

/**
 * An operand of bytes less what stands for zero, as it lies.
 *
 * @param zeroPoint One for all, or one for each of as many equal parts that follow each other.
 */
export function lessZero(
  data: Int8Array | Uint8Array,
  zeroPoint: number | Int32Array,
): Int8Array | Uint8Array | Int16Array {
  if (zeroPoint === 0) return data;
  const zeros = typeof zeroPoint === "number" ? [zeroPoint] : zeroPoint;
  const part = data.length / zeros.length;
  const less = new Int16Array(data.length);
  for (const [k, zero] of zeros.entries()) {
    for (let i = k * part; i < (k + 1) * part; i++) less[i] = data[i]! - zero;
  }
  return less;
}

/**
 * Computes the sums of an int8 convolution, exactly, and what follows them.
 *
 * @param finish What becomes of the sum of an output channel, where results are bytes.
 * @throws {RangeError} where a sum leaves 32 bits.
 * @throws as {@linkcode referenceConv}.
 */
export async function referenceIntegers(
  problem: ConvProblem,
  inputs: ReferenceInputs,
  { epilogue, ...options }: ReferenceOptions,
  finish?: (sum: number, channel: number) => number,
) {
  const linear = epilogue && { bias: epilogue.bias ?? false, activation: "none" as const };
  const result = await referenceConv(problem, inputs, {
    ...options,
    ...(linear === undefined ? {} : { epilogue: linear }),
  });
  const { values, indices, shape } = result;
  const { activation = "none" } = epilogue ?? {};
  const operandAt = operandOf(activation, inputs);
  const area = elementCount(shape.slice(2));
  for (let i = 0; i < values.length; i++) {
    const sum = values[i]!;
    const index = indices?.[i] ?? i;
    if (sum > MOST || sum < -MOST - 1) {
      throw new InputRangeError(
        `Cannot convolve: output [${
          unravelIndex(index, shape).join(", ")
        }] is beyond the 32 bits ` +
          "that i8 convolutions sum in",
      );
    }
    const channel = Math.floor(index / area) % shape[1]!;
    const active = activate(activation, sum, operandAt(channel));
    values[i] = finish === undefined ? active : finish(active, channel);
  }
  return result;
}

/**
 * Projects the sums of an int8 convolution, and their bias, over the output channels of each group with odd random weights,
 * modulo 2^32 as kernels sum: a single wrong result is always seen.
 *
 * @throws {TypeError} if an operand is missing or of another size.
 */
export function projectConvIntegers(
  problem: ConvProblem,
  inputs: ProjectionInputs,
  seed: number,
): IntegerProjection {
  const { groups, outChannels } = problem;
  const input = checkedOperand(problem, "input", inputs.input) as Int8Array;
  const filter = checkedOperand(problem, "filter", inputs.filter) as Int8Array;
  const random = randomStream(seed);
  const weights = Int32Array.from({ length: outChannels }, () => (random() * 2 ** 32) | 1);
  const each = outChannels / groups;
  const outputShape = tensorShape(problem, "output");
  const area = elementCount(problem.outputSize);
  const outputStrides = stridesInLayout(outputShape, inputs.result);
  const [imageStep, channelStep, placeStep] = [
    outputStrides[0]!,
    outputStrides[1]!,
    outputStrides.at(-1)!,
  ];
  const shape = [problem.batch, groups, ...problem.outputSize];
  const project = (result: Int32Array) => {
    const sums = new Int32Array(problem.batch * groups * area);
    for (let row = 0; row < problem.batch * groups; row++) {
      const group = row % groups;
      const own = sums.subarray(row * area, (row + 1) * area);
      const image = (row - group) / groups * imageStep;
      for (let place = 0; place < area; place++) {
        let at = image + group * each * channelStep + place * placeStep;
        let sum = 0;
        for (let k = group * each; k < (group + 1) * each; k++, at += channelStep) {
          sum = (sum + Math.imul(weights[k]!, result[at]!)) | 0;
        }
        own[place] = sum;
      }
    }
    return sums;
  };

  const g = geometryOf(problem, {
    input: stridesInLayout(tensorShape(problem, "input"), inputs.input!.layout),
    filter: stridesInLayout(tensorShape(problem, "filter"), inputs.filter!.layout),
    output: outputStrides,
  });
  // One filter a group is left: [group][tap][C/g].
  const [t0, t1, t2] = g.filterSize;
  const taps = t0 * t1 * t2;
  const dense = new Int32Array(groups * taps * g.inChannels);
  const tapStep = g.filterStrides[4]!;
  for (let k = 0; k < outChannels; k++) {
    const group = Math.floor(k / each);
    for (let tap = 0; tap < taps; tap++) {
      const to = (group * taps + tap) * g.inChannels;
      const from = k * g.filterStrides[0]! + tap * tapStep;
      for (let c = 0; c < g.inChannels; c++) {
        const product = Math.imul(weights[k]!, filter[from + c * g.filterStrides[1]!]!);
        dense[to + c] = (dense[to + c]! + product) | 0;
      }
    }
  }
  const { bias } = inputs;
  const expected = new Int32Array(problem.batch * groups * area);
  const [n0, n1, n2] = g.outputSize;
  let place = 0;
  for (let image = 0; image < problem.batch; image++) {
    for (let group = 0; group < groups; group++) {
      let shift = 0;
      if (bias !== undefined) {
        for (let k = group * each; k < (group + 1) * each; k++) {
          shift = (shift + Math.imul(weights[k]!, bias[k]!)) | 0;
        }
      }
      const base = image * g.inputStrides[0]! + group * g.inChannels * g.inputStrides[1]!;
      for (let p0 = 0; p0 < n0; p0++) {
        for (let p1 = 0; p1 < n1; p1++) {
          for (let p2 = 0; p2 < n2; p2++) {
            expected[place++] = (shift + sumAt(base, group, p0, p1, p2)) | 0;
          }
        }
      }
    }
  }
  return { shape, expected, project };

  /** The sum of a place, of the one filter of a group. */
  function sumAt(base: number, group: number, p0: number, p1: number, p2: number): number {
    const channels = g.inChannels, step = g.inputStrides[1]!;
    let sum = 0;
    for (let a = 0; a < t0; a++) {
      const x0 = p0 * g.stride[0] + a * g.dilation[0] - g.padding[0];
      if (x0 < 0 || x0 >= g.inputSize[0]) continue;
      for (let b = 0; b < t1; b++) {
        const x1 = p1 * g.stride[1] + b * g.dilation[1] - g.padding[1];
        if (x1 < 0 || x1 >= g.inputSize[1]) continue;
        for (let c = 0; c < t2; c++) {
          const x2 = p2 * g.stride[2] + c * g.dilation[2] - g.padding[2];
          if (x2 < 0 || x2 >= g.inputSize[2]) continue;
          let from = base + x0 * g.inputStrides[2]! + x1 * g.inputStrides[3]! +
            x2 * g.inputStrides[4]!;
          let to = (group * taps + (a * t1 + b) * t2 + c) * channels;
          for (let channel = 0; channel < channels; channel++, from += step) {
            sum = (sum + Math.imul(dense[to++]!, input[from]!)) | 0;
          }
        }
      }
    }
    return sum;
  }
}
