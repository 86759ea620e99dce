import { InputRangeError } from "../../errors.ts";
import type { ConvProblem } from "../../problem/conv_problem.ts";

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

/** Of a kernel's rate: so slow that nothing chooses it. */
export const NEVER = 1e-9;

/** Rates of kernels: only their ratios choose a pair. */
export type Throughput = (omega: Omega) => number;

/** An axis of a problem that is walked row by row: sizes, and where the filter meets the input. */
export interface ClippedAxis {
  readonly input: number;
  readonly output: number;
  readonly filter: number;
  readonly paddingBegin: number;
  readonly stride: number;
  readonly dilation: number;
}

/**
 * Rows of ∇Y, from start to end (exclusive), that meet a row of X in filter row `fh`: those oh with
 * 0 <= oh·stride + fh·dilation − padding < input. Empty (start = end) where none does.
 */
export function clippedRows(axis: ClippedAxis, fh: number): readonly [start: number, end: number] {
  const { input, output, paddingBegin, stride, dilation } = axis;
  const offset = fh * dilation - paddingBegin;
  const start = Math.min(output, Math.max(0, Math.ceil(-offset / stride)));
  const end = Math.min(output, Math.max(start, Math.ceil((input - offset) / stride)));
  return [start, end];
}

/**
 * Rows of ∇Y that a filter row needs, where the rows of several axes (outermost first) are counted through: the
 * outermost is clipped, the zero rows of the inner ones are left to the loader's bounds check.
 *
 * @param filterRow From 0 to the product of the axes' filter sizes.
 */
export function clippedFilterRow(
  outer: readonly ClippedAxis[],
  filterRow: number,
): readonly [start: number, end: number] {
  const [outermost, ...inner] = outer;
  if (!outermost) return [0, 1];
  const innerFilters = inner.reduce((rows, { filter }) => rows * filter, 1);
  const innerRows = inner.reduce((rows, { output }) => rows * output, 1);
  const [start, end] = clippedRows(outermost, Math.floor(filterRow / innerFilters));
  return [start * innerRows, end * innerRows];
}

/**
 * A problem of one to three axes as WinRS sees it: one axis is the width that F(n, r) runs along; every other is
 * an outer one, and each combination of its filter rows is a one-dimensional problem (dimension reduction).
 */
export interface ReducedAxes {
  /** Index of the width's axis in the problem's spatial axes. */
  readonly widthAxis: number;
  /** The width is not the problem's last axis, so strides of the two change places. */
  readonly swapped: boolean;
  readonly filterWidth: number;
  readonly outputWidth: number;
  /** The other axes' indices, outermost first; empty for 1-D problems. */
  readonly outerAxes: readonly number[];
  /** The other axes' sizes in the same order; the outermost is the one that is clipped. */
  readonly outer: readonly ClippedAxis[];
  /** Filter rows: the product of the outer axes' filter sizes. */
  readonly filterRows: number;
  /** Rows of the filter along the last outer axis, which nested kernels go along; 0 where that has a stride or dilation, or there is none. */
  readonly tiledRows: number;
  /** Rows of ∇Y, which segments cut: the product of the outer axes' output sizes, counted through. */
  readonly outputRows: number;
  /** p_H of {@linkcode segmentShape}: rows of ∇Y that the outermost axis' padding spans. */
  readonly paddingRows: number;
}

/**
 * Chooses the width: the last axis, or, where only Ω2(1,1) fits its filter size (1, 11, 13 …) or it has a stride or
 * dilation, the last axis that has neither and fits more.
 */
export function reduceAxes(problem: ConvProblem): ReducedAxes {
  const lastAxis = problem.filterSize.length - 1;
  const fits = (axis: number) =>
    problem.stride[axis] === 1 && problem.dilation[axis] === 1 &&
    admissible(problem.filterSize[axis]!).length > 1;
  let widthAxis = lastAxis;
  while (widthAxis >= 0 && !fits(widthAxis)) widthAxis--;
  if (widthAxis < 0) widthAxis = lastAxis;
  const outerAxes = problem.filterSize.map((_, axis) => axis).filter((axis) => axis !== widthAxis);
  const outer = outerAxes.map((axis): ClippedAxis => ({
    input: problem.inputSize[axis]!,
    output: problem.outputSize[axis]!,
    filter: problem.filterSize[axis]!,
    paddingBegin: problem.paddingBegin[axis]!,
    stride: problem.stride[axis]!,
    dilation: problem.dilation[axis]!,
  }));
  const last = outer.at(-1);
  const outputRows = outer.reduce((rows, { output }) => rows * output, 1);
  return {
    widthAxis,
    swapped: widthAxis !== lastAxis,
    filterWidth: problem.filterSize[widthAxis]!,
    outputWidth: problem.outputSize[widthAxis]!,
    outerAxes,
    outer,
    filterRows: outer.reduce((rows, { filter }) => rows * filter, 1),
    tiledRows: last !== undefined && last.stride === 1 && last.dilation === 1 ? last.filter : 0,
    outputRows,
    paddingRows: outer[0] ? outer[0].paddingBegin * outputRows / outer[0].output : 0,
  };
}

/** Rows of ∇Y that a kernel goes through one by one, or tiles of them: those of a nested kernel. */
export function kernelRows({ outer, outputRows }: ReducedAxes, { rows }: Omega): number {
  const last = outer.at(-1);
  return rows === undefined || last === undefined
    ? outputRows
    : outputRows / last.output * Math.ceil(last.output / rows.r);
}

/** How much of what a kernel goes through is ∇Y: less than 1 where a nested one's last tiles are filled with zeros. */
export function coveredRows(axes: ReducedAxes, omega: Omega): number {
  return axes.outputRows / (kernelRows(axes, omega) * (omega.rows?.r ?? 1));
}

/** Whether neighbouring products of a row are not of neighbouring columns of X, as Winograd needs; Ω2(1,1) does not. */
export function isStrided({ stride, dilation }: ConvProblem, widthAxis: number): boolean {
  return stride[widthAxis] !== 1 || dilation[widthAxis] !== 1;
}

/** @throws {RangeError} if a size is not a positive whole number. */
export function expectSizes(doing: string, sizes: Readonly<Record<string, number>>): void {
  for (const [what, size] of Object.entries(sizes)) {
    if (!Number.isSafeInteger(size) || size < 1) {
      throw new RangeError(`Cannot ${doing}: ${what} is ${size}, expected >= 1`);
    }
  }
}
