import type { ChannelView, ProjectedArray } from "./project_channels.ts";
import { randomStream } from "./sample.ts";

/** Elements of a channel that its size is taken from, about. */
const ELEMENTS = 1024;
/** Weights stay within 2^±480, so that sums of their squares are finite. */
const LARGEST_EXPONENT = 480;

/** Root mean square of each channel, of some of its finite elements, spread over all of it. */
export function channelRms(
  data: ProjectedArray,
  { outer, channels, places, offset, outerStride, channelStride, placeStride }: ChannelView,
): Float64Array {
  const total = outer * places;
  // An odd number of steps does not fall in with rows of a power of two.
  const step = Math.max(1, Math.floor(total / ELEMENTS)) | 1;
  const result = new Float64Array(channels);
  const values = new Float64Array(Math.ceil(total / step));
  for (let channel = 0; channel < channels; channel++) {
    const base = offset + channel * channelStride;
    for (let i = 0, at = 0; at < total; i++, at += step) {
      const place = at % places;
      values[i] = data[base + (at - place) / places * outerStride + place * placeStride]!;
    }
    result[channel] = rootMeanSquare(values);
  }
  return result;
}

/** Root mean square of what is finite, without overflow; 0 where nothing is. */
export function rootMeanSquare(values: Float64Array): number {
  let most = 0;
  for (const value of values) {
    if (Number.isFinite(value)) most = Math.max(most, Math.abs(value));
  }
  if (most === 0) return 0;
  let squares = 0, count = 0;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    squares += (value / most) ** 2;
    count++;
  }
  return most * Math.sqrt(squares / count);
}

/**
 * Seeded weights of random signs, with magnitudes in [1, 2) over the power of two nearest to the channel's size: so
 * channels of unlike size count alike. A channel of zeros counts as the median one.
 */
export function randomWeights(sizes: Float64Array, seed: number): Float64Array {
  const random = randomStream(seed);
  const nonzero = sizes.filter((size) => size > 0).sort();
  const median = nonzero[nonzero.length >> 1] ?? 1;
  return sizes.map((size) => {
    const sign = random() < 0.5 ? -1 : 1;
    return sign * (1 + random()) * powerOfTwo(1 / (size > 0 ? size : median));
  });
}

/** The power of two nearest to a number > 0. */
export function powerOfTwo(value: number): number {
  const exponent = Math.round(Math.log2(value));
  return 2 ** Math.max(-LARGEST_EXPONENT, Math.min(LARGEST_EXPONENT, exponent));
}

/** Sums of `values` in groups of equally many. */
export function groupSums(values: Float64Array, groups: number): Float64Array {
  const sums = new Float64Array(groups);
  const each = values.length / groups;
  values.forEach((value, i) => sums[Math.floor(i / each)]! += value);
  return sums;
}
