import { product } from "../lists.ts";
import type { Axis, Digit } from "../axes.ts";

/** An axis that is not tiled: its taps are part of the depth. Its padding may be negative: backward-data of a wide one. */
export interface OuterAxis extends Axis {
  /** Of the target, in elements. */
  readonly targetStride: number;
}

/** A spatial axis cut into tiles of F(n,r): tile i makes the places first + i·n to first + i·n + n − 1. */
export interface TiledAxis {
  readonly size: number;
  readonly sourceStride: number;
  readonly padding: number;
  readonly places: number;
  readonly targetStride: number;
  readonly n: number;
  readonly r: number;
  /** Pieces of r taps that the filter is cut into; the last may be filled up with zeros. */
  readonly chunks: number;
  readonly first: number;
  readonly tiles: number;
}

/** How a forward-like convolution of stride 1 reads its source and writes its target, per group. */
export interface SliceGeometry {
  readonly batch: number;
  readonly sourceBatchStride: number;
  readonly targetBatchStride: number;
  /** Whether tiles of neighbouring images are neighbours (chwn), and not tiles of one row. */
  readonly batchInner: boolean;
  /** Whether channels of one place are neighbours (nhwc). */
  readonly channelsInner: boolean;
  /** Source channels of a group. */
  readonly channels: number;
  readonly sourceChannelStride: number;
  /** Target channels of a group. */
  readonly targets: number;
  readonly targetChannelStride: number;
  readonly outer: readonly OuterAxis[];
  readonly tiled: readonly TiledAxis[];
}

/** Tiles of all images. */
export function tileCount({ batch, outer, tiled }: SliceGeometry): number {
  return batch * product(outer.map(({ places }) => places)) *
    product(tiled.map(({ tiles }) => tiles));
}

/** Taps of the depth: those of the outer axes times the pieces of the tiled ones. */
export function tapCount({ outer, tiled }: Pick<SliceGeometry, "outer" | "tiled">): number {
  return product(outer.map(({ taps }) => taps)) * product(tiled.map(({ chunks }) => chunks));
}

/** Channels in the depth order: whole steps. */
export function paddedChannels(channels: number, depth: number): number {
  return Math.ceil(channels / depth) * depth;
}

/** The digits of a tile's index, by names of what they are. */
export function tileDigits(
  { batch, batchInner, outer, tiled }: SliceGeometry,
  size: (name: string, value: number) => string,
  names: { readonly tile: string; readonly outer: string; readonly image: string },
): Digit[] {
  const spatial = [
    ...tiled.map(({ tiles }, d) => ({ name: `${names.tile}${d}`, radix: size(`tiles${d}`, tiles) }))
      .reverse(),
    ...outer.map(({ places }, d) => ({
      name: `${names.outer}${d}`,
      radix: size(`places${d}`, places),
    })).reverse(),
  ];
  const image = { name: names.image, radix: size("batch", batch) };
  return batchInner ? [image, ...spatial] : [...spatial, image];
}
