import type { Rational } from "./matrix.ts";
import type { WinogradTransform } from "./transform.ts";

/**
 * How much larger the rounding errors of F(n,r) are than those of sums of products: planners go by it, the gate simulates
 * the tile instead. It is the deviation that independent errors of the products bring to the worst result, from random
 * data, over that of a plain sum of as many products. 1 where n or r is 1. Scaling changes nothing.
 */
export function amplification(transform: WinogradTransform): number {
  return Math.max(1, Math.max(...spreads(transform)));
}

/** The same of the nested algorithm F(n0 x n1, r0 x r1). */
export function amplification2d(rows: WinogradTransform, columns: WinogradTransform): number {
  return Math.max(1, Math.max(...spreads(rows)) * Math.max(...spreads(columns)));
}

/** Products of a sum, rounded in turn, err like √(L / 12) roundings of it; the transforms like this many products. */
const TRANSFORM_PRODUCTS = 17;

/**
 * The relative L2 error that a nested algorithm typically has on normal data, in units of roundoff: its amplification,
 * results taken together, times √((L + 17) / 12) for L products in an accumulator. Within a fifth of simulations from 64
 * products on, and within a half below.
 */
export function typicalError(axes: readonly WinogradTransform[], length: number): number {
  return meanAmplification(axes) * Math.sqrt((length + TRANSFORM_PRODUCTS) / 12);
}

/** What a number rounded to f16 errs by, relative to it: the root mean square where logarithms are evenly spread. */
export const ROUNDED_F16 = 2 ** -10 * Math.sqrt(1 / (32 * Math.LN2));

/**
 * The relative L2 error that rounding both factors to f16 in the transformed domain typically brings to normal data, however
 * many products are summed: within a tenth of simulations. A plain product's factors are f16 as they are.
 */
export function halfError(axes: readonly WinogradTransform[]): number {
  if (axes.every(({ n, r }) => n === 1 && r === 1)) return 0;
  return meanAmplification(axes) * Math.SQRT2 * ROUNDED_F16;
}

/** The amplification of a nested algorithm, its results taken together. */
function meanAmplification(axes: readonly WinogradTransform[]): number {
  return axes.reduce((all, axis) => {
    const squares = spreads(axis).map((value) => value * value);
    return all * Math.sqrt(squares.reduce((sum, value) => sum + value, 0) / axis.n);
  }, 1);
}

/**
 * Of each result i: √(Σ_p A[p][i]²·‖G[p]‖²·‖Dᵀ[p]‖² / r): a product of independent data of variance 1 has the variance
 * ‖G[p]‖²·‖Dᵀ[p]‖², its errors are in proportion, and they reach result i through A; a plain sum has r.
 */
function spreads({ a, g, d, n, r, alpha }: WinogradTransform): number[] {
  const square = (values: readonly Rational[]) =>
    values.reduce((sum, value) => sum + value.valueOf() ** 2, 0);
  const variances = Array.from(
    { length: alpha },
    (_, point) => square(g[point]!) * square(d.map((row) => row[point]!)),
  );
  return Array.from({ length: n }, (_, i) => {
    const sum = variances.reduce(
      (all, variance, point) => all + a[point]![i]!.valueOf() ** 2 * variance,
      0,
    );
    return Math.sqrt(sum / r);
  });
}
