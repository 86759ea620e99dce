import fc from "fast-check";
import type { Axis, Direction } from "../src/kernels/axes.ts";
import type { SizeMode } from "../src/kernels/module.ts";
import { dilatedSize } from "../src/problem/conv_problem.ts";

/** What is drawn of a spatial axis: `more` places than the dilated filter has, padding counted. */
interface RandomAxis {
  readonly filter: number;
  readonly more: number;
  readonly stride: number;
  readonly dilation: number;
  readonly begin: number;
  readonly end: number;
}

/**
 * Where kernels have their sizes: one time in five in their text, as users' kernels have them. Each such case compiles
 * pipelines of its own.
 */
export const sizeModes: fc.Arbitrary<SizeMode> = fc.constantFrom(
  ...Array.from({ length: 4 }, () => "uniform" as const),
  "constant",
);

/** One to three axes into which their filter fits, with every option of the definition. */
export function randomAxes(
  most: { more: number; stride: number; dilation?: number },
): fc.Arbitrary<RandomAxis[]> {
  const axis = fc.record({
    filter: fc.integer({ min: 1, max: 4 }),
    more: fc.integer({ min: 0, max: most.more }),
    stride: fc.integer({ min: 1, max: most.stride }),
    dilation: fc.integer({ min: 1, max: most.dilation ?? 2 }),
    begin: fc.integer({ min: 0, max: 3 }),
    // Long ones too: beyond what taps reach of the other end. Below none where the dilation allows it.
    end: fc.constantFrom(-1, 0, 0, 1, 1, 2, 2, 3, 7),
  }).map((drawn) => ({ ...drawn, end: Math.max(drawn.end, 1 - drawn.dilation) }));
  return fc.array(axis, { minLength: 1, maxLength: 3 });
}

/** An axis as loaders have it, of an input and its padding; undefined where no result fits. Backward it has stride 1. */
export function loaderAxis(
  { size, taps, dilation, stride = 1, padding, end }: {
    readonly size: number;
    readonly taps: number;
    readonly dilation: number;
    readonly stride?: number;
    readonly padding: number;
    readonly end: number;
  },
  direction: Direction,
): Axis | undefined {
  const step = direction === "forward" ? stride : 1;
  const results = Math.floor((size + padding + end - dilatedSize(taps, dilation)) / step) + 1;
  // Of backward-data the places are the input's, the source is the output's gradient.
  const [places, source] = direction === "forward" ? [results, size] : [size, results];
  return results < 1
    ? undefined
    : { places, taps, size: source, stride: step, padding, dilation, sourceStride: 1 };
}

/** What {@linkcode loaderAxis} is made of, of at least so many taps. */
export function loaderAxes(most: { size: number; padding: number; end: number }, leastTaps = 1) {
  return fc.record({
    size: fc.integer({ min: 1, max: most.size }),
    taps: fc.integer({ min: leastTaps, max: 4 }),
    dilation: fc.integer({ min: 1, max: 3 }),
    padding: fc.integer({ min: 0, max: most.padding }),
    end: fc.integer({ min: 0, max: most.end }),
  });
}

/** Problems of these axes, whose groups have so many channels each. */
export function randomSizes(
  { axes, batch, groups, groupIn, groupOut }: {
    readonly axes: fc.Arbitrary<RandomAxis[]>;
    readonly batch: fc.Arbitrary<number>;
    readonly groups: fc.Arbitrary<number>;
    readonly groupIn: fc.Arbitrary<number>;
    readonly groupOut: fc.Arbitrary<number>;
  },
) {
  return fc.record({ axes, batch, groups, groupIn, groupOut }).map((drawn) => ({
    batch: drawn.batch,
    groups: drawn.groups,
    inChannels: drawn.groups * drawn.groupIn,
    outChannels: drawn.groups * drawn.groupOut,
    ...spatialSizes(drawn.axes),
  }));
}

/** The spatial part of a problem with these axes. */
export function spatialSizes(axes: readonly RandomAxis[]) {
  return {
    inputSize: axes.map(({ filter, dilation, more, begin, end }) =>
      Math.max(1, dilatedSize(filter, dilation) + more - begin - end)
    ),
    filterSize: axes.map(({ filter }) => filter),
    stride: axes.map(({ stride }) => stride),
    paddingBegin: axes.map(({ begin }) => begin),
    paddingEnd: axes.map(({ end }) => end),
    dilation: axes.map(({ dilation }) => dilation),
  };
}
