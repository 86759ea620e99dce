import { ERROR_CEILING } from "../problem/error_bound.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { bf16round } from "../tensor/convert.ts";

/** In what results are summed and stored: what an error is measured by. */
export interface Precision {
  /** Unit roundoff of the sums: 2⁻²⁴ for f32, 2⁻⁵³ for f64, 0 for integers. */
  readonly unitRoundoff: number;
  /** Unit roundoff of the operands, where they are rounded to less than the sums: what errors are in proportion to. */
  readonly operandRoundoff?: number;
  /** Smallest normal number of the sums; a GPU may flush what is below. */
  readonly smallestNormal: number;
  /** Of the results, rounded to the nearest: f16 and bf16 ones are coarser than their sums. */
  readonly result: "bf16" | "f16" | "f32" | "f64" | "i32";
  /** The share of the data's norm that errors never reach; what is usual for `result` where absent. */
  readonly ceiling?: number;
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

/** Sums in f32, results in bf16. */
export const BF16: Precision = { ...F32, result: "bf16" };

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
  const { unitRoundoff, operandRoundoff = 0, smallestNormal } = precision;
  const sums = Math.max(Math.max(unitRoundoff, operandRoundoff) * magnitude, smallestNormal);
  const half = HALF_UNITS[precision.result];
  return half === undefined ? sums : sums + halfUnit(half, value);
}

/**
 * What an arithmetic's results are measured by.
 *
 * @param base The precision of sums and results that it says nothing of.
 */
export function arithmeticPrecision(
  base: Precision,
  { sums, chain, operands, results }: PlanArithmetic,
): Precision {
  const summed = sums === "f16"
    // Long sums of f16 stop growing.
    ? {
      ...base,
      unitRoundoff: 2 ** -11,
      ...(chain === undefined ? { ceiling: ERROR_CEILING.bf16 } : {}),
    }
    : sums === "f64"
    ? F64
    : sums === "f32" && base.result === "f64"
    ? F32
    : base;
  const precision = results === undefined ? summed : { ...summed, result: results };
  if (operands === undefined || operands === "f32") return precision;
  const [operandRoundoff, least] = ROUNDED_OPERANDS[operands];
  const ceiling = Math.max(least, precision.ceiling ?? ERROR_CEILING[precision.result]);
  return { ...precision, operandRoundoff, ceiling };
}

/** What operands are rounded by, and the ceiling that their errors have. */
const ROUNDED_OPERANDS = {
  tf32: [2 ** -11, ERROR_CEILING.f16],
  "tf32-truncated": [2 ** -10, ERROR_CEILING.f16],
  f16: [2 ** -11, ERROR_CEILING.f16],
  bf16: [2 ** -8, ERROR_CEILING.bf16],
} as const;

/** A number as its results are stored. */
export function stored(precision: Precision, value: number): number {
  switch (precision.result) {
    case "bf16":
      return bf16round(value);
    case "f16":
      return Math.f16round(value);
    case "f32":
      return Math.fround(value);
    default:
      return value;
  }
}

/** The power of two above the largest number that results may be: what rounds to it is infinite. */
export function aboveLargest({ result }: Pick<Precision, "result">): number {
  return 2 ** (result === "f16" ? 16 : result === "f64" ? 1024 : 128);
}

/** Of results that are coarser than their sums: the exponents of the smallest normal number, and of half a unit of 1. */
const HALF_UNITS: { readonly [result in Precision["result"]]?: readonly [number, number] } = {
  f16: [-14, -11],
  bf16: [-126, -8],
};

const DOUBLE = new Float64Array(1);
const WORDS = new Uint32Array(DOUBLE.buffer);

/** Half of the unit in the last place of a number, and of all below the normal ones. */
function halfUnit([least, half]: readonly [number, number], value: number): number {
  const size = Math.abs(value);
  if (!Number.isFinite(size)) return size;
  // By the bits of doubles: logarithms and powers take most of the time that a comparison does.
  DOUBLE[0] = size;
  const exponent = Math.max(least, (WORDS[1]! >>> 20) - 1023);
  WORDS[0] = 0;
  WORDS[1] = exponent + half + 1023 << 20;
  return DOUBLE[0]!;
}
