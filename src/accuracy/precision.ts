/** In what results are summed and stored: what an error is measured by. */
export interface Precision {
  /** Unit roundoff of the sums: 2⁻²⁴ for f32, 2⁻⁵³ for f64, 0 for integers. */
  readonly unitRoundoff: number;
  /** Smallest normal number of the sums; a GPU may flush what is below. */
  readonly smallestNormal: number;
  /** Of the results, rounded to the nearest: f16 ones are coarser than their sums. */
  readonly result: "f16" | "f32" | "f64" | "i32";
}

/** Sums and results in f32. */
export const F32: Precision = {
  unitRoundoff: 2 ** -24,
  smallestNormal: 2 ** -126,
  result: "f32",
};

/** Sums and results in f64. */
export const F64: Precision = {
  unitRoundoff: 2 ** -53,
  smallestNormal: 2 ** -1022,
  result: "f64",
};

/** Sums in f32, results in f16. */
export const F16: Precision = { ...F32, result: "f16" };

/** Sums in chains of f16. */
export const F16_SUMS: Precision = { ...F16, unitRoundoff: 2 ** -11 };

/** Whole numbers have no rounding errors. */
export const I32: Precision = { unitRoundoff: 0, smallestNormal: 0, result: "i32" };

/**
 * What the error of an output is measured by: u·Σ|a||b| of its sums, and half a unit of its last place where results are
 * stored in f16. 0 only where the output must be exact.
 *
 * @param magnitude Σ|a||b|; of a Winograd tile's outputs that of the tile.
 */
export function errorScale(precision: Precision, magnitude: number, value: number): number {
  if (precision.unitRoundoff === 0 || magnitude === 0) return 0;
  const sums = Math.max(precision.unitRoundoff * magnitude, precision.smallestNormal);
  return precision.result === "f16" ? sums + halfUnitF16(value) : sums;
}

/** A number as its results are stored. */
export function stored(precision: Precision, value: number): number {
  switch (precision.result) {
    case "f16":
      return Math.f16round(value);
    case "f32":
      return Math.fround(value);
    default:
      return value;
  }
}

/** Half of the unit in f16's last place: 2⁻²⁵ below its normal numbers. */
function halfUnitF16(value: number): number {
  const size = Math.abs(value);
  if (size < 2 ** -14) return 2 ** -25;
  return 2 ** (Math.floor(Math.log2(size)) - 11);
}
