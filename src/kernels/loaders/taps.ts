import { product, range } from "../lists.ts";
import { type Axis, type Direction, reachesOutside } from "../axes.ts";
import type { ModuleBuilder } from "../module.ts";

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
