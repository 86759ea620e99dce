/** Robust statistics of repeated timings. */

/**
 * Median: the middle value, or the mean of the two middle ones.
 *
 * @throws {RangeError} if there is no value.
 */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError("Cannot take the median: there are no values");
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/**
 * Median absolute deviation from the median: the spread that single outliers do not move.
 *
 * @throws {RangeError} if there is no value.
 */
export function medianAbsoluteDeviation(values: readonly number[]): number {
  const centre = median(values);
  return median(values.map((value) => Math.abs(value - centre)));
}

/** Geometric mean; `null` of nothing. */
export function geometricMean(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}
