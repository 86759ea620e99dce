/**
 * Convolutions and products in double precision as their definitions have them: loops over everything, with nothing shared
 * with `src/reference`.
 */
import type { Activation } from "../../src/problem/activations.ts";
import type { Epilogue } from "../../src/problem/epilogue.ts";
import type { IntegerOperands } from "../../src/problem/conv_elements.ts";
import { type ConvProblem, tensorShape } from "../../src/problem/conv_problem.ts";
import type { GemmProblem } from "../../src/problem/gemm_problem.ts";
import type { HostOperands } from "../../src/run/subject.ts";
import { layoutAxes, permute } from "../../src/tensor/layout.ts";
import { tensor } from "../../src/tensor/tensor.ts";

/** Sums of products, and of their absolute values. */
export interface PlainResult {
  readonly values: Float64Array;
  readonly magnitudes: Float64Array;
  /** Of a filter's gradient and each pair of channels, the most that Σ|a||b| can be however an image and its gradient lie. */
  readonly reach?: Float64Array;
}

/** An operand as it lies in memory, and the axes of its shape in that order: `n`, `c`, `k` and the spatial ones, `0` `1` `2`. */
interface Placed {
  readonly data: ArrayLike<number>;
  readonly axes: string;
}

const AXES: Readonly<Record<string, (spatial: string) => string>> = {
  nchw: (spatial) => `nc${spatial}`,
  nhwc: (spatial) => `n${spatial}c`,
  chwn: (spatial) => `c${spatial}n`,
  kcrs: (spatial) => `kc${spatial}`,
  krsc: (spatial) => `k${spatial}c`,
  crsk: (spatial) => `c${spatial}k`,
};

/** Elements from one entry of each axis to the next. */
function stridesOf(axes: string, sizes: Readonly<Record<string, number>>): Record<string, number> {
  const strides: Record<string, number> = {};
  let stride = 1;
  for (const axis of [...axes].reverse()) {
    strides[axis] = stride;
    stride *= sizes[axis]!;
  }
  return strides;
}

/** Every index of a space of these sizes. */
function* indices(sizes: readonly number[]): Generator<number[]> {
  if (sizes.length === 0) return yield [];
  const [first, ...rest] = sizes;
  for (let i = 0; i < first!; i++) {
    for (const index of indices(rest)) yield [i, ...index];
  }
}

/**
 * A convolution or gradient in canonical order. The layouts' names are the program's.
 *
 * @param operands What the operation reads; the gradient of the output is `output`.
 */
export function plainConv(
  problem: ConvProblem,
  operands: Readonly<Partial<Record<"input" | "filter" | "output" | "bias", ArrayLike<number>>>>,
  layout: string,
  filterLayout: string,
  epilogue: Epilogue,
): PlainResult {
  const { op, batch, inChannels, outChannels, groups } = problem;
  const { inputSize, filterSize, outputSize, stride, paddingBegin, dilation } = problem;
  const spatial = "012".slice(0, inputSize.length);
  const sizesOf = (first: string, count: number, channels: number, sizes: readonly number[]) =>
    Object.fromEntries<number>([
      [first, count],
      ["c", channels],
      ...sizes.map((size, axis): [string, number] => [`${axis}`, size]),
    ]);
  const groupIn = inChannels / groups, groupOut = outChannels / groups;
  const shapes = {
    input: sizesOf("n", batch, inChannels, inputSize),
    filter: sizesOf("k", outChannels, groupIn, filterSize),
    output: sizesOf("n", batch, outChannels, outputSize),
  };
  const result = op === "fwd" ? "output" : op === "bwd-data" ? "input" : "filter";
  const place = (
    which: "input" | "filter" | "output",
  ): Placed & { strides: Record<string, number> } => {
    const canonical = which === result;
    const name = which === "filter"
      ? canonical ? "kcrs" : filterLayout
      : canonical
      ? "nchw"
      : layout;
    const axes = AXES[name]!(spatial);
    return { data: operands[which] ?? [], axes, strides: stridesOf(axes, shapes[which]) };
  };
  const x = place("input"), w = place("filter"), y = place("output");
  const spatialOffset = (
    { strides }: { strides: Record<string, number> },
    index: readonly number[],
  ) => index.reduce((sum, value, axis) => sum + value * strides[axis]!, 0);
  const count = Object.values(shapes[result]).reduce((product, size) => product * size, 1);
  const values = new Float64Array(count), magnitudes = new Float64Array(count);
  const [xFirst, xChannel] = [x.strides["n"]!, x.strides["c"]!];
  const [wFirst, wChannel] = [w.strides["k"]!, w.strides["c"]!];
  const [yFirst, yChannel] = [y.strides["n"]!, y.strides["c"]!];
  for (const output of indices(outputSize)) {
    for (const tap of indices(filterSize)) {
      const input = output.map((value, axis) =>
        value * stride[axis]! - paddingBegin[axis]! + tap[axis]! * dilation[axis]!
      );
      if (input.some((value, axis) => value < 0 || value >= inputSize[axis]!)) continue;
      const [xPlace, wPlace, yPlace] = [
        spatialOffset(x, input),
        spatialOffset(w, tap),
        spatialOffset(y, output),
      ];
      for (let n = 0; n < batch; n++) {
        for (let k = 0; k < outChannels; k++) {
          const firstChannel = Math.floor(k / groupOut) * groupIn;
          const yAt = yPlace + n * yFirst + k * yChannel;
          for (let c = 0; c < groupIn; c++) {
            const xAt = xPlace + n * xFirst + (firstChannel + c) * xChannel;
            const wAt = wPlace + k * wFirst + c * wChannel;
            const to = op === "fwd" ? yAt : op === "bwd-data" ? xAt : wAt;
            const product = op === "fwd"
              ? x.data[xAt]! * w.data[wAt]!
              : op === "bwd-data"
              ? y.data[yAt]! * w.data[wAt]!
              : x.data[xAt]! * y.data[yAt]!;
            values[to]! += product;
            magnitudes[to]! += Math.abs(product);
          }
        }
      }
    }
  }
  if (op === "fwd") {
    const area = outputSize.reduce((product, size) => product * size, 1);
    for (let i = 0; i < count; i++) {
      const bias = epilogue.bias ? operands.bias![Math.floor(i / area) % outChannels]! : 0;
      values[i] = plainActivation(epilogue.activation, values[i]! + bias);
      magnitudes[i]! += Math.abs(bias);
    }
  }
  if (op !== "bwd-filter") return { values, magnitudes };
  const energy = ({ data, strides }: ReturnType<typeof place>, sizes: readonly number[]) => {
    const places = [...indices(sizes)].map((index) => spatialOffset({ strides }, index));
    return (n: number, channel: number) =>
      places.reduce((sum, at) => {
        const value = data[at + n * strides["n"]! + channel * strides["c"]!]!;
        return Number.isFinite(value) ? sum + value * value : sum;
      }, 0);
  };
  const xEnergy = energy(x, inputSize), yEnergy = energy(y, outputSize);
  const reach = new Float64Array(outChannels * groupIn);
  for (let n = 0; n < batch; n++) {
    const ofX = Array.from({ length: inChannels }, (_, c) => xEnergy(n, c));
    for (let k = 0; k < outChannels; k++) {
      const ofY = yEnergy(n, k), firstChannel = Math.floor(k / groupOut) * groupIn;
      for (let c = 0; c < groupIn; c++) {
        reach[k * groupIn + c]! += Math.sqrt(ofX[firstChannel + c]! * ofY);
      }
    }
  }
  return { values, magnitudes, reach };
}

