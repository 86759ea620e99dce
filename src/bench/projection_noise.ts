/**
 * How large the rounding errors of a healthy output are, from what a few outputs of the data at hand have in simulated
 * arithmetic: one accumulator, added to product by product.
 */
import type { ProjectionNoise } from "../accuracy/projection.ts";
import { F16_CHAIN } from "../kernels/micro_kernel.ts";
import {
  accumulationLength,
  type ConvProblem,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import type { GemmArithmetic } from "../problem/gemm_arithmetic.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import type { GemmInputs } from "../reference/gemm.ts";
import type { ReferenceInputs } from "../reference/reference.ts";
import { randomStream } from "../reference/sample.ts";
import { stridesInLayout } from "../tensor/layout.ts";
import { elementCount, unravelIndex } from "../tensor/tensor.ts";

const UNIT = { f16: 2 ** -11, f32: 2 ** -24, f64: 2 ** -53 } as const;
const SMALLEST = { f16: 2 ** -14, f32: 2 ** -126, f64: 2 ** -1022 } as const;

/** Outputs that are simulated, and products in all of them and in one, at most. */
const OUTPUTS = 64;
const PRODUCTS = 3e5;
const LONGEST = 2 ** 15;

/** The products that one output sums, in some order. */
type Products = Float64Array;

/** Of a convolution in f32; the algorithm's amplification enlarges the part of sums that wander. */
export function convNoise(
  problem: ConvProblem,
  inputs: ReferenceInputs,
  seed: number,
): ProjectionNoise {
  const count = elementCount(tensorShape(problem, resultTensor(problem.op)));
  const length = accumulationLength(problem);
  const samples = chosen(count, length, seed)
    .map((index) => convProducts(problem, inputs, index));
  return noiseOf("f32", length, samples, Math.fround, Infinity);
}

/** Of a product; sums of f16 in chains have what those add. */
export function gemmNoise(
  problem: GemmProblem,
  { dtype, accumulate }: GemmArithmetic,
  operands: GemmInputs,
  seed: number,
): ProjectionNoise {
  const { m, n, k, batch } = problem;
  const samples = chosen(batch * m * n, k, seed)
    .map((index) => gemmProducts(problem, operands, index));
  if (dtype === "f16" && accumulate === "f16") {
    return noiseOf("f16", k, samples, Math.f16round, F16_CHAIN);
  }
  if (dtype === "f64") {
    // The reference's own sums, of m and of k, round as much.
    const { products, result, ...rest } = noiseOf("f64", k + m, samples, Math.fround, Infinity);
    return { ...rest, products: 2 * products, result: 2 * result };
  }
  const noise = noiseOf("f32", k, samples, Math.fround, Infinity);
  if (dtype !== "f16") return noise;
  const stored = UNIT.f16 / Math.sqrt(3);
  return { ...noise, result: Math.hypot(noise.result, stored), smallest: SMALLEST.f16 };
}

/** The same where an algorithm enlarges errors, as Winograd does. */
export function amplified(
  noise: ProjectionNoise,
  amplification: number,
  length: number,
): ProjectionNoise {
  if (amplification <= 1) return noise;
  // Where products are few, those of an output's neighbours can be much larger than its own (`boundRatioLimit`).
  const factor = amplification * (1 + 24 / Math.max(1, length));
  return { ...noise, products: noise.products * factor };
}

/**
 * Partial sums of L products walk from 0 to y. With a variance of v a product, their squares add up to L·y²/3 + L²·v/6,
 * and each rounds by u/√3 of itself. How data and order differ from that is measured.
 */
function noiseOf(
  dtype: keyof typeof UNIT,
  length: number,
  samples: readonly Products[],
  round: (value: number) => number,
  chain: number,
): ProjectionNoise {
  const unit = UNIT[dtype];
  const model = (length: number, u: number) => {
    const steps = Math.min(Math.max(1, length), chain);
    return { products: u * Math.sqrt(steps / 18), result: u * Math.sqrt(steps) / 3 };
  };
  let squares = 0, count = 0, most = 0;
  for (const products of samples.map(scaled)) {
    const { products: wandering, result } = model(
      products.length,
      dtype === "f16" ? unit : UNIT.f32,
    );
    const exact = products.reduce((sum, product) => sum + product, 0);
    const size = Math.hypot(
      wandering * Math.sqrt(products.reduce((sum, product) => sum + product * product, 0)),
      result * exact,
    );
    if (!(size > 0) || !Number.isFinite(size)) continue;
    for (const order of [products, products.toReversed()]) {
      const ratio = Math.abs(chained(order, round, chain) - exact) / size;
      squares += ratio * ratio;
      most = Math.max(most, ratio);
      count++;
    }
  }
  // A few outputs may err more than the rest: a normal distribution's largest of these is below three.
  const measured = Math.max(1, Math.sqrt(squares / Math.max(1, count)), most / 3);
  const { products, result } = model(length, unit);
  return {
    products: measured * products,
    result: Math.hypot(measured * result, unit / Math.sqrt(3)),
    additions: unit,
    smallest: SMALLEST[dtype],
  };
}

/** Sums of `length` products each in one accumulator, added up in f32. */
export function chained(
  products: Products,
  round: (value: number) => number,
  length: number,
): number {
  let total = 0, sum = 0;
  for (let i = 0; i < products.length; i++) {
    sum = round(sum + products[i]!);
    if ((i + 1) % length !== 0) continue;
    total = Math.fround(total + sum);
    sum = 0;
  }
  return length === Infinity ? sum : Math.fround(total + sum);
}

/** Random results whose products are few enough together. */
function chosen(count: number, length: number, seed: number): number[] {
  const random = randomStream(seed);
  const each = Math.min(LONGEST, Math.max(1, length));
  const most = Math.max(8, Math.min(OUTPUTS, Math.floor(PRODUCTS / each)));
  return Array.from({ length: Math.min(most, count) }, () => Math.floor(random() * count));
}

/** Products of one output, scaled so that f32 and f16 hold them. */
function scaled(products: Products): Products {
  const most = products.reduce((size, product) => Math.max(size, Math.abs(product)), 0);
  const scale = most > 0 ? 2 ** -Math.ceil(Math.log2(most)) : 0;
  return products.map((product) => product * scale);
}

/** Products of the result at a flat index of the batch. */
export function gemmProducts(
  { m, n, k, transpose }: GemmProblem,
  { a, b }: GemmInputs,
  index: number,
): Products {
  const column = index % n;
  const rest = (index - column) / n;
  const row = rest % m;
  const one = (rest - row) / m;
  const depth = Math.min(k, LONGEST);
  return Float64Array.from({ length: depth }, (_, i) => {
    const left = a![one * m * k + (transpose[0] === "n" ? row * k + i : i * m + row)]!;
    const right = b![one * k * n + (transpose[1] === "n" ? i * n + column : column * k + i)]!;
    return left * right;
  });
}

/** Products of the result at a canonical index: channels inside, taps outside, as kernels go. */
export function convProducts(
  problem: ConvProblem,
  inputs: ReferenceInputs,
  index: number,
): Products {
  const { op, groups, stride, dilation, paddingBegin, inputSize, outputSize } = problem;
  const [inChannels, outChannels] = [problem.inChannels / groups, problem.outChannels / groups];
  const [first, second] = operandTensors(op).map((which) => {
    const { data, layout } = inputs[which]!;
    const strides = stridesInLayout(tensorShape(problem, which), layout);
    return (place: readonly number[]) =>
      data[place.reduce((sum, at, axis) => sum + at * strides[axis]!, 0)]!;
  }) as [(place: readonly number[]) => number, (place: readonly number[]) => number];
  const [outer, channel, ...at] = unravelIndex(
    index,
    tensorShape(problem, resultTensor(op)),
  ) as [number, number, ...number[]];
  const products: number[] = [];
  const sizes = op === "bwd-filter" ? [problem.batch, ...outputSize] : problem.filterSize;
  const steps = elementCount(sizes);
  for (let step = 0; step < steps && products.length < LONGEST; step++) {
    const walk = unravelIndex(step, sizes);
    if (op === "bwd-filter") {
      const [n, ...p] = walk as [number, ...number[]];
      const h = p.map((o, axis) =>
        o * stride[axis]! + at[axis]! * dilation[axis]! - paddingBegin[axis]!
      );
      if (h.some((place, axis) => place < 0 || place >= inputSize[axis]!)) continue;
      const group = Math.floor(outer / outChannels);
      products.push(first([n, group * inChannels + channel, ...h]) * second([n, outer, ...p]));
      continue;
    }
    const forward = op === "fwd";
    const group = Math.floor(channel / (forward ? outChannels : inChannels));
    const there = at.map((place, axis) =>
      forward
        ? place * stride[axis]! + walk[axis]! * dilation[axis]! - paddingBegin[axis]!
        : (place + paddingBegin[axis]! - walk[axis]! * dilation[axis]!) / stride[axis]!
    );
    const limit = forward ? inputSize : outputSize;
    if (there.some((place, axis) => place < 0 || place >= limit[axis]! || place % 1 !== 0)) {
      continue;
    }
    for (let c = 0; c < (forward ? inChannels : outChannels); c++) {
      products.push(
        forward
          ? first([outer, group * inChannels + c, ...there]) * second([channel, c, ...walk])
          : first([outer, group * outChannels + c, ...there]) *
            second([group * outChannels + c, channel % inChannels, ...walk]),
      );
    }
  }
  return Float64Array.from(products);
}
