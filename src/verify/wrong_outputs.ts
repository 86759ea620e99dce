/** Which outputs of a result are wrong, and where they lie. */
import { comparison } from "../accuracy/walk.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { floorsOf, type Reference, resultStrides } from "../run/check.ts";
import type { HostData } from "../run/subject.ts";

/** Outputs that were compared, and those of them that are wrong. */
export interface WrongOutputs {
  /** Canonical flat indices, ascending, of the wrong ones. */
  readonly wrong: readonly number[];
  /** The one that is off by most of its scale. */
  readonly worst?: number;
  /** How many were compared. */
  readonly checked: number;
  /** Of the wrong ones, those that are NaN or infinite where the reference is not, or the other way round. */
  readonly mismatched: number;
  /** Of the wrong ones, those that are 0. */
  readonly zeros: number;
  /** Along each canonical axis, its places that have wrong outputs, and how many of those. */
  readonly counts: readonly ReadonlyMap<number, number>[];
  /** Wrong ones at an end of a spatial axis that has more than ends. */
  readonly atBorder: number;
}

/**
 * Compares a result with its reference output by output.
 *
 * @param allowed Error over scale from which an output is wrong.
 */
export function wrongOutputs(
  reference: Reference,
  result: HostData,
  arithmetic: PlanArithmetic,
  allowed: number,
): WrongOutputs {
  const { subject, shape, values } = reference;
  const compare = comparison(result, reference, {
    strides: resultStrides(subject),
    precision: subject.tolerance.precision(arithmetic),
    accumulationLength: subject.sums.length,
    activation: subject.activation,
    floors: floorsOf(reference, arithmetic),
  });
  const wrong: number[] = [];
  const counts = shape.map(() => new Map<number, number>());
  let mismatched = 0, zeros = 0, atBorder = 0, worst: number | undefined, most = 0;
  compare((at, index, y, _ref, error, scale) => {
    if (Number.isNaN(error)) mismatched++;
    else if (error === 0 || Math.abs(error) <= allowed * scale) return;
    wrong.push(index);
    if (y === 0) zeros++;
    const ratio = Number.isNaN(error) ? Infinity : Math.abs(error) / scale;
    if (ratio > most) [most, worst] = [ratio, index];
    at.forEach((place, axis) => counts[axis]!.set(place, (counts[axis]!.get(place) ?? 0) + 1));
    const atEnd = shape.some((size, axis) =>
      axis > 1 && size > 2 && (at[axis] === 0 || at[axis] === size - 1)
    );
    if (atEnd) atBorder++;
  });
  return {
    wrong,
    ...(worst === undefined ? {} : { worst }),
    checked: values.length,
    mismatched,
    zeros,
    counts,
    atBorder,
  };
}

/** Sizes whose multiples kernels cut a result at; what is behind the last one is a tail. */
const BLOCKS = [128, 64, 32, 16, 8, 4];

/**
 * Says where wrong outputs lie: `12 of 96 outputs are wrong, all of them in channel 3, rows 0 to 2`.
 *
 * @param names What an entry of each axis is called, in the singular.
 */
export function whereText(
  { wrong, checked, mismatched, zeros, counts, atBorder }: WrongOutputs,
  shape: readonly number[],
  names: readonly string[],
): string {
  if (wrong.length === 0) {
    return `none of ${
      grouped(checked)
    } outputs is wrong by itself, their errors are too large together`;
  }
  const places = shape.flatMap((size, axis) => placesText(counts[axis]!, size, names[axis]!));
  if (wrong.length > 1 && atBorder === wrong.length) places.push("at the border");
  const kind = zeros === wrong.length
    ? "0 where the reference is not"
    : mismatched === 0
    ? "wrong"
    : mismatched === wrong.length
    ? "NaN or infinite where the reference is not, or the other way round"
    : `wrong (${grouped(mismatched)} NaN or infinite, or not)`;
  return `${grouped(wrong.length)} of ${grouped(checked)} outputs ${
    wrong.length === 1 ? "is" : "are"
  } ${kind}` +
    (places.length === 0 ? "" : `: ${wrong.length === 1 ? "" : "all "}in ${places.join(", ")}`)
      .replace("in at the border", "at the border");
}

/** Where the wrong places of an axis are, if they are not all of it. */
function placesText(counts: ReadonlyMap<number, number>, size: number, name: string): string[] {
  const places = [...counts.keys()].sort((a, b) => a - b);
  const [first, last] = [places[0], places.at(-1)];
  if (first === undefined || last === undefined || places.length === size) return [];
  if (places.length === 1) return [`${name} ${first}`];
  if (last - first + 1 === places.length) {
    const block = last === size - 1 && BLOCKS.find((one) => first === size - 1 - (size - 1) % one);
    return [
      `${name}s ${first} to ${last}${block ? `, the tail behind a multiple of ${block}` : ""}`,
    ];
  }
  const step = places[1]! - first;
  if (step > 1 && places.length > 2 && places.every((place, i) => place === first + i * step)) {
    return [`${name}s ${first} to ${last} in steps of ${step}`];
  }
  return places.length <= 4 ? [`${name}s ${places.join(", ")}`] : [];
}

function grouped(count: number): string {
  return count.toLocaleString("en-US");
}
