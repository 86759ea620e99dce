import type { WinogradTransform } from "./transform.ts";

/**
 * How much larger the rounding errors of F(n,r) are than those of sums of products, relative to u·√L·Σ|a||b|.
 */
export function amplification(transform: WinogradTransform): number {
  return Math.max(1, 2 * spread(transform));
}

/** The same of the nested algorithm F(n0 x n1, r0 x r1). */
export function amplification2d(rows: WinogradTransform, columns: WinogradTransform): number {
  return Math.max(1, 2 * spread(rows) * spread(columns));
}

/** Root of the sum of squares of A times the lengths of the rows of G and Dᵀ, of the worst result; 1 for plain sums. */
export function spread({ a, g, d, n, r, alpha }: WinogradTransform): number {
  const square = (values: number[]) => values.reduce((sum, value) => sum + value * value, 0);
  const products = Array.from(
    { length: alpha },
    (_, row) =>
      square(g[row]!.map((value) => value.valueOf())) *
      square(d.map((values) => values[row]!.valueOf())),
  );
  let worst = 0;
  for (let i = 0; i < n; i++) {
    const variance = products.reduce(
      (sum, product, row) => sum + a[row]![i]!.valueOf() ** 2 * product,
      0,
    );
    worst = Math.max(worst, variance);
  }
  return Math.sqrt(worst / r);
}
