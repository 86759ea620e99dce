import type { Fraction } from "../deps/fraction.ts";
import { InputRangeError } from "../errors.ts";
import { identity, makeMatrix, type Matrix, ONE, rational, ZERO } from "./matrix.ts";
import { interpolationPoints, MAX_ALPHA } from "./points.ts";

/** The three matrices of y = Aᵀ[(G w) ∘ (Dᵀ x)]: a is alpha x n, g alpha x r, d alpha x alpha. */
interface TransformMatrices {
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
function cookToom(n: number, r: number, points: readonly string[]): TransformMatrices {
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
function plainMatrices(n: number, r: number): TransformMatrices {
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
function scaleRows(matrices: TransformMatrices, scaling: Scaling): TransformMatrices {
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

/** Winograd's algorithm of the correlation F(n,r): y = Aᵀ[(G w) ∘ (Dᵀ x)], with n + r − 1 products in place of n·r. */
export interface WinogradTransform {
  /** Results. */
  readonly n: number;
  /** Length of the filter. */
  readonly r: number;
  /** How its rows are scaled. */
  readonly scaling: Scaling;
  /** n + r − 1: products, and elements of the input that a tile reads. */
  readonly alpha: number;
  /** "0", "1", "-1", "1/2", ..., "inf" in the order of the rows; none where n or r is 1. */
  readonly points: readonly string[];
  /** alpha x n: y = Aᵀ m. */
  readonly a: Matrix;
  /** alpha x r: the filter's transform is G w. */
  readonly g: Matrix;
  /** alpha x alpha: the input's transform is Dᵀ x (B in most papers). */
  readonly d: Matrix;
}

interface TransformOptions {
  /** Default `none`. */
  readonly scaling?: Scaling;
}

const cache = new Map<string, WinogradTransform>();

/**
 * The transforms of F(n,r): y[i] = Σ_k x[i + k]·w[k] for i < n and k < r, a correlation as in neural networks.
 * The same object for the same arguments.
 *
 * @throws {RangeError} unless n and r are at least 1 and n + r − 1 at most 16
 */
export function winogradTransform(
  n: number,
  r: number,
  { scaling = "none" }: TransformOptions = {},
): WinogradTransform {
  const key = `${n},${r},${scaling}`;
  const known = cache.get(key);
  if (known !== undefined) return known;
  const made = makeTransform(n, r, interpolationPoints, scaling);
  cache.set(key, made);
  return made;
}

/**
 * The transform of F(n,r) whose data is kept in a type. In f16 the rows of G and Dᵀ are scaled by powers of two to an L1 norm
 * of at most 1, so that transformed data is never larger than the data, and scaling rounds nothing (WinRS's Eq. (7)).
 */
export function tileTransform(n: number, r: number, transformed: "f16" | "f32" = "f32") {
  return winogradTransform(n, r, { scaling: transformed === "f16" ? "power-of-two" : "none" });
}

const cut = new WeakMap<TransformMatrices, Map<string, TransformMatrices>>();

/**
 * The matrices of some of a transform's products alone: what results take of these, so that those of sets of products add up to the
 * results. The same object for the same arguments.
 */
export function slicesTransform(
  transform: TransformMatrices,
  slices: readonly number[],
): TransformMatrices {
  const { a, g, d } = transform;
  if (slices.length === a.length && slices.every((slice, i) => slice === i)) return transform;
  const known = cut.get(transform) ?? new Map<string, TransformMatrices>();
  cut.set(transform, known);
  const key = slices.join();
  let made = known.get(key);
  if (made === undefined) {
    const rowsOf = (matrix: Matrix) => slices.map((slice) => matrix[slice]!);
    made = { a: rowsOf(a), g: rowsOf(g), d: d.map((row) => slices.map((slice) => row[slice]!)) };
    known.set(key, made);
  }
  return made;
}

/** As `winogradTransform`, with points of one's own: for searching them. */
function makeTransform(
  n: number,
  r: number,
  choose: (n: number, r: number) => readonly string[],
  scaling: Scaling,
): WinogradTransform {
  if (!Number.isInteger(n) || !Number.isInteger(r) || n < 1 || r < 1) {
    throw new InputRangeError(`Cannot make F(${n},${r}): both must be whole numbers >= 1`);
  }
  const alpha = n + r - 1;
  if (alpha > MAX_ALPHA) {
    throw new InputRangeError(
      `Cannot make F(${n},${r}): n + r - 1 is ${alpha}, above ${MAX_ALPHA}`,
    );
  }
  const points = choose(n, r);
  const matrices = points.length === 0 ? plainMatrices(n, r) : cookToom(n, r, points);
  return { n, r, scaling, alpha, points, ...scaleRows(matrices, scaling) };
}
