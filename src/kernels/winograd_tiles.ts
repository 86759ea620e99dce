import type { ModuleBuilder } from "./module.ts";

/** One spatial axis of a tensor that is cut into tiles: tile i begins at element ⌊i / dilation⌋·step·dilation + i mod dilation + origin. */
export interface TileAxis {
  /** Elements. */
  readonly size: number;
  /** From one element to the next, in elements of memory. */
  readonly stride: number;
  readonly tiles: number;
  readonly step: number;
  /** Negative where tiles begin in the padding. */
  readonly origin: number;
  /** Elements of a tile stand so far apart, and as many tiles begin side by side: neighbouring threads read neighbours. */
  readonly dilation: number;
}

/**
 * A tensor [group][batch][channel][axis 0][axis 1] in whatever order its strides say. A filter is one too: a
 * batch of K with a single tile each.
 */
export interface TiledTensor {
  readonly groups: number;
  readonly groupStride: number;
  readonly batch: number;
  readonly batchStride: number;
  /** Of a group. */
  readonly channels: number;
  readonly channelStride: number;
  /** Tiles count images fastest (chwn) instead of places. */
  readonly batchInner: boolean;
  readonly axes: readonly [TileAxis, TileAxis];
}

/** Tiles of all images. */
export function tensorTiles({ batch, axes }: TiledTensor): number {
  return batch * axes[0].tiles * axes[1].tiles;
}

/** A stack of matrices, an element a tile and channel of a group: [element of the transform][group][..]. */
export interface MatrixStack {
  /** Which side is contiguous. */
  readonly along: "tile" | "channel";
  /** Extents of a matrix, padding included. */
  readonly tiles: number;
  readonly channels: number;
}

/** How many tiles and channels threads are dealt to, neighbours along the matrices' contiguous side. */
export interface TileThreads {
  /** Tiles and channels that have threads; those beyond the tensor's are padding. */
  readonly tiles: number;
  readonly channels: number;
}

/** Threads of a kernel. */
export function threadCount(groups: number, { tiles, channels }: TileThreads): number {
  return groups * tiles * channels;
}

/**
 * WGSL that turns thread `i` into `tile`, `channel`, `group`, `tile0`, `tile1` and `image`, and declares `base`,
 * the tile's offset in the tensor without its place, and `at`, its offset in the first matrix.
 *
 * @param start Offset of the tensor in its binding, in elements.
 */
export function tileIndexText(
  module: ModuleBuilder,
  tensor: TiledTensor,
  stack: MatrixStack,
  threads: TileThreads,
  start: number,
): string {
  const size = (name: string, value: number) => module.size(name, value);
  const byTile = stack.along === "tile";
  const tiles = size("thread_tiles", threads.tiles);
  const channels = size("thread_channels", threads.channels);
  const groups = size("groups", tensor.groups);
  const lines: string[] = [];
  if (byTile) {
    lines.push(
      `let tile = i % ${tiles};`,
      `let rest = i / ${tiles};`,
      `let channel = rest % ${channels};`,
      `let group = rest / ${channels};`,
    );
  } else {
    // As activations of a layout with channels innermost lie: all groups, then the next tile.
    lines.push(
      `let channel = i % ${channels};`,
      `let rest = i / ${channels};`,
      `let group = rest % ${groups};`,
      `let tile = rest / ${groups};`,
    );
  }
  const [tiles0, tiles1] = tensor.axes.map((axis, d) => size(`tiles${d}`, axis.tiles));
  const batch = size("batch", tensor.batch);
  lines.push(
    ...(tensor.batchInner
      ? [
        `let image = tile % ${batch};`,
        `let spot = tile / ${batch};`,
        `let tile1 = spot % ${tiles1};`,
        `let tile0 = spot / ${tiles1};`,
      ]
      : [
        `let tile1 = tile % ${tiles1};`,
        `let line = tile / ${tiles1};`,
        `let tile0 = line % ${tiles0};`,
        `let image = line / ${tiles0};`,
      ]),
    `let base = ${size("start", start)} + group * ${size("group_stride", tensor.groupStride)} + ` +
      `image * ${size("batch_stride", tensor.batchStride)} + ` +
      `channel * ${size("channel_stride", tensor.channelStride)};`,
    `let at = group * ${size("matrix", stack.tiles * stack.channels)} + ` +
      (byTile
        ? `channel * ${size("matrix_row", stack.tiles)} + tile;`
        : `tile * ${size("matrix_row", stack.channels)} + channel;`),
  );
  return lines.map((line) => `  ${line}`).join("\n");
}

/**
 * Offset of element `which` of the transform in its stack.
 *
 * @param first WGSL of the offset in the first matrix.
 */
export function stackPlace(
  module: ModuleBuilder,
  { tiles, channels }: MatrixStack,
  groups: number,
  which: number,
  first = "at",
): string {
  if (which === 0) return first;
  return `${first} + ${which}u * ${module.size("transform_stride", groups * tiles * channels)}`;
}

/** WGSL of a tile's first element along an axis, its origin aside. */
export function tileStartText(module: ModuleBuilder, { axes }: TiledTensor, d: 0 | 1): string {
  const { step, dilation } = axes[d];
  if (dilation === 1) return `tile${d} * ${module.size(`step${d}`, step)}`;
  const apart = module.size(`dilation${d}`, dilation);
  return `tile${d} / ${apart} * ${module.size(`step${d}`, step * dilation)} + tile${d} % ${apart}`;
}

/** Enters kernel names: what of the shape shapes the text. */
export function tilesTrait(
  { batchInner, axes }: TiledTensor,
  { along }: MatrixStack,
): string {
  const dilations = axes.map(({ dilation }) => dilation);
  const apart = dilations.every((one) => one === 1) ? "" : `_d${dilations.join("x")}`;
  return `${along}${batchInner ? "_inner" : ""}${apart}`;
}
