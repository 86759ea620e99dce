import { product, range } from "./lists.ts";
import type { ModuleBuilder } from "./module.ts";

/** One spatial axis between the places of a result, the taps of a filter and a source. */
export interface Axis {
  readonly places: number;
  readonly taps: number;
  /** Of the source. */
  readonly size: number;
  readonly stride: number;
  readonly padding: number;
  readonly dilation: number;
  /** Stride of the source along this axis, in elements. */
  readonly sourceStride: number;
}

/**
 * Which way places meet the source. Forward: source = place·stride + tap·dilation − padding. Backward, with stride 1: source = place +
 * padding − tap·dilation.
 */
export type Direction = "forward" | "backward";

/** Whether some tap of some place falls outside the source. */
export function reachesOutside(
  { places, taps, size, stride, padding, dilation }: Axis,
  direction: Direction,
): boolean {
  const reach = (taps - 1) * dilation;
  const [first, last] = direction === "forward"
    ? [-padding, (places - 1) * stride + reach - padding]
    : [padding - reach, places - 1 + padding];
  return first < 0 || last >= size;
}

/** A digit of an index in a mixed radix; both are WGSL. */
export interface Digit {
  readonly name: string;
  readonly radix: string;
}

/**
 * Takes an index apart: `let name = ...` for each of its digits. What is left is one variable: with a constant for each
 * step fused kernels took up to 4 % longer on an H200.
 *
 * @param rest Prefix of names for what is left.
 * @param digits Innermost first; the outermost takes what is left.
 */
export function digitsText(
  index: string,
  rest: string,
  digits: readonly Digit[],
  indent = "  ",
): string {
  if (digits.length === 0) return "";
  const left = `${rest}left`;
  return [
    `${indent}var ${left} = ${index};`,
    ...digits.map(({ name, radix }, i) =>
      i === digits.length - 1
        ? `${indent}let ${name} = ${left};`
        : `${indent}let ${name} = ${left} % ${radix}; ${left} /= ${radix};`
    ),
  ].join("\n");
}

/** Digits of names and radices that are given outermost first, as axes are. */
export function axisDigits(names: readonly string[], radices: readonly string[]): Digit[] {
  return names.map((name, d) => ({ name, radix: radices[d] ?? "" })).reverse();
}

/** Names for a module's sizes of every axis, under one prefix. */
export function axisSizes(module: ModuleBuilder, prefix: string, axes: readonly Axis[]) {
  const each = (key: keyof Axis) =>
    axes.map((axis, d) => module.size(`${prefix}_${key}${d}`, axis[key]));
  return {
    places: each("places"),
    taps: each("taps"),
    size: each("size"),
    stride: each("stride"),
    padding: each("padding"),
    dilation: each("dilation"),
    sourceStride: each("sourceStride"),
  };
}

/**
 * How the columns of a product count (image, place). With `interleave` 4, four images at one place follow each
 * other: column = 4·(⌊image / 4⌋·places + place) + image mod 4. So a vector of four lies on whole fours whatever
 * the sizes of the image, and neighbouring vectors at neighbouring places. With 1: column = image·places + place.
 */
export interface ColumnOrder {
  /** A multiple of `interleave`. */
  readonly images: number;
  /** Places of the result, one entry a spatial axis. */
  readonly places: readonly number[];
  readonly interleave: 1 | 4;
}

/** Places of one image. */
export function spotsOf({ places }: Pick<ColumnOrder, "places">): number {
  return places.reduce((product, size) => product * size, 1);
}

/** Columns of the product. */
export function columnsOf(order: ColumnOrder): number {
  return order.images * spotsOf(order);
}

/** The greatest common divisor of two whole numbers. */
export function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

/** Taps that a word has a bit for. */
const WORD_TAPS = 32;

/** Whether a word has a bit for each tap. */
export function fitsWord(axes: readonly Pick<Axis, "taps">[]): boolean {
  return product(axes.map(({ taps }) => taps)) <= WORD_TAPS;
}

/**
 * Declares `{name}{d}` of each axis, the last one first: which taps of a place lie inside the source, a bit each, taps of the last axis
 * fastest. That of axis 0 is of all; so the padding of a step is a bit of a word that is found once (the P2R of Yan et al.).
 *
 * @param at WGSL of the source's coordinate of the place along an axis, at so many places from tap 0; below zero it is huge.
 * @param size WGSL of the source's size along an axis.
 */
export function tapWordText(
  name: string,
  axes: readonly Axis[],
  direction: Direction,
  at: (d: number, places: number) => string,
  size: (d: number) => string,
): string {
  return axes.map((axis, d) => {
    const inner = d === axes.length - 1 ? "1u" : `${name}${d + 1}`;
    const each = product(axes.slice(d + 1).map(({ taps }) => taps));
    const bits = range(axis.taps).map((tap) => {
      const shifted = tap === 0 ? inner : `${inner} << ${tap * each}u`;
      return reachesOutside(axis, direction)
        ? `select(0u, ${shifted}, ${at(d, tap * axis.dilation)} < ${size(d)})`
        : `(${shifted})`;
    });
    return `  let ${name}${d} = ${bits.join(" | ")};`;
  }).reverse().join("\n");
}

/** A tap's place among all of them, row-major, of its places along the axes. */
export function tapCountText(
  module: ModuleBuilder,
  name: string,
  taps: readonly number[],
  tap: (axis: number) => string,
): string {
  return taps.reduce(
    (text, count, d) =>
      d === 0 ? tap(0) : `(${text} * ${module.size(`${name}_taps${d}`, count)} + ${tap(d)})`,
    "",
  );
}
