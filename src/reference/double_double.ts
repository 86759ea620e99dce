/** Sums and products of doubles with their rounding errors (Knuth's TwoSum, Dekker's TwoProduct). */

/** What a + b, rounded to `sum`, leaves. 0 where it cannot be told: of infinities and NaN. */
export function sumError(a: number, b: number, sum: number): number {
  if (!Number.isFinite(sum)) return 0;
  const back = sum - a;
  return (a - (sum - back)) + (b - back);
}

/** 2²⁷ + 1: splits a double into halves whose products are exact (Veltkamp). */
const SPLITTER = 2 ** 27 + 1;
/** Above it a split would overflow. */
const LARGE = 2 ** 970;

/** What a · b, rounded to `product`, leaves. 0 where it cannot be told: of infinities and NaN. */
export function productError(a: number, b: number, product: number): number {
  if (!Number.isFinite(product) || !Number.isFinite(a) || !Number.isFinite(b)) return 0;
  if (Math.abs(a) > LARGE) return 2 ** 54 * productError(a / 2 ** 54, b, product / 2 ** 54);
  if (Math.abs(b) > LARGE) return 2 ** 54 * productError(a, b / 2 ** 54, product / 2 ** 54);
  const ca = SPLITTER * a, cb = SPLITTER * b;
  const ah = ca - (ca - a), bh = cb - (cb - b);
  const al = a - ah, bl = b - bh;
  return al * bl - (((product - ah * bh) - al * bh) - ah * bl);
}

/** A sum in about twice the precision of a double: `value` + `rest`, which is 0 beside infinities and NaN. */
export interface DoubleDouble {
  readonly value: number;
  readonly rest: number;
}

/** x + y */
export function addTo({ value, rest }: DoubleDouble, y: number): DoubleDouble {
  const sum = value + y;
  return kept(sum, rest + sumError(value, y, sum));
}

/** x · y */
export function times({ value, rest }: DoubleDouble, y: number): DoubleDouble {
  const product = value * y;
  return kept(product, rest * y + productError(value, y, product));
}

/** A sum whose rest can be told. */
function kept(value: number, rest: number): DoubleDouble {
  return { value, rest: Number.isFinite(value) ? rest : 0 };
}
