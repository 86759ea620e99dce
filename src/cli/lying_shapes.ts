import { type ConvProblem, type ConvTensor, operandTensors } from "../problem/conv_problem.ts";
import { problemFromShapes, type ShapesInit } from "../problem/from_shapes.ts";
import {
  canonicalShape,
  type FileFilterLayout,
  type Layout,
  layoutAxes,
} from "../tensor/layout.ts";

/** Sizes of files' tensors in the order of memory, what else is said of the problem, and how the tensors lie. */
export interface LyingShapes extends Omit<ShapesInit, ConvTensor> {
  readonly shapes: { readonly [which in ConvTensor]?: readonly number[] };
  readonly layout: Layout;
  readonly filterLayout: FileFilterLayout;
}

/** What shapes of files say. */
export interface LyingProblem {
  readonly problem: ConvProblem;
  /** The operands' sizes, those of a single image with a batch of 1. */
  readonly batched: LyingShapes["shapes"];
}

/**
 * The problem of files whose tensors lie so. Activations that have one axis less than a batch are a single image, as in PyTorch.
 *
 * @throws as {@linkcode problemFromShapes}.
 */
export function problemOfLying(asked: LyingShapes): LyingProblem {
  return {
    // What of it is not of a problem's shapes goes unread.
    problem: problemFromShapes({ ...asked, ...canonicalShapes(asked) }),
    batched: batchedShapes(asked),
  };
}

/** The operands' sizes in the order of N, C and spatial axes, or K, C and taps. */
export function canonicalShapes(asked: LyingShapes): LyingShapes["shapes"] {
  const { layout, filterLayout } = asked;
  return mapShapes(
    { ...asked, shapes: batchedShapes(asked) },
    (shape, which) => canonicalShape(shape, which === "filter" ? filterLayout : layout),
  );
}

function batchedShapes(asked: LyingShapes): LyingShapes["shapes"] {
  const rank = spatialRank(asked);
  return mapShapes(asked, (shape, which) => {
    const single = which !== "filter" && shape.length === rank + 1;
    return single ? shape.toSpliced(batchAxis(asked.layout, rank), 0, 1) : shape;
  });
}

function mapShapes(
  { op, shapes }: LyingShapes,
  change: (shape: readonly number[], which: ConvTensor) => readonly number[],
): LyingShapes["shapes"] {
  return Object.fromEntries(
    operandTensors(op).map((which) => [which, change(shapes[which]!, which)]),
  );
}

/** Spatial axes: the filter's, or where that is the result those that options tell of, or that the images have. */
export function spatialRank(
  { shapes: { filter, input = [], output = [] }, filterSize = [], stride = [], dilation = [] }:
    LyingShapes,
): number {
  if (filter !== undefined) return filter.length - 2;
  const told = Math.max(
    filterSize.length,
    ...[stride, dilation].map((axes) => [axes].flat().length),
  );
  // One value stands for all axes.
  return told > 1 ? told : Math.max(input.length, output.length) - 2;
}

/** Place of the batch among the axes of activations. */
export function batchAxis(layout: Layout, rank: number): number {
  return layoutAxes(layout, rank).indexOf(0);
}
