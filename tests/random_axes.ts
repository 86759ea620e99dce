import fc from "fast-check";
import type { SizeMode } from "../src/kernels/module.ts";
import { dilatedSize } from "../src/problem/conv_problem.ts";

/** What is drawn of a spatial axis: `more` places than the dilated filter has, padding counted. */
export interface RandomAxis {
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
    // Long ones too: beyond what taps reach of the other end.
    end: fc.constantFrom(0, 0, 1, 1, 2, 2, 3, 7),
  });
  return fc.array(axis, { minLength: 1, maxLength: 3 });
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
