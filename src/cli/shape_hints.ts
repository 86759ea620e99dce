import { isInputError } from "../errors.ts";
import { type ConvProblem, type ConvTensor, operandTensors } from "../problem/conv_problem.ts";
import { problemFromShapes, type ShapesInit } from "../problem/from_shapes.ts";
import {
  canonicalShape,
  type FileFilterLayout,
  filterLayoutFor,
  type Layout,
  layoutAxes,
  shapeInLayout,
} from "../tensor/layout.ts";

/** Layouts that are taken for each other. */
const MIXED_UP: readonly Layout[] = ["nchw", "nhwc"];
const MIXED_UP_FILTERS: readonly FileFilterLayout[] = ["kcrs", "krsc", "rsck"];
/** Filters are seldom larger, along an axis, than this or than what is asked for: else channels are taken for taps. */
const USUAL_TAPS = 11;
/** More ways to lie than these are not told. */
const MOST_READINGS = 3;

/**
 * What may be wrong where files' shapes are those of no problem, to follow the message that says so; empty where nothing is known.
 * Each is told with what the axes then mean, since shapes that fit may still be taken for others. Groups come last: channels of
 * tensors that are read in another layout than they lie in often divide each other.
 *
 * @param flags The operands' options.
 */
export function shapeHint(asked: LyingShapes, flags: readonly string[]): string {
  return layoutHint(asked) ?? depthwiseHint(asked) ?? channelHint(asked) ??
    swappedHint(asked, flags) ?? groupsHint(asked) ?? "";
}

function fits(lying: LyingShapes): boolean {
  try {
    problemOfLying(lying);
    return true;
  } catch (error) {
    if (isInputError(error)) return false;
    throw error;
  }
}

function layoutHint(asked: LyingShapes): string | undefined {
  const fitting = readingsOf(asked).filter(fits);
  const square = fitting.filter(isSquare);
  // Taps of two lengths often are channels.
  const readings = (square.length > 0 || isSquare(asked) ? square : fitting).slice(
    0,
    MOST_READINGS,
  );
  if (readings.length === 0) return undefined;
  const told = readings.map((reading) => `${meaning(reading)} (${layoutFlags(reading)})`);
  const summed = readings.find(({ filterLayout }) => filterLayout === "rsck");
  return `; they fit if they lie as ${told.join(", or as ")}` +
    (summed && depthwiseHint(summed) || "");
}

/** All ways in which the operands may lie, the likeliest first. */
function readingsOf(asked: LyingShapes): LyingShapes[] {
  const { shapes: { filter } } = asked;
  const layouts = new Set([asked.layout, ...MIXED_UP]);
  if (filter === undefined) return [...layouts].map((layout) => ({ ...asked, layout }));
  const most = Math.max(USUAL_TAPS, ...canonicalShape(filter, asked.filterLayout).slice(2));
  return [...layouts].flatMap((layout) =>
    [...new Set([filterLayoutFor(layout), asked.filterLayout, ...MIXED_UP_FILTERS])]
      .filter((lies) => Math.max(...canonicalShape(filter, lies).slice(2)) <= most)
      .map((filterLayout) => ({ ...asked, layout, filterLayout }))
  );
}

function isSquare({ shapes: { filter }, filterLayout }: LyingShapes): boolean {
  if (filter === undefined) return true;
  return new Set(canonicalShape(filter, filterLayout).slice(2)).size === 1;
}

function layoutFlags({ shapes: { filter }, layout, filterLayout }: LyingShapes): string {
  return `--layout ${layout}${filter === undefined ? "" : ` --filter-layout ${filterLayout}`}`;
}

/** Letters of canonical axes: the outer two, and the innermost three spatial ones. */
const LETTERS: Readonly<Record<ConvTensor, string>> = {
  input: "NCDHW",
  filter: "KCTRS",
  output: "NKOPQ",
};

/** What the operands' axes mean, as in `N,H,W,C and K,R,S,C`. */
function meaning(asked: LyingShapes): string {
  const rank = spatialRank(asked);
  return operandTensors(asked.op).map((which) => {
    const single = asked.shapes[which]!.length === rank + 1;
    return layoutAxes(which === "filter" ? asked.filterLayout : asked.layout, rank)
      .filter((axis) => axis > 0 || !single)
      .map((axis) => LETTERS[which][axis < 2 ? axis : 3 - rank + axis])
      .join();
  }).join(" and ");
}

/** How a filter of TensorFlow's `depthwise_conv2d`, of [R, S, C, M], is said: K is C·M in its order. */
function depthwiseHint(asked: LyingShapes): string | undefined {
  const { op, shapes, filterLayout, groups } = asked;
  if (op === "bwd-filter" || filterLayout !== "rsck") return undefined;
  const [channels, multiplier] = shapes.filter!.slice(-2) as [number, number];
  const filter = [...shapes.filter!.slice(0, -2), 1, channels * multiplier];
  const given = groups === channels;
  // A sum over channels has seldom so few results.
  if (channels < 2 || !given && multiplier >= channels) return undefined;
  if (!fits({ ...asked, groups: channels, shapes: { ...shapes, filter } })) return undefined;
  const taps = [...LETTERS.filter.slice(-spatialRank(asked))].join();
  return `; if the filter is ${taps},C,M of a depthwise convolution, reshape it to [${
    filter.join(", ")
  }]` + (given ? "" : ` and take --groups ${channels}`);
}

function channelHint(asked: LyingShapes): string | undefined {
  const { op, shapes, layout } = asked;
  const rank = spatialRank(asked);
  const picture = shapes.input ?? [];
  if (op !== "fwd" || picture.length > rank + 1 || picture.length < rank) return undefined;
  const [first, ...sizes] = picture.length === rank ? [1, ...picture] : picture;
  const input = shapeInLayout([first!, 1, ...sizes], layout);
  if (!fits({ ...asked, shapes: { ...shapes, input } })) return undefined;
  return `; if it is ${first} picture${first === 1 ? "" : "s"} of one channel, reshape it to [${
    input.join(", ")
  }]`;
}

function swappedHint(asked: LyingShapes, flags: readonly string[]): string | undefined {
  const [one, other] = operandTensors(asked.op);
  const shapes = { ...asked.shapes, [one]: asked.shapes[other], [other]: asked.shapes[one] };
  return fits({ ...asked, shapes })
    ? `; are ${flags.join(" and ")} swapped? So these files fit`
    : undefined;
}

function groupsHint(asked: LyingShapes): string | undefined {
  if (asked.op !== "fwd") return undefined;
  const { input, filter } = canonicalShapes(asked);
  const groups = input![1]! / filter![1]!;
  return groups > 1 && Number.isInteger(groups) && fits({ ...asked, groups })
    ? `; they fit with --groups ${groups}, if it is a grouped convolution`
    : undefined;
}

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
  const { shapes: _, layout: __, filterLayout: ___, ...known } = asked;
  return {
    problem: problemFromShapes({ ...known, ...canonicalShapes(asked) }),
    batched: batchedShapes(asked),
  };
}

/** The operands' sizes in the order of N, C and spatial axes, or K, C and taps. */
function canonicalShapes(asked: LyingShapes): LyingShapes["shapes"] {
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
function spatialRank(
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
