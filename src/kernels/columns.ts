import type { ModuleBuilder } from "./module.ts";

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

/** One spatial axis between the places of a result, the taps of a filter and a source. */
export interface WindowAxis {
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

/** Whether some tap of some place falls outside the source. */
export function reachesOutside({ places, taps, size, stride, padding, dilation }: WindowAxis) {
  return padding > 0 || (places - 1) * stride + (taps - 1) * dilation - padding >= size;
}

/**
 * Lines that take `rest` apart, the last of `names` fastest: `let a2 = rest % e2; rest /= e2; …`. The first
 * takes what is left.
 */
export function peel(
  rest: string,
  names: readonly string[],
  extents: readonly string[],
  indent = "  ",
): string[] {
  return names.map((name, d) => ({ name, extent: extents[d], d })).reverse().map((
    { name, extent, d },
  ) =>
    d === 0
      ? `${indent}let ${name} = ${rest};`
      : `${indent}let ${name} = ${rest} % ${extent}; ${rest} /= ${extent};`
  );
}

/** Names for a module's sizes of every axis, under one prefix. */
export function axisSizes(module: ModuleBuilder, prefix: string, axes: readonly WindowAxis[]) {
  const each = (key: keyof WindowAxis) =>
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
