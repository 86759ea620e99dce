import { type Activation, PLAIN_ACTIVATIONS } from "../problem/activations.ts";
import { type Reference, resultStrides } from "../run/check.ts";
import type { HostData } from "../run/subject.ts";
import {
  type FilterLayout,
  type Layout,
  layoutAxes,
  shapeInLayout,
  stridesInLayout,
} from "../tensor/layout.ts";
import { rowMajorStrides, unravelIndex } from "../tensor/tensor.ts";

/** Outputs, and what they should be. */
export interface SampledOutputs {
  /** Canonical and flat. */
  readonly indices: readonly number[];
  readonly got: readonly number[];
  readonly expected: readonly number[];
  /** Σ|a||b| */
  readonly magnitudes: readonly number[];
}

/**
 * Up to `count` finite outputs of those that a reference has, spread over them.
 *
 * @param first Others that come before, by their canonical indices.
 */
export function sampledOutputs(
  { subject, values, magnitudes, indices: sampled }: Reference,
  result: HostData,
  count: number,
  first: readonly number[] = [],
): SampledOutputs {
  const strides = resultStrides(subject);
  const places = new Map(sampled && Array.from(sampled, (index, at) => [index, at]));
  const any = spread(values.length, count).map((at) => sampled?.[at] ?? at);
  const all = [...new Set([...first, ...any])].map((index) => ({
    index,
    at: sampled === undefined ? index : places.get(index)!,
    got: result[
      unravelIndex(index, subject.shape).reduce((sum, at, axis) => sum + at * strides[axis]!, 0)
    ]!,
  })).map((one) => ({ ...one, expected: values[one.at]!, magnitude: magnitudes[one.at]! })).filter((
    { got, expected },
  ) => Number.isFinite(got) && Number.isFinite(expected));
  return {
    indices: all.map(({ index }) => index),
    got: all.map(({ got }) => got),
    expected: all.map(({ expected }) => expected),
    magnitudes: all.map(({ magnitude }) => magnitude),
  };
}

/** Up to `count` of the first `total` whole numbers, spread over them. */
export function spread(total: number, count: number): number[] {
  if (total <= count) return Array.from({ length: total }, (_, i) => i);
  return Array.from({ length: count }, (_, i) => Math.floor((i + 0.5) * total / count));
}

/** What a result may be in place of what it should be. */
export interface Hypothesis {
  /** It follows "the result matches with": `the filter flipped`. */
  readonly name: string;
  /** What would stand at canonical indices; NaN where that is not known. */
  values(indices: readonly number[]): Float64Array;
}

/** A hypothesis that fits, and how well. */
export interface Match {
  readonly name: string;
  /** ‖y − values‖ / ‖values‖ over the outputs that were looked at. */
  readonly relL2: number;
}

/**
 * The hypothesis that fits outputs best, where it explains nearly all that is wrong with them. One by which they are all 0 says
 * nothing.
 */
export function bestMatch(
  hypotheses: readonly Hypothesis[],
  { indices, got, expected }: SampledOutputs,
): Match | undefined {
  if (indices.length < LEAST) return undefined;
  let best: (Match & { readonly rest: number }) | undefined;
  for (const { name, values } of [...hypotheses, ...fitted(got, expected)]) {
    const made = values(indices);
    const known = indices.keys().filter((at) => Number.isFinite(made[at]!)).toArray();
    if (known.length < indices.length / 2) continue;
    const rest = distance(got, made, known), own = distance(got, expected, known);
    // Earlier ones are simpler.
    const size = norm(known.map((at) => made[at]!));
    if (size === 0 || !(rest <= EXPLAINED * Math.min(own, size))) continue;
    if (best === undefined || rest < CLEARLY * best.rest) best = { name, rest, relL2: rest / size };
  }
  return best && { name: best.name, relL2: best.relL2 };
}

/** Of fewer outputs some hypothesis explains each by chance. */
const LEAST = 4;
/** What may be left of what is wrong, and of all, at most. */
const EXPLAINED = 0.02;
/** What a later hypothesis may leave of what an earlier one does. */
const CLEARLY = 0.5;

/** The same outputs times what fits best, or with what fits best added. */
function fitted(got: readonly number[], expected: readonly number[]): Hypothesis[] {
  let products = 0, squares = 0, sum = 0;
  expected.forEach((value, i) => {
    products += value * got[i]!;
    squares += value * value;
    sum += got[i]! - value;
  });
  const factor = products / squares, added = sum / expected.length;
  const named = (name: string, value: number, of: (value: number) => number): Hypothesis[] =>
    Number.isFinite(value) && value !== 0
      ? [{
        name: `${name} ${said(value)}`,
        values: () => Float64Array.from(expected, of),
      }]
      : [];
  return [
    ...named("all results times", factor, (value) => value * factor),
    ...named("all results plus", added, (value) => value + added),
  ];
}

/** A number in four digits, or by how little it is more than 1. */
function said(value: number): string {
  const more = value - 1;
  return Math.abs(more) < 1e-3 && more !== 0
    ? `1 ${more < 0 ? "-" : "+"} ${Math.abs(more).toExponential(1)}`
    : `${Number(value.toPrecision(4))}`;
}

/** The same outputs with what fits best added to each entry of an axis; not known of entries that have one output. */
export function shifted(
  { indices, got, expected }: SampledOutputs,
  shape: readonly number[],
  axis: number,
  name: string,
): Hypothesis {
  const entries = indices.map((index) => unravelIndex(index, shape)[axis]!);
  const sums = new Map<number, { sum: number; count: number }>();
  entries.forEach((entry, i) => {
    const { sum, count } = sums.get(entry) ?? { sum: 0, count: 0 };
    sums.set(entry, { sum: sum + got[i]! - expected[i]!, count: count + 1 });
  });
  return {
    name: `a value added to each ${name}, as a bias is`,
    values: () =>
      Float64Array.from(expected, (value, i) => {
        const { sum, count } = sums.get(entries[i]!)!;
        return count < 2 ? NaN : value + sum / count;
      }),
  };
}

/** Activations that may stand in place of the one that is asked for, the simplest first. */
export function otherActivations(own: Activation): (readonly [name: string, Activation])[] {
  return PLAIN_ACTIVATIONS.filter((one) => one !== own).map((one) => [
    one === "none"
      ? `no ${own}`
      : own === "none"
      ? `${one}, which is not asked for`
      : `${one} in place of ${own}`,
    one,
  ]);
}

function distance(a: ArrayLike<number>, b: ArrayLike<number>, places: readonly number[]): number {
  return norm(places.map((at) => a[at]! - b[at]!));
}

function norm(values: readonly number[]): number {
  return Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
}

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
