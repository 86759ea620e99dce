import type { ReferenceResult } from "../reference/reference.ts";
import { elementCount, unravelIndex } from "../tensor/tensor.ts";
import { channelErrors } from "./channels.ts";
import { quantiles } from "./quantiles.ts";
import type { AccuracyReport, WorstElement } from "./report.ts";

export interface MeasureOptions {
  /** Strides of the results in memory, in elements, per canonical axis. */
  readonly strides: readonly number[];
  /** The axis a bad channel would show on: 1 for activations, 0 for filters. */
  readonly channelAxis: number;
  /** Of the accumulation: 2⁻²⁴ for f32. It tells the results' dtype too: f16 from 2⁻¹¹ on, f64 below 2⁻⁵⁰. */
  readonly unitRoundoff: number;
  /** Products that are not 0 in an output of each channel, where channels may differ in it. */
  readonly lengths?: ArrayLike<number> | undefined;
  /** How many worst elements to name; 3 where absent. */
  readonly worst?: number;
}

/** Below it float32 has no normal numbers, and a GPU may flush what it has. */
const SMALLEST_NORMAL = 2 ** -126;

/**
 * Compares results with their reference, in one pass.
 *
 * @param got All results, as they lie in memory.
 * @throws {TypeError} if `got` has another number of elements than the reference's shape.
 */
export function measureAccuracy(
  got: ArrayLike<number>,
  reference: ReferenceResult,
  options: MeasureOptions,
): AccuracyReport {
  const { shape, values, magnitudes, indices } = reference;
  const { strides, channelAxis, unitRoundoff } = options;
  const total = elementCount(shape);
  if (got.length !== total) {
    throw new TypeError(
      `Cannot compare with the reference: shape [${shape}] has ${total} elements, ` +
        `the results have ${got.length}`,
    );
  }
  const single = unitRoundoff > 2 ** -50;
  const stored = unitRoundoff >= 2 ** -11 ? Math.f16round : single ? Math.fround : Number;
  const relative = quantiles();
  const channels = channelErrors(shape[channelAxis] ?? 1, unitRoundoff, options.lengths);
  const place = memoryPlaces(shape, strides, channelAxis);
  const worst = worstList(options.worst ?? 3);
  const ulp = lastPlace();
  const counts = { nan: 0, inf: 0, mismatched: 0, zero_ref: 0, finite: 0, relative: 0 };
  let relSum = 0, relMax = 0, ulpMax = 0, ratioMax = 0, signedSum = 0;
  let errorSquares = 0, refSquares = 0, magnitudeSquares = 0;
  for (let i = 0; i < values.length; i++) {
    const index = indices === undefined ? i : indices[i]!;
    place.moveTo(index);
    const y = got[place.offset]!;
    const ref = values[i]!;
    if (Number.isNaN(y)) counts.nan++;
    else if (!Number.isFinite(y)) counts.inf++;
    if (!Number.isFinite(y) || !Number.isFinite(ref)) {
      // Beyond the range of the results' dtype its infinity is right.
      if (!Object.is(y, stored(ref))) {
        counts.mismatched++;
        ratioMax = Infinity;
        worst.offer(Infinity, index, y, ref);
      }
      continue;
    }
    counts.finite++;
    const error = y - ref;
    const size = Math.abs(error);
    const magnitude = magnitudes[i]!;
    errorSquares += error * error;
    refSquares += ref * ref;
    // An empty sum is exact: any error at all is infinitely many roundings.
    let ratio = size === 0 ? 0 : Infinity;
    if (magnitude > 0) {
      const scale = single ? Math.max(magnitude, SMALLEST_NORMAL / unitRoundoff) : magnitude;
      ratio = size / (unitRoundoff * scale);
      magnitudeSquares += scale * scale;
      signedSum += error / scale;
      // A clipped output (ReLU) says nothing of its channel.
      if (ref !== 0 || size !== 0) {
        channels.add(place.channel, error / scale, Math.abs(ref) / scale);
      }
    }
    if (ratio > ratioMax) ratioMax = ratio;
    worst.offer(ratio, index, y, ref);
    if (ref === 0) {
      counts.zero_ref++;
      continue;
    }
    const rel = size / Math.abs(ref);
    relative.add(rel);
    counts.relative++;
    relSum += rel;
    if (rel > relMax) relMax = rel;
    const places = size / ulp(ref);
    if (places > ulpMax) ulpMax = places;
  }
  const some = counts.relative > 0;
  const channel = channels.worst();
  return {
    mare: some ? relSum / counts.relative : null,
    median_rel: relative.at(0.5),
    p99_rel: relative.at(0.99),
    max_rel: some ? relMax : null,
    max_ulp: some ? ulpMax : null,
    rel_l2: quotient(errorSquares, refSquares, 0),
    max_bound_ratio: ratioMax,
    mean_signed: counts.finite > 0 ? signedSum / counts.finite : 0,
    condition: quotient(magnitudeSquares, refSquares, 1),
    channel_rms_ratio: channel.ratio,
    worst_channel: channel.channel,
    worst_channel_checked: channel.checked,
    channels: channel.channels,
    channel_unlikeness: channel.unlikeness,
    nan: counts.nan,
    inf: counts.inf,
    mismatched: counts.mismatched,
    zero_ref: counts.zero_ref,
    checked: values.length,
    total,
    worst: worst.list(shape),
  };
}

