import { InputTypeError } from "../errors.ts";
import type { ReferenceResult } from "../reference/reference.ts";
import { elementCount, rowMajorStrides, type Tensor, unravelIndex } from "../tensor/tensor.ts";
import { type ErrorGroup, groupErrors, type Grouping } from "./groups.ts";
import { BF16, F16, F32, F64, type Precision } from "./precision.ts";
import { comparison, flushedSize, type MeasureOptions } from "./walk.ts";
import { quantiles } from "./quantiles.ts";

/** An output, and what it should be. */
export interface WorstElement {
  /** Index in canonical axes: N K P Q, N C H W or K C R S. */
  readonly index: number[];
  /** What the kernel gave. */
  readonly got: number;
  /** What the reference says. */
  readonly ref: number;
}

/**
 * How far results are from their reference. Names are those of the record schema. Relative figures are over
 * outputs with a finite reference other than 0, and `null` where there is none.
 */
export interface AccuracyReport {
  /** Mean of |y − ref| / |ref|. */
  readonly mare: number | null;
  /** Quantiles of the same, to 0.2 %. */
  readonly median_rel: number | null;
  /** The 99th percentile of the same. */
  readonly p99_rel: number | null;
  /** The largest of the same. */
  readonly max_rel: number | null;
  /** Largest |y − ref| in units of float32's last place at ref. */
  readonly max_ulp: number | null;
  /** ‖y − ref‖ / ‖ref‖; 0 where both are 0, infinite where only the reference is 0. */
  readonly rel_l2: number;
  /** Largest |y − ref| over its scale, u · Σ|a||b| but for f16 results (`errorScale`). */
  readonly max_bound_ratio: number;
  /** Mean of (y − ref) / Σ|a||b|: a bias, as truncation has it, shows here. */
  readonly mean_signed: number;
  /** ‖Σ|a||b|‖ / ‖ref‖: how much the data cancels; 1 for positive data, more for subnormal. */
  readonly condition: number;
  /** NaNs among the outputs that were compared. */
  readonly nan: number;
  /** Infinities among them. */
  readonly inf: number;
  /** Outputs that are NaN or infinite where the reference is not the same, or the other way round. */
  readonly mismatched: number;
  /** Outputs whose reference is 0: left out of relative figures, not of the bound ratio. */
  readonly zero_ref: number;
  /** Outputs compared, out of `total`. */
  readonly checked: number;
  /** Outputs of the result. */
  readonly total: number;
  /** The largest bound ratios, largest first. */
  readonly worst: readonly WorstElement[];
}

/** An output whose error is large for its scale. */
export interface Outlier {
  /** Canonical flat index. */
  readonly index: number;
  /** |error| over its scale. */
  readonly ratio: number;
  /** y − ref */
  readonly error: number;
  /** What it is measured by: u·Σ|a||b|, and half a unit of the last place where results are stored in f16. */
  readonly scale: number;
}

/** An output of a group. */
export interface GroupMember {
  /** Canonical flat index. */
  readonly index: number;
  /** y − ref */
  readonly error: number;
  /** |error| over its scale. */
  readonly ratio: number;
}

/** Errors over their scales, put together. */
export interface ErrorSums {
  /** ‖y − ref‖ / ‖ref‖; 0 where both are 0, infinite where only the reference is 0. */
  readonly relL2: number;
  /** √(Σ error² / Σ scale²): the RMS of error over scale, each weighted by its scale. 0 where both are 0. */
  readonly weightedRms: number;
  /** Errors by group. */
  readonly groups: readonly ErrorGroup[];
}

/** A comparison, with what a judgement goes by beside the report. */
export interface Measured extends ErrorSums {
  /** The metrics. */
  readonly report: AccuracyReport;
  /** Infinite results whose reference is finite, but beyond their dtype's range. */
  readonly overflow: { readonly count: number; /** |ref| */ readonly largest: number };
  /** The size up to which an error counts for none: what a GPU may flush to zero. */
  readonly flushed: number;
  /** Outputs that are NaN where the reference is not, since padding meets NaN or an infinity. */
  readonly padded: number;
  /** Outputs whose scale is not finite: nothing can be said of their errors. */
  readonly unbounded: number;
  /** The largest ratios, largest first; all where there are few. */
  readonly outliers: readonly Outlier[];
  /** √(Σ scale²) / ‖ref‖: a relative L2 error is the RMS of error over scale times this; infinite where ‖ref‖ is 0. */
  readonly scaleNorm: number;
  /** (Σ scale²)² / Σ scale⁴: as many outputs of one scale say as much of the relative L2 error. */
  readonly effective: number;
  /** ‖y − ref‖ / max(‖ref‖, ‖Σ|a||b|‖ / √L). */
  readonly normalError: number;
  /** Outputs whose reference is no larger, 0 itself not counted. */
  upTo(size: number): number;
  /** Up to `count` outputs of a group, spread over it. */
  members(group: ErrorGroup, count: number): GroupMember[];
  /** The same of the whole result, each in proportion to the square of its scale: where errors weigh most. */
  weighty(count: number): GroupMember[];
  /** Up to `count` outputs that err, of a group or of the whole result, spread over it. */
  erring(count: number, group?: ErrorGroup): GroupMember[];
}

