import type { PlanArithmetic } from "./plan_arithmetic.ts";

/**
 * What is done about units that cut sums of f32 in halves off toward zero instead of rounding them. High halves of A are
 * rounded away from zero. Its low halves then have the other sign, and as much is cut off their products as off those of
 * the high halves: the two cancel. What a step still takes of the sum itself is the same share whatever the signs, so
 * results are multiplied by 1 + `drift` · 2^-23.
 */
export type SplitDrift = Pick<PlanArithmetic, "highs" | "drift" | "driftLength">;

/**
 * What a step takes of a sum, in units of 2^-23 of itself, where as much is cut off the products of low halves as off those of high ones:
 * 0.33 to 0.41 of sums of one sign and of two that grow evenly.
 */
const A_STEP = 0.36;

/** Fewer products lose too little for low halves of one sign, which hold one bit less. */
const LEAST_PRODUCTS = 64;

/**
 * What is done about it.
 *
 * @param products Of a sum.
 * @param cutsOff Whether units are known to.
 */
export function splitDrift(
  sums: Pick<PlanArithmetic, "chain" | "segment" | "unit">,
  products: number,
  cutsOff = false,
): SplitDrift {
  const { chain = products, segment = products, unit = 1 } = sums;
  if (!cutsOff || products < LEAST_PRODUCTS) return {};
  // Each chain loses by its length, and has as much of the sum.
  const squares = parts(products, segment).flatMap((one) => parts(one, chain))
    .reduce((sum, one) => sum + one * one, 0);
  return { highs: "away", drift: Math.round(A_STEP * squares / products / unit) };
}

/** Mean length of the chains of a sum, by products. */
export function meanChain(
  { chain = Infinity, segment = Infinity }: Pick<PlanArithmetic, "chain" | "segment">,
  products: number,
): number {
  return Math.min(products, chain, segment);
}

/**
 * By how much a result of so many products is enlarged, in units of 2^-23: of those that meet fewer, as at an image's edge, chains are
 * shorter. `split_windows.wgsl` counts alike.
 */
export function driftOf({ drift = 0, driftLength }: SplitDrift, products: number): number {
  if (driftLength === undefined) return drift;
  return Math.min(
    drift,
    Math.floor((drift * products + Math.floor(driftLength / 2)) / driftLength),
  );
}

/** The lengths of parts of so many each, but for what is left. */
function parts(all: number, each: number): number[] {
  const whole = new Array<number>(Math.floor(all / each)).fill(each);
  return all % each === 0 ? whole : [...whole, all % each];
}

/** Results are so many times as large, of so many products. */
export function driftFactor(arithmetic: SplitDrift, products = Infinity): number {
  const drift = products === Infinity ? arithmetic.drift ?? 0 : driftOf(arithmetic, products);
  return 1 + drift * 2 ** -23;
}

/**
 * f32 operands as two halves each: a row of A, and a column of B, is multiplied by the power of two that
 * brings its largest value to between 2^14 and 2^15, below f16's 65,504. A value keeps 22 bits down to 2^-2 then, 2^-16 of the
 * largest; smaller ones are rounded to multiples of 2^-24, which is below f32's rounding of the sum where that is large enough.
 * Where n values of a row and its column are small, p and q of their L values large, that is so if `weight`·(p + q − L) ≥ n,
 * as so many large values must meet, or if the sum itself is that large. Other results are computed in f32.
 */
export const SPLIT_ROUNDING = {
  /** Exponent that a row's largest value gets. */
  top: 14,
  /** A value is small where its exponent is more than so many below the largest one's. */
  smallBits: 16,
  /**
   * Values of transformed patches whose largest is more than so many below are rounded to nothing, and err by themselves: together they
   * count as the `lightest` part of what is small.
   */
  lightBits: 47,
  lightest: 2 ** -8,
  /** A value is large where its exponent is at most so many below the largest one's. */
  largeBits: 6,
  /**
   * n small values, each rounded by up to 2^-24 and multiplied by up to 2^15, err by up to 4 u·Σ|a||b| where Σ|a||b| is at least
   * n·2^13, u being 2^-24.
   */
  enough: 2 ** 13,
  /**
   * Sums of whole numbers of so many bits are exact, or nearly. Of finer values that a high half holds, which leave nothing, a low half
   * is made, of the other sign, so that what is cut off sums cancels as it does of all others.
   */
  wholeBits: 8,
  /** A product of two large values is 2^16, that is so many times `enough`. */
  weight: 8,
  /** Exponent of the least largest value: the factors of smaller ones would take f32's subnormal values above 2^-26. */
  least: -86,
  /** Exponent of the largest largest value that is transformed: what transforms have on their way may be some times larger. */
  most: 122,
  /** Products of a chain of sums in f32 in place of halves: they err less than those of halves beside them, however many. */
  chain: 128,
} as const;

/**
 * How the 11 bits of a high half are rounded. Units cut the products of high halves off toward zero; where those of one operand are away
 * from zero, what its low halves add is of the other sign, and as much is cut off it (`SplitDrift`).
 */
export type HighRounding = "nearest" | "away";