/** √(a / b), or `neither` where both are 0. */
function quotient(a: number, b: number, neither: number): number {
  return a === 0 && b === 0 ? neither : Math.sqrt(a / b);
}

/** Where canonical flat indices lie in memory; ascending ones are found without divisions. */
function memoryPlaces(shape: readonly number[], strides: readonly number[], channelAxis: number) {
  const rank = shape.length;
  const at = new Array<number>(rank).fill(0);
  const place = { offset: 0, channel: 0, moveTo };
  let current = 0;
  function moveTo(index: number): void {
    if (index === current) return;
    if (index !== current + 1) {
      place.offset = 0;
      unravelIndex(index, shape).forEach((value, axis) => {
        at[axis] = value;
        place.offset += value * strides[axis]!;
      });
    } else {
      for (let axis = rank - 1; axis >= 0; axis--) {
        at[axis]!++;
        place.offset += strides[axis]!;
        if (at[axis]! < shape[axis]!) break;
        place.offset -= strides[axis]! * shape[axis]!;
        at[axis] = 0;
      }
    }
    current = index;
    place.channel = at[channelAxis] ?? 0;
  }
  return place;
}

/** Keeps the elements with the largest ratios. */
function worstList(size: number) {
  const kept: { ratio: number; index: number; got: number; ref: number }[] = [];
  return {
    offer(ratio: number, index: number, got: number, ref: number): void {
      if (ratio === 0 || (kept.length === size && !(ratio > (kept.at(-1)?.ratio ?? Infinity)))) {
        return;
      }
      const before = kept.findIndex((other) => other.ratio < ratio);
      kept.splice(before < 0 ? kept.length : before, 0, { ratio, index, got, ref });
      if (kept.length > size) kept.pop();
    },
    list(shape: readonly number[]): WorstElement[] {
      return kept.map(({ index, got, ref }) => ({ index: unravelIndex(index, shape), got, ref }));
    },
  };
}

/** The unit in float32's last place at a number: 2^(exponent − 23), 2⁻¹⁴⁹ below the normal ones. */
function lastPlace(): (value: number) => number {
  const number = new Float64Array(1);
  const words = new Uint32Array(number.buffer);
  const units = Float64Array.from(
    { length: 2048 },
    (_, biased) => 2 ** (Math.max(biased - 1023, -126) - 23),
  );
  return (value) => {
    number[0] = value;
    return units[(words[1]! >>> 20) & 2047]!;
  };
}
