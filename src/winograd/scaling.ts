import type { Fraction } from "../deps/fraction.ts";
import type { TransformMatrices } from "./cook_toom.ts";
import { makeMatrix, ONE, rational, ZERO } from "./matrix.ts";

/**
 * How rows are scaled. Three factors of product 1 belong to each point, one for the row of A, of G and of Dᵀ.
 * - `none`: rows of A and Dᵀ have as many entries ±1 as can be: the fewest operations.
 * - `unit-l1`: the absolute values of each row of G and of Dᵀ sum to 1, so that transformed data is never
 *   larger than the data (WinRS's Eq. (7)); A undoes it.
 * - `power-of-two`: the same to the nearest power of two below, so that nothing is rounded.
 */
export const SCALINGS = ["none", "unit-l1", "power-of-two"] as const;
export type Scaling = (typeof SCALINGS)[number];

/** The matrices of the same algorithm with rows scaled: exact, and no result changes. */
export function scaleRows(matrices: TransformMatrices, scaling: Scaling): TransformMatrices {
  if (scaling === "none") return matrices;
  const { a, g, d } = matrices;
  const factor = (values: readonly Fraction[]) => {
    const norm = values.reduce((sum, value) => sum.add(value.abs()), ZERO);
    return scaling === "unit-l1" ? ONE.div(norm) : powerOfTwoBelow(ONE.div(norm));
  };
  const ofG = g.map(factor);
  const ofD = d.map((_, column) => factor(d.map((row) => row[column]!)));
  return {
    a: makeMatrix(a.length, a[0]!.length, (row, i) => a[row]![i]!.div(ofG[row]!.mul(ofD[row]!))),
    g: makeMatrix(g.length, g[0]!.length, (row, k) => g[row]![k]!.mul(ofG[row]!)),
    d: makeMatrix(d.length, d.length, (b, row) => d[b]![row]!.mul(ofD[row]!)),
  };
}

/** The largest power of two that is not above `value`. */
function powerOfTwoBelow(value: Fraction): Fraction {
  let power = rational(1);
  while (power.compare(value) > 0) power = power.div(2);
  while (power.mul(2).compare(value) <= 0) power = power.mul(2);
  return power;
}
