import { InputRangeError } from "../../errors.ts";

/**
 * A kernel Ω_α(n, r) of WinRS: n neighbouring columns of ∇W from r neighbouring columns of ∇Y by the
 * one-dimensional Winograd convolution F(n, r). A nested kernel, which the paper has none of, does the same along the rows.
 */
export interface Omega {
  /** Multiplications of a tile's row, n + r − 1; Ω2(1,1) is called 2, and is the direct product. */
  readonly alpha: number;
  /** Columns of ∇W that a tile yields; divides the filter's width. */
  readonly n: number;
  /** Columns of ∇Y that a tile takes. */
  readonly r: number;
  /** Rows of ∇W that a tile of a nested kernel yields, which divide the filter's, and rows of ∇Y that it takes. */
  readonly rows?: { readonly n: number; readonly r: number };
}

/** The paper's 13 kernels, by α and then n, and four nested ones. */
export const OMEGAS: readonly Omega[] = [
  { alpha: 2, n: 1, r: 1 },
  { alpha: 4, n: 2, r: 3 },
  { alpha: 4, n: 3, r: 2 },
  { alpha: 8, n: 3, r: 6 },
  { alpha: 8, n: 4, r: 5 },
  { alpha: 8, n: 5, r: 4 },
  { alpha: 8, n: 6, r: 3 },
  { alpha: 8, n: 7, r: 2 },
  { alpha: 16, n: 5, r: 12 },
  { alpha: 16, n: 6, r: 11 },
  { alpha: 16, n: 7, r: 10 },
  { alpha: 16, n: 8, r: 9 },
  { alpha: 16, n: 9, r: 8 },
  { alpha: 4, n: 2, r: 3, rows: { n: 2, r: 3 } },
  { alpha: 4, n: 3, r: 2, rows: { n: 3, r: 2 } },
  { alpha: 8, n: 3, r: 6, rows: { n: 3, r: 2 } },
  { alpha: 8, n: 4, r: 5, rows: { n: 2, r: 3 } },
];

/** Ω2(1,1), which fits every filter and every width. */
export const DIRECT: Omega = OMEGAS[0]!;

/** `a8n3r6` for Ω8(3,6), `a4n3r2xa4n3r2` for Ω4(3,2) along rows and columns. */
export function omegaName({ alpha, n, r, rows }: Omega): string {
  const nested = rows === undefined ? "" : `a${rows.n + rows.r - 1}n${rows.n}r${rows.r}x`;
  return `${nested}a${alpha}n${n}r${r}`;
}

/**
 * The kernel that {@linkcode omegaName} calls so.
 *
 * @throws {RangeError} if there is none.
 */
export function parseOmega(text: string): Omega {
  const found = OMEGAS.find((omega) => omegaName(omega) === text);
  if (found) return found;
  throw new InputRangeError(
    `Cannot choose a WinRS kernel: "${text}" is none of ${OMEGAS.map(omegaName).join(", ")}`,
  );
}

/** Rows and columns of a tile's multiplications; one column of Ω2(1,1), the direct product, and one row but of nested kernels. */
export function slicesAlong(
  { n, r, rows = { n: 1, r: 1 } }: Omega,
): [rows: number, columns: number] {
  return [rows.n + rows.r - 1, n + r - 1];
}

/** Multiplications of a tile; of Ω2(1,1), the direct product, one. */
export function slicesOf(omega: Omega): number {
  const [rows, columns] = slicesAlong(omega);
  return rows * columns;
}

/** Most slices of a kernel where threads multiply: 16 threads each. */
const MOST_SLICES = 16;

/** Kernels of threads that share a tile's slices. */
export function threadSets(omega: Omega): number {
  return Math.ceil(slicesOf(omega) / MOST_SLICES);
}

/** Slices that a kernel of threads multiplies. */
export function slicesAtOnce(omega: Omega): number {
  return slicesOf(omega) / threadSets(omega);
}

/** Elements of ∇W that a tile yields, and of ∇Y that it takes. */
export function tileElements(
  { n, r, rows = { n: 1, r: 1 } }: Omega,
): { readonly filter: number; readonly gradient: number } {
  return { filter: n * rows.n, gradient: r * rows.r };
}

/** How many multiplications of the direct product one multiplication of the kernel replaces: n·r / α, 1 for Ω2(1,1). */
export function acceleration(omega: Omega): number {
  const { filter, gradient } = tileElements(omega);
  return filter * gradient / slicesOf(omega);
}

/** Whether a kernel's n divides the filter's width, and of a nested one the rows that it may go along, of which there are some. */
export function isAdmissible({ n, rows }: Omega, filterWidth: number, tiledRows = 0): boolean {
  return filterWidth % n === 0 &&
    (rows === undefined || tiledRows > 0 && tiledRows % rows.n === 0);
}

/**
 * The kernels for a filter; at least Ω2(1,1).
 *
 * @param tiledRows Rows of the filter that nested kernels may go along; none of these where 0.
 */
export function admissible(filterWidth: number, tiledRows = 0): Omega[] {
  return OMEGAS.filter((omega) => isAdmissible(omega, filterWidth, tiledRows));
}
