import type { Fraction } from "../deps/fraction.ts";
import { identity, makeMatrix, type Matrix, ONE, rational, ZERO } from "./matrix.ts";

/** The three matrices of y = Aᵀ[(G w) ∘ (Dᵀ x)]: a is alpha x n, g alpha x r, d alpha x alpha. */
export interface TransformMatrices {
  readonly a: Matrix;
  readonly g: Matrix;
  readonly d: Matrix;
}

/**
 * Matrices of the correlation F(n,r) from α = n + r − 1 distinct points, of which one may be "inf".
 *
 * Products of polynomials s = u·v of n and r coefficients are found by evaluating u (A) and v (G) at the
 * points and interpolating s (D). The same bilinear form, transposed so that u is the result and s the given,
 * is the correlation. The denominators of the interpolation stand in G, which is used once a filter.
 */
export function cookToom(n: number, r: number, points: readonly string[]): TransformMatrices {
  const alpha = n + r - 1;
  const finite = points.filter((point) => point !== "inf").map(rational);
  const values = points.map((point) => point === "inf" ? undefined : rational(point));
  const denominators = values.map((value) =>
    value === undefined ? ONE : finite.filter((other) => !other.equals(value))
      .reduce((product, other) => product.mul(value.sub(other)), ONE)
  );
  const interpolation = values.map((value) =>
    monicPolynomial(finite.filter((other) => value === undefined || !other.equals(value)), alpha)
  );
  // At 0 the filter's transform is a copy: a minus sign goes to the input's, where it is free.
  values.forEach((value, a) => {
    if (!value?.equals(0) || denominators[a]!.compare(0) > 0) return;
    denominators[a] = denominators[a]!.neg();
    interpolation[a] = interpolation[a]!.map((coefficient) => coefficient.neg());
  });
  return {
    a: makeMatrix(alpha, n, (a, i) => power(values[a], i, n)),
    g: makeMatrix(alpha, r, (a, k) => power(values[a], k, r).div(denominators[a]!)),
    d: makeMatrix(alpha, alpha, (b, a) => interpolation[a]![b]!),
  };
}

/** Where the result or the filter has one element there is nothing to save: α products are the least. */
export function plainMatrices(n: number, r: number): TransformMatrices {
  const alpha = n + r - 1;
  const ones = makeMatrix(alpha, 1, () => ONE);
  return {
    a: n === 1 ? ones : identity(alpha),
    g: n === 1 ? identity(alpha) : ones,
    d: identity(alpha),
  };
}

/** Coefficient `index` of a polynomial of `size` coefficients in its value at a point; ∞ takes the leading one. */
function power(point: Fraction | undefined, index: number, size: number): Fraction {
  if (point === undefined) return index === size - 1 ? ONE : ZERO;
  return index === 0 ? ONE : point.pow(index)!;
}

/** Coefficients of Π (t − root), constant first, filled with zeros. */
function monicPolynomial(roots: readonly Fraction[], size: number): Fraction[] {
  let polynomial = [ONE];
  for (const root of roots) {
    const shifted = [ZERO, ...polynomial];
    polynomial = shifted.map((value, i) => value.sub(root.mul(polynomial[i] ?? ZERO)));
  }
  return Array.from({ length: size }, (_, i) => polynomial[i] ?? ZERO);
}
