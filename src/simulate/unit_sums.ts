import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { foldedSums, type SimulatedSums, type SumOrder, type SumSource } from "./sum_source.ts";

/** Bits of the 24 of f32 and of the two behind them, from the first bit of the largest term on. */
const UNIT_BITS = 25;

/**
 * Sums of matrix units as an H100's and an H200's were measured to make them: the sum so far and the exact products of a step are
 * cut off behind two bits more than f32 has of the largest of them, added, and cut off to f32. A product counts as large as
 * its factors' exponents say. Units of other makers err less.
 */
export function unitSums(
  { units, lefts, rights, initial, load }: SumSource,
  arithmetic: PlanArithmetic,
  depth: number,
  { start = 0 }: SumOrder,
): SimulatedSums {
  const count = lefts * rights;
  let rounded = false;
  const sums = foldedSums(count, arithmetic, Math.fround);
  const { open } = sums;
  if (initial !== undefined) open.set(initial);
  const exact = new Float64Array(count);
  const magnitudes = new Float64Array(count);
  const squares = new Float64Array(count);
  const products = new Float64Array(depth);
  const patch = (size: number) => Array.from({ length: depth }, () => new Float64Array(size));
  const [xs, ws] = [patch(lefts), patch(rights)];
  const [xExponents, wExponents] = [patch(lefts), patch(rights)];
  for (let first = 0; first < units; first += depth) {
    const terms = Math.min(depth, units - first);
    for (let term = 0; term < terms; term++) {
      load((first + term + start) % units, xs[term]!, ws[term]!);
      for (let i = 0; i < lefts; i++) xExponents[term]![i] = exponentOf(xs[term]![i]!);
      for (let i = 0; i < rights; i++) wExponents[term]![i] = exponentOf(ws[term]![i]!);
    }
    for (let left = 0, i = 0; left < lefts; left++) {
      for (let right = 0; right < rights; right++, i++) {
        let largest = -Infinity;
        for (let term = 0; term < terms; term++) {
          largest = Math.max(largest, xExponents[term]![left]! + wExponents[term]![right]!);
          const product = xs[term]![left]! * ws[term]![right]!;
          products[term] = product;
          exact[i]! += product;
          magnitudes[i]! += Math.abs(product);
          squares[i]! += product * product;
        }
        const before = open[i]!;
        const next = addUnit(before, products, terms, largest);
        if (
          !rounded && next !== products.subarray(0, terms).reduce((sum, one) => sum + one, before)
        ) {
          rounded = true;
        }
        open[i] = next;
      }
    }
    for (let term = 0; term < terms; term++) sums.step();
  }
  const rests = new Float64Array(count);
  return { values: sums.totals(), exact, rests, magnitudes, squares, rounded };
}

/**
 * A unit's sum after a step.
 *
 * @param products The first `terms` of them are added.
 * @param largest What the factors' exponents say of the largest product.
 */
export function addUnit(
  before: number,
  products: Float64Array,
  terms: number,
  largest: number,
): number {
  largest = Math.max(largest, exponentOf(before));
  if (largest === -Infinity) return before;
  const last = 2 ** (largest - UNIT_BITS);
  let kept = Math.trunc(before / last) * last;
  for (let term = 0; term < terms; term++) kept += Math.trunc(products[term]! / last) * last;
  return towardZero(kept);
}

const DOUBLE = new Float64Array(1);
const DOUBLE_WORDS = new Uint32Array(DOUBLE.buffer);

/** e of a value from 2^e up to 2^(e + 1), of subnormal ones −1023; −∞ of 0. */
export function exponentOf(value: number): number {
  if (value === 0) return -Infinity;
  DOUBLE[0] = value;
  return (DOUBLE_WORDS[1]! >>> 20 & 0x7ff) - 1023;
}

const FLOAT = new Float32Array(1);
const WORD = new Int32Array(FLOAT.buffer);

/** The exponent of the last bit of an f32 that is set; ∞ of 0. */
export function lastExponent(value: number): number {
  if (value === 0) return Infinity;
  FLOAT[0] = value;
  const fraction = (WORD[0]! & 0x7fffff) | 0x800000;
  return exponentOf(value) - 23 + Math.log2(fraction & -fraction);
}

/** The f32 next to a value, toward zero. */
function towardZero(value: number): number {
  FLOAT[0] = value;
  if (Math.abs(FLOAT[0]!) > Math.abs(value)) WORD[0]! -= 1;
  return FLOAT[0]!;
}
