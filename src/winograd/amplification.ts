import type { Rational } from "./matrix.ts";
import type { WinogradTransform } from "./transform.ts";

/**
 * How much larger the rounding errors of F(n,r) are than those of sums of products: the gate's limits are
 * multiplied by it. It is the deviation that independent errors of the products bring to the worst result, from
 * random data, over that of a plain sum of as many products; docs/accuracy.md compares it with simulations.
 * 1 where n or r is 1. Scaling changes nothing.
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
 * products on, and within a half below (docs/accuracy.md).
 */
export function typicalError(axes: readonly WinogradTransform[], length: number): number {
  const mean = axes.reduce((all, axis) => {
    const squares = spreads(axis).map((value) => value * value);
    return all * Math.sqrt(squares.reduce((sum, value) => sum + value, 0) / axis.n);
  }, 1);
  return mean * Math.sqrt((length + TRANSFORM_PRODUCTS) / 12);
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