const OUTLIERS = 64;

/**
 * Compares results with their reference.
 *
 * @param got All results, as they lie in memory.
 * @throws {TypeError} if `got` has another number of elements than the reference's shape.
 */
export function measureAccuracy(
  got: ArrayLike<number>,
  reference: ReferenceResult,
  options: MeasureOptions,
): Measured {
  const { shape, values, magnitudes } = reference;
  const { accumulationLength = 1, grouping, worst: named = 3 } = options;
  const total = elementCount(shape);
  if (got.length !== total) {
    throw new TypeError(
      `Cannot compare with the reference: shape [${shape}] has ${total} elements, ` +
        `the results have ${got.length}`,
    );
  }
  const relative = quantiles();
  const ulp = lastPlace();
  const worst = largestList<Outlier & { got: number; ref: number }>(Math.max(OUTLIERS, named));
  const counts = { nan: 0, inf: 0, mismatched: 0, zero_ref: 0, finite: 0, relative: 0 };
  let relSum = 0, relMax = 0, ulpMax = 0, signedSum = 0;
  // Squares of f64 leave its range where the numbers do not.
  const norm = normalizer(values, magnitudes);
  const overflow = { count: 0, largest: 0 };
  let magnitudeSquares = 0, scaleSquares = 0, scaleFourths = 0, unbounded = 0, padded = 0;
  const sums = errorSums(shape, grouping, norm);
  const compare = comparison(got, reference, options);
  compare((at, index, y, ref, error, scale, magnitude) => {
    if (Number.isNaN(y)) counts.nan++;
    else if (!Number.isFinite(y)) counts.inf++;
    if (Number.isNaN(error)) {
      counts.mismatched++;
      worst.offer({ ratio: Infinity, error: Infinity, scale: 0, index, got: y, ref });
      return;
    }
    if (!Number.isFinite(y) && error === 0) {
      if (Number.isNaN(y)) {
        if (!Number.isNaN(ref)) padded++;
        return;
      }
      if (!Number.isFinite(ref)) return;
      overflow.count++;
      overflow.largest = Math.max(overflow.largest, Math.abs(ref));
      return;
    }
    counts.finite++;
    if (!Number.isFinite(scale)) {
      unbounded++;
      return;
    }
    const size = Math.abs(error);
    const ratio = ratioOf(error, scale);
    sums.add(at, index, ref, error, ratio);
    magnitudeSquares += (magnitude * norm) ** 2;
    const square = (scale * norm) ** 2;
    scaleSquares += square;
    scaleFourths += square * square;
    if (magnitude > 0) signedSum += error / magnitude;
    if (ratio > 0) worst.offer({ ratio, error: size, scale, index, got: y, ref });
    if (ref === 0) {
      counts.zero_ref++;
      return;
    }
    const rel = size / Math.abs(ref);
    relative.add(rel);
    counts.relative++;
    relSum += rel;
    if (rel > relMax) relMax = rel;
    const places = size / ulp(ref);
    if (places > ulpMax) ulpMax = places;
  });
  const some = counts.relative > 0;
  const outliers = worst.list();
  const { relL2, groups, errorSquares, refSquares } = sums.done();
  const normSquares = Math.max(
    refSquares,
    magnitudeSquares / Math.max(1, accumulationLength),
    counts.finite * (coarsest(options.precision) * norm) ** 2,
  );
  const report: AccuracyReport = {
    mare: some ? relSum / counts.relative : null,
    median_rel: relative.at(0.5),
    p99_rel: relative.at(0.99),
    max_rel: some ? relMax : null,
    max_ulp: some ? ulpMax : null,
    rel_l2: relL2,
    max_bound_ratio: outliers[0]?.ratio ?? 0,
    mean_signed: counts.finite > 0 ? signedSum / counts.finite : 0,
    condition: quotient(magnitudeSquares, refSquares, 1),
    nan: counts.nan,
    inf: counts.inf,
    mismatched: counts.mismatched,
    zero_ref: counts.zero_ref,
    checked: values.length,
    total,
    worst: outliers.slice(0, named).map(({ index, got, ref }) => ({
      index: unravelIndex(index, shape),
      got,
      ref,
    })),
  };
  return {
    report,
    overflow,
    flushed: flushedSize(options),
    unbounded,
    padded,
    relL2,
    weightedRms: quotient(errorSquares, scaleSquares, 0),
    outliers,
    groups,
    scaleNorm: quotient(scaleSquares, refSquares, 0),
    effective: scaleFourths === 0 ? 0 : scaleSquares * scaleSquares / scaleFourths,
    normalError: quotient(errorSquares, normSquares, 0),
    upTo: (size) =>
      values.reduce(
        (count, value) => value !== 0 && Math.abs(value) <= size ? count + 1 : count,
        0,
      ),
    members: (group, count) => spread(({ at }) => group.has(at), count),
    erring: (count, group) =>
      spread(({ at, error }) => error !== 0 && (group === undefined || group.has(at)), count),
    weighty(count) {
      const chosen: GroupMember[] = [];
      const step = scaleSquares / count;
      let sum = 0;
      compare((_, index, __, ___, error, scale) => {
        sum += (scale * norm) ** 2;
        // An output with the weight of several stands for them all.
        while (sum > (chosen.length + 0.5) * step) {
          chosen.push({ index, error, ratio: ratioOf(error, scale) });
        }
      });
      return chosen;
    },
  };

  /** Up to `count` of the outputs that are wanted, spread over them. */
  function spread(
    wants: (output: { at: readonly number[]; error: number }) => boolean,
    count: number,
  ): GroupMember[] {
    const found: GroupMember[] = [];
    compare((at, index, _, __, error, scale) => {
      if (wants({ at, error })) found.push({ index, error, ratio: ratioOf(error, scale) });
    });
    if (found.length <= count) return found;
    return Array.from({ length: count }, (_, i) => found[Math.floor(i * found.length / count)]!);
  }
}

