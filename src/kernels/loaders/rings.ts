import { range } from "../lists.ts";
import type { Axis } from "../axes.ts";
import { tapReach, type TapRing } from "../loader.ts";
import type { ModuleBuilder } from "../module.ts";

/** The rows of a step: so many of each of so many images, which follow each other along the last axis but one. */
export interface RowBox {
  readonly images: number;
  readonly rows: number;
}

/**
 * The depth of backward-filter by rows, channels innermost, whose taps along the last axis share what a step loads: a step takes one
 * place each of a box of rows, the next step the next place, so that what it loads of the input is what the last tap of its place takes
 * and the other taps of the places that follow. Between rows lie steps that add nothing, in which the next row's first places are
 * loaded; or rows follow each other, each as long as the input's, and taps beyond their ends are left out.
 */
export interface RingDepth {
  readonly batch: number;
  /** Whether rows follow each other; only where {@linkcode joinsRows}. */
  readonly joined: boolean;
  /** The input's axes, between places of the output and taps. */
  readonly axes: readonly Axis[];
  readonly box: RowBox;
}

/**
 * Steps behind a row in which nothing is added: what its taps reach beyond zeros that the rows on both sides of them share. Below zero
 * where padding at both ends is more than taps reach: so many places at a row's end, which meet zeros alone, fall away.
 */
function idlePlaces({ places, size, padding, ...taps }: Axis): number {
  const after = places - 1 + tapReach(taps) - padding - (size - 1);
  return tapReach(taps) - Math.max(0, Math.min(padding, after));
}

/** Most steps at a row's ends that leave taps out: each is a text of its own. */
const MOST_ENDS = 8;

/** Whether rows may follow each other: of as many places as the input's, which are more than taps reach. */
export function joinsRows({ places, size, ...taps }: Axis): boolean {
  const reach = tapReach(taps);
  return places === size && taps.padding <= reach && places > reach && reach <= MOST_ENDS;
}

/** Steps of a row, and how many steps what is loaded of the input is ahead of the gradient. */
export function rowSteps({ axes, joined }: RingDepth): { width: number; ahead: number } {
  const last = axes.at(-1)!;
  const ahead = joined ? tapReach(last) - last.padding : idlePlaces(last);
  return { width: joined ? last.places : last.places + ahead, ahead };
}

/** The ring of the taps along the last axis. */
export function ringOf({ taps, dilation, padding, places }: Axis, joined: boolean): TapRing {
  return { kind: "ring", taps, dilation, ...(joined && { row: { steps: places, padding } }) };
}

/** Boxes along an axis of rows. */
export function boxes(size: number, each: number): number {
  return Math.ceil(size / each);
}

/** Rows along the innermost axis of rows; one where a row is an image. */
export function rowsOf(axes: readonly Pick<Axis, "places">[]): number {
  return axes.at(-2)?.places ?? 1;
}

/** The box of so many rows that leaves least of them outside, the highest one of several. */
export function rowBox(
  batch: number,
  axes: readonly Pick<Axis, "places">[],
  count: number,
): RowBox {
  const rows = rowsOf(axes);
  const all = range(count).map((i) => count - i)
    .filter((high) => count % high === 0 && (axes.length > 1 || high === 1))
    .map((high): RowBox => ({ rows: high, images: count / high }));
  const covered = ({ rows: high, images }: RowBox) =>
    boxes(rows, high) * high * boxes(batch, images) * images;
  return all.reduce((best, one) => covered(one) < covered(best) ? one : best);
}

/** Steps of all boxes. */
export function ringSteps(depth: RingDepth): number {
  const { batch, axes, box } = depth;
  const others = axes.slice(0, -2).reduce((product, { places }) => product * places, 1);
  return boxes(batch, box.images) * others * boxes(rowsOf(axes), box.rows) * rowSteps(depth).width;
}

/** Channels of a matrix, which follow each other in columns, and taps of a row, one matrix of each before the next channels'. */
export interface RingColumns {
  readonly taps: number;
  readonly block: number;
  /** Channels of a group. */
  readonly channels: number;
}

/** Columns of all taps, channels padded to whole matrices. */
export function ringColumns({ taps, block, channels }: RingColumns, others: number): number {
  return others * boxes(channels, block) * block * taps;
}

/** WGSL of a column's place among taps and channels as filters have them, channels innermost; beyond `columns` where it is none. */
export function ringColumn(
  module: ModuleBuilder,
  { taps, block, channels }: RingColumns,
  column: string,
  columns: string,
): string {
  const count = module.size("ring_channels", channels);
  const blocks = module.size("ring_blocks", boxes(channels, block));
  const matrix = `(${column} / ${block}u)`;
  const rest = `(${matrix} / ${taps}u)`;
  const channel = `(${rest} % ${blocks} * ${block}u + ${column} % ${block}u)`;
  const natural = `(${rest} / ${blocks} * ${taps}u + ${matrix} % ${taps}u) * ${count} + ${channel}`;
  return channels % block === 0 && module.mode === "constant"
    ? natural
    : `select(${columns}, ${natural}, ${channel} < ${count})`;
}