/** ONNX's ConvInteger with a bias, of channels that lie innermost in operands and result. */
export function plainIntegers(
  problem: ConvProblem,
  { input, filter, bias, filterZeroPoint: zeros }: HostOperands,
  { inputZeroPoint = 0, filterZeroPoint = 0 }: IntegerOperands = {},
): number[] {
  const taps = filter!.length / problem.outChannels;
  const zeroAt = (at: number) =>
    filterZeroPoint === "channel" ? zeros![Math.floor(at / taps)]! : filterZeroPoint;
  const operands = {
    input: Array.from(input!, (value) => value - inputZeroPoint),
    filter: Array.from(filter!, (value, at) => value - zeroAt(at)),
    ...(bias && { bias }),
  };
  const epilogue = { bias: bias !== undefined, activation: "none" } as const;
  const { values } = plainConv(problem, operands, "nhwc", "krsc", epilogue);
  const sums = tensor("f64", tensorShape(problem, "output"), values as Float64Array<ArrayBuffer>);
  return [...permute(sums, layoutAxes("nhwc", problem.filterSize.length)).data];
}

/** A product with its epilogue, in the order [batch, m, n]. */
export function plainGemm(
  { m, n, k, batch, transpose, alpha, beta, bias, activation, residual }: GemmProblem,
  operands: Readonly<Partial<Record<"a" | "b" | "c" | "bias" | "residual", ArrayLike<number>>>>,
): PlainResult {
  const values = new Float64Array(batch * m * n), magnitudes = new Float64Array(batch * m * n);
  const { a, b, c } = operands;
  for (let one = 0; one < batch; one++) {
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        let sum = 0, size = 0;
        for (let l = 0; l < k; l++) {
          const left = a![one * m * k + (transpose[0] === "n" ? i * k + l : l * m + i)]!;
          const right = b![one * k * n + (transpose[1] === "n" ? l * n + j : j * k + l)]!;
          sum += left * right;
          size += Math.abs(left * right);
        }
        const at = one * m * n + i * n + j;
        const own = beta === 0 ? 0 : beta * c![at]!;
        const shift = bias === "none" ? 0 : operands.bias![bias === "row" ? i : j]!;
        const last = residual ? operands.residual![at]! : 0;
        // Neither is read where alpha is 0.
        const [product, products] = alpha === 0 ? [0, 0] : [alpha * sum, Math.abs(alpha) * size];
        values[at] = plainActivation(activation, product + own + shift) + last;
        magnitudes[at] = products + Math.abs(own) + Math.abs(shift) + Math.abs(last);
      }
    }
  }
  return { values, magnitudes };
}

/** An activation as it is defined; GELU with the integral of the normal distribution by Simpson's rule. */
export function plainActivation(kind: Activation, x: number): number {
  // Their limit, which no formula below has.
  if (x === -Infinity && (kind === "gelu" || kind === "silu")) return 0;
  switch (kind) {
    case "none":
      return x;
    case "relu":
      return Math.max(0, x);
    case "leaky-relu":
      return x < 0 ? x / 100 : x;
    case "sigmoid":
      return 1 / (1 + Math.exp(-x));
    case "tanh":
      return 1 - 2 / (Math.exp(2 * x) + 1);
    case "gelu":
      return x * normalShare(x);
    case "silu":
      return x / (1 + Math.exp(-x));
    default:
      throw new Error(`There is no plain ${kind}`);
  }
}

/** Φ(x) to about 1e-14. */
function normalShare(x: number): number {
  if (x < -8) return 0;
  if (x > 8) return 1;
  const steps = 1600;
  const h = x / steps;
  const density = (t: number) => Math.exp(-t * t / 2);
  let sum = density(0) + density(x);
  for (let i = 1; i < steps; i++) sum += (i % 2 === 1 ? 4 : 2) * density(i * h);
  return 0.5 + sum * h / 3 / Math.sqrt(2 * Math.PI);
}
