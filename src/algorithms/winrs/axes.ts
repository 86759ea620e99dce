import type { ConvProblem } from "../../problem/conv_problem.ts";
import type { ClippedAxis } from "./clipping.ts";
import { admissible, type Omega } from "./omega.ts";

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
