import { InputRangeError } from "../errors.ts";
import { cookToom, plainMatrices } from "./cook_toom.ts";
import type { Matrix } from "./matrix.ts";
import { interpolationPoints, MAX_ALPHA } from "./points.ts";
import { scaleRows, type Scaling } from "./scaling.ts";

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

/** The matrices of a transform. */
export type TransformMatrices = Pick<WinogradTransform, "a" | "g" | "d">;

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
