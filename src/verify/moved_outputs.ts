/** Right values in wrong places. */
import {
  type FilterLayout,
  type Layout,
  layoutAxes,
  shapeInLayout,
  stridesInLayout,
} from "../tensor/layout.ts";
import { rowMajorStrides, unravelIndex } from "../tensor/tensor.ts";
import type { Hypothesis } from "./hypothesis.ts";

/** A result whose outputs may have moved. */
export interface MovedCase {
  /** Canonical. */
  readonly shape: readonly number[];
  /** What should stand at canonical indices. */
  right(indices: readonly number[]): Float64Array;
  /** What an entry of each axis is called. */
  readonly names: readonly string[];
  /** Layouts that a result of its kind may have, and its own; none of a product. */
  readonly layouts: readonly (Layout | FilterLayout)[];
  readonly layout: string;
}

/** Hypotheses of results that are repeated, shifted, swapped or written in another layout. */
export function movedHypotheses(of: MovedCase): Hypothesis[] {
  const { shape, names, right } = of;
  const last = shape.length - 1;
  const moved = (name: string, from: (at: readonly number[]) => readonly number[]) =>
    movedHypothesis(of, name, from);
  const axes = shape.flatMap((size, axis) => size > 1 ? [axis] : []);
  return [
    { name: "the other sign", values: (indices) => right(indices).map((value) => -value) },
    ...axes.flatMap((axis) => [
      moved(`${names[axis]} 0 in place of every one`, (at) => at.with(axis, 0)),
      ...[1, -1].map((by) =>
        moved(
          `the ${by > 0 ? "next" : "previous"} ${names[axis]} in place of each`,
          (at) => at.with(axis, at[axis]! + by),
        )
      ),
    ]),
    ...axes.flatMap((axis) => [
      moved(`${names[axis]}s in reverse`, (at) => at.with(axis, shape[axis]! - 1 - at[axis]!)),
      moved(`neighbouring ${names[axis]}s swapped`, (at) => at.with(axis, at[axis]! ^ 1)),
    ]),
    ...(last >= 1 && shape[last] === shape[last - 1] && shape[last]! > 1
      ? [moved(
        `${names[last - 1]}s and ${names[last]}s of the result swapped`,
        (at) => at.with(last, at[last - 1]!).with(last - 1, at[last]!),
      )]
      : []),
    ...layoutHypotheses(of),
  ];
}

/** The hypothesis that each output is another one, which is not known where that is outside. */
export function movedHypothesis(
  { shape, right }: MovedCase,
  name: string,
  from: (at: readonly number[]) => readonly number[],
): Hypothesis {
  const strides = rowMajorStrides(shape);
  return {
    name,
    values(indices) {
      const places = indices.map((index) => from(unravelIndex(index, shape)));
      const inside = (at: readonly number[]) =>
        at.every((place, axis) => place >= 0 && place < shape[axis]!);
      const known = places.filter(inside);
      const values = right(
        known.map((at) => at.reduce((sum, place, axis) => sum + place * strides[axis]!, 0)),
      );
      // What comes from outside is not known.
      let next = 0;
      return Float64Array.from(places, (at) => inside(at) ? values[next++]! : NaN);
    },
  };
}

function layoutHypotheses(of: MovedCase): Hypothesis[] {
  const { shape, layouts, layout } = of;
  const own = layouts.find((one) => one === layout);
  if (own === undefined) return [];
  const strides = stridesInLayout(shape, own);
  return layouts.filter((one) => one !== own).map((other) => {
    const lying = shapeInLayout(shape, other);
    const axes = layoutAxes(other, shape.length - 2);
    return movedHypothesis(of, `the result written as ${other}`, (at) => {
      const memory = at.reduce((sum, place, axis) => sum + place * strides[axis]!, 0);
      const there = unravelIndex(memory, lying);
      return shape.map((_, axis) => there[axes.indexOf(axis)]!);
    });
  });
}
