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
