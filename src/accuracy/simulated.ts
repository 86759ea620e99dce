/** Simulated f32 kernels, with known good and bad errors: for the gate's tests and its calibration. */
import { convProblem } from "../problem/conv_problem.ts";
import { referenceConv, type ReferenceResult } from "../reference/reference.ts";
import { type FillKind, fillTensor } from "../tensor/fill.ts";

/** Sums `length` products a[i + k]·b[j + k] the way a kernel on a GPU would. */
export type DotProduct = (
  a: Float32Array,
  i: number,
  b: Float32Array,
  j: number,
  length: number,
) => number;

/** The product of two floats is exact in a double, so only the sum is rounded: a fused multiply-add. */
function fused(a: Float32Array, i: number, b: Float32Array, j: number, length: number): number {
  let sum = 0;
  for (let k = 0; k < length; k++) sum = Math.fround(sum + a[i + k]! * b[j + k]!);
  return sum;
}

/** Product and sum rounded. */
function separate(a: Float32Array, i: number, b: Float32Array, j: number, length: number): number {
  let sum = 0;
  for (let k = 0; k < length; k++) sum = Math.fround(sum + Math.fround(a[i + k]! * b[j + k]!));
  return sum;
}

/** Partial sums of `size` products, then their sum: flushed accumulators, and split-K with a large size. */
function blocked(size: (length: number) => number): DotProduct {
  return (a, i, b, j, length) => {
    let sum = 0;
    const block = size(length);
    for (let k = 0; k < length; k += block) {
      sum = Math.fround(sum + fused(a, i + k, b, j + k, Math.min(block, length - k)));
    }
    return sum;
  };
}

function pairwise(a: Float32Array, i: number, b: Float32Array, j: number, length: number): number {
  if (length <= 8) return fused(a, i, b, j, length);
  const half = length >> 1;
  return Math.fround(
    pairwise(a, i, b, j, half) + pairwise(a, i + half, b, j + half, length - half),
  );
}

export const KERNELS: { readonly [name: string]: DotProduct } = {
  fused,
  separate,
  pairwise,
  "blocks of 96": blocked(() => 96),
  "split-K by 8": blocked((length) => Math.ceil(length / 8)),
};

/** A pointwise convolution [1, depth, outputs] * [channels, depth, 1]: every output sums `depth` products. */
export interface SimulatedCase {
  readonly input: Float32Array<ArrayBuffer>;
  readonly filter: Float32Array<ArrayBuffer>;
  readonly depth: number;
  readonly channels: number;
  readonly outputs: number;
  /** Products that are not 0 in an output of each channel. */
  readonly lengths: Float64Array;
  readonly reference: ReferenceResult;
}

/** Fills of the input and the filter, and which taps of the filter's channels are set to 0. */
export interface SimulatedData {
  readonly input: FillKind;
  readonly filter: FillKind;
  readonly dropped?: (channel: number, tap: number) => boolean;
}

/** Seeded data of one fill, or of several, and its reference. */
export async function simulatedCase(
  data: FillKind | SimulatedData,
  depth: number,
  channels: number,
  outputs: number,
  seed = 1,
): Promise<SimulatedCase> {
  const fills: SimulatedData = typeof data === "string" ? { input: data, filter: data } : data;
  const input = fillTensor("f32", [1, outputs, depth], fills.input, seed).data;
  const filter = fillTensor("f32", [channels, depth, 1], fills.filter, seed + 1).data;
  const lengths = new Float64Array(channels);
  filter.forEach((_, i) => {
    const channel = Math.floor(i / depth);
    if (fills.dropped?.(channel, i % depth)) filter[i] = 0;
    else lengths[channel]!++;
  });
  const problem = convProblem({
    batch: 1,
    inChannels: depth,
    outChannels: channels,
    inputSize: [outputs],
    filterSize: [1],
  });
  const reference = await referenceConv(problem, {
    input: { data: input, layout: "nhwc" },
    filter: { data: filter, layout: "kcrs" },
  }, { workers: 0 });
  return { input, filter, depth, channels, outputs, lengths, reference };
}

/** The results a kernel gives, in canonical order [1, channels, outputs]. */
export function simulate(given: SimulatedCase, kernel: DotProduct): Float32Array<ArrayBuffer> {
  const { input, filter, depth, channels, outputs } = given;
  const results = new Float32Array(channels * outputs);
  for (let channel = 0; channel < channels; channel++) {
    for (let output = 0; output < outputs; output++) {
      results[channel * outputs + output] = kernel(
        filter,
        channel * depth,
        input,
        output * depth,
        depth,
      );
    }
  }
  return results;
}