/** An error over its scale. What has no scale is exact: an error is infinitely many roundings. */
function ratioOf(error: number, scale: number): number {
  return error === 0 ? 0 : Math.abs(error) / scale;
}

/** Below it the last place of results is coarse by itself: f16's 2⁻²⁴ is a thirtieth of it. */
function coarsest({ result }: Precision): number {
  return result === "f16" ? 2 ** -19 : 0;
}

/** Adds up squares of errors, all and by group. */
function errorSums(shape: readonly number[], grouping: Grouping | undefined, norm: number) {
  const groups = grouping === undefined ? undefined : groupErrors(shape, grouping);
  let errorSquares = 0, refSquares = 0;
  return {
    add(at: readonly number[], index: number, ref: number, error: number, ratio: number): void {
      errorSquares += (error * norm) ** 2;
      refSquares += (ref * norm) ** 2;
      // A clipped output (ReLU) says nothing of its group.
      if (ref !== 0 || error !== 0) groups?.add(at, index, ratio);
    },
    done: () => ({
      relL2: quotient(errorSquares, refSquares, 0),
      groups: groups?.list(1) ?? [],
      errorSquares,
      refSquares,
    }),
  };
}

/** √(a / b), or `neither` where both are 0. */
function quotient(a: number, b: number, neither: number): number {
  return a === 0 && b === 0 ? neither : Math.sqrt(a / b);
}

/** A power of two that brings the largest of the numbers near 1. */
function normalizer(...arrays: readonly Float64Array[]): number {
  let most = 0;
  for (const array of arrays) {
    for (const value of array) {
      const size = Math.abs(value);
      if (size > most && size < Infinity) most = size;
    }
  }
  return most === 0 ? 1 : 2 ** Math.max(-1022, Math.min(1022, -Math.floor(Math.log2(most))));
}

/** Keeps the elements with the largest ratios. */
function largestList<T extends { readonly ratio: number }>(size: number) {
  const kept: T[] = [];
  return {
    offer(one: T): void {
      if (kept.length === size && !(one.ratio > kept[size - 1]!.ratio)) return;
      const before = kept.findIndex((other) => other.ratio < one.ratio);
      kept.splice(before < 0 ? kept.length : before, 0, one);
      if (kept.length > size) kept.pop();
    },
    list: (): readonly T[] => kept,
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

/**
 * The metrics between two tensors of one shape. Nothing is known of the sums they were made by, so |ref|
 * stands in for Σ|a||b|: the bound ratio is the largest relative error in roundings of `got`'s dtype, and
 * infinite where `ref` is 0 and `got` is not. Axis 1 counts as channels, where there is one.
 *
 * @throws {TypeError} if the shapes differ.
 * @example
 * ```ts
 * import { compareTensors, tensor } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const ref = tensor("f32", [2], new Float32Array([1, 2]));
 * const got = tensor("f32", [2], new Float32Array([1, 2.5]));
 * assert.equal(compareTensors(got, ref).max_rel, 0.25);
 * ```
 */
export function compareTensors(got: Tensor, ref: Tensor): AccuracyReport {
  const { shape } = ref;
  if (got.shape.length !== shape.length || got.shape.some((size, axis) => size !== shape[axis])) {
    throw new InputTypeError(`Cannot compare tensors: shapes are [${got.shape}] and [${shape}]`);
  }
  const values = numbers(ref);
  return measureAccuracy(numbers(got), { values, magnitudes: values.map(Math.abs), shape }, {
    strides: rowMajorStrides(shape),
    precision: got.dtype === "f64"
      ? F64
      : got.dtype === "f16"
      ? F16
      : got.dtype === "bf16"
      ? BF16
      : F32,
  }).report;
}

function numbers({ data }: Tensor): Float64Array {
  const values = new Float64Array(data.length);
  for (let i = 0; i < values.length; i++) values[i] = Number(data[i]!);
  return values;
}
