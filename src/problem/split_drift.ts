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
