import type { Rational } from "./matrix.ts";
import type { WinogradTransform } from "./transform.ts";

/**
 * How much larger the rounding errors of F(n,r) are than those of sums of products: the gate's limits are
 * multiplied by it. It is the deviation that independent errors of the products bring to the worst result, from
 * random data, over that of a plain sum of as many products; docs/accuracy.md compares it with simulations.
 * 1 where n or r is 1. Scaling changes nothing.
 */
export function amplification(transform: WinogradTransform): number {
  return Math.max(1, spread(transform));
}

/** The same of the nested algorithm F(n0 x n1, r0 x r1). */
export function amplification2d(rows: WinogradTransform, columns: WinogradTransform): number {
  return Math.max(1, spread(rows) * spread(columns));
}

/**
 * √(max_i Σ_p A[p][i]²·‖G[p]‖²·‖Dᵀ[p]‖² / r): a product of independent data of variance 1 has the variance
 * ‖G[p]‖²·‖Dᵀ[p]‖², its errors are in proportion, and they reach result i through A; a plain sum has r.
 */
function spread({ a, g, d, n, r, alpha }: WinogradTransform): number {
  const square = (values: readonly Rational[]) =>
    values.reduce((sum, value) => sum + value.valueOf() ** 2, 0);
  const variances = Array.from(
    { length: alpha },
    (_, point) => square(g[point]!) * square(d.map((row) => row[point]!)),
  );
  const results = Array.from(
    { length: n },
    (_, i) =>
      variances.reduce((sum, variance, point) => sum + a[point]![i]!.valueOf() ** 2 * variance, 0),
  );
  return Math.sqrt(Math.max(...results) / r);
}
