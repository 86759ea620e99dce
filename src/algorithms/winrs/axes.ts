import type { ConvProblem } from "../../problem/conv_problem.ts";
import type { ClippedAxis } from "./clipping.ts";
import { admissible } from "./omega.ts";

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
  const last = problem.filterSize.length - 1;
  const fits = (axis: number) =>
    problem.stride[axis] === 1 && problem.dilation[axis] === 1 &&
    admissible(problem.filterSize[axis]!).length > 1;
  let widthAxis = last;
  while (widthAxis >= 0 && !fits(widthAxis)) widthAxis--;
  if (widthAxis < 0) widthAxis = last;
  const outerAxes = problem.filterSize.map((_, axis) => axis).filter((axis) => axis !== widthAxis);
  const outer = outerAxes.map((axis): ClippedAxis => ({
    input: problem.inputSize[axis]!,
    output: problem.outputSize[axis]!,
    filter: problem.filterSize[axis]!,
    paddingBegin: problem.paddingBegin[axis]!,
    stride: problem.stride[axis]!,
    dilation: problem.dilation[axis]!,
  }));
  const outputRows = outer.reduce((rows, { output }) => rows * output, 1);
  return {
    widthAxis,
    swapped: widthAxis !== last,
    filterWidth: problem.filterSize[widthAxis]!,
    outputWidth: problem.outputSize[widthAxis]!,
    outerAxes,
    outer,
    filterRows: outer.reduce((rows, { filter }) => rows * filter, 1),
    outputRows,
    paddingRows: outer[0] ? outer[0].paddingBegin * outputRows / outer[0].output : 0,
  };
}
