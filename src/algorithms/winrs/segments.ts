import { evenParts, type Parts } from "../../kernels/slices/correlation.ts";
import { expectSizes } from "./omega.ts";
import type { KernelPair } from "./pair.ts";

/** The expected segment of ∇Y: Ŝ_H rows, and Ŝ_W columns, a multiple of r0 or all of O_W. */
interface SegmentShape {
  readonly height: number;
  readonly width: number;
}

/**
 * ∇Y cut into rows x columns of segments. Segment (i, j) holds rows rowStarts[i] to rowStarts[i + 1] and columns
 * columnStarts[j] to columnStarts[j + 1] (exclusive).
 */
export interface Segmentation {
  readonly rows: number;
  /** How high the last row is as a share of the others; 1 where all are as even as whole rows allow. */
  readonly last: number;
  readonly columns: number;
  /** rows + 1 entries, from 0 to O_H. */
  readonly rowStarts: readonly number[];
  /** columns + 1 entries, from 0 to O_W. */
  readonly columnStarts: readonly number[];
  /** Segment columns of the first kernel, from the left; the rest are the second's. */
  readonly firstColumns: number;
  /** Z, the number of buckets. */
  readonly count: number;
  /** The second kernel runs after the first and adds to its buckets, in place of having its own. */
  readonly shared: boolean;
}

/**
 * Algorithm 2: the segment shape for Ẑ segments on the first kernel, narrow ones first, because each row of
 * segments brings one more on the second kernel.
 *
 * @param paddingHeight p_H: a segment is kept higher than the padding, so that none has only zeros to read.
 * @throws {RangeError} if Ẑ or a size is not a positive whole number.
 */
export function segmentShape(
  outputHeight: number,
  outputWidth: number,
  pair: KernelPair,
  count: number,
  paddingHeight = 0,
): SegmentShape {
  expectSizes("cut ∇Y into segments", {
    "the height of ∇Y": outputHeight,
    "the width of ∇Y": outputWidth,
    "Z": count,
  });
  const [tiles, r] = [pair.k0, pair.first.r];
  const highest = mostRows(outputHeight, paddingHeight);
  const wanted = Math.min(count, highest * tiles);
  const shape = (columnTiles: number, height = outputHeight): SegmentShape => ({
    height: Math.max(1, Math.min(outputHeight, Math.floor(height))),
    width: Math.min(outputWidth, columnTiles * r),
  });
  const rowsFor = (columnTiles: number) => outputHeight * tiles / (wanted * columnTiles);
  if (wanted === 1) return shape(tiles);
  if (wanted >= tiles) return shape(1, rowsFor(1));
  if (tiles % wanted === 0) return shape(tiles / wanted);
  for (let x = Math.floor(tiles / wanted); x <= Math.min(tiles, highest * tiles / wanted); x++) {
    if (x > 0 && tiles % x === 0) return shape(x, rowsFor(x));
  }
  return shape(Math.ceil(tiles / wanted));
}

/**
 * Cuts ∇Y into segments of about a shape: floor(O_H / Ŝ_H) rows as even as whole rows allow, the first kernel's
 * tiles in columns as even as whole tiles allow, then the second kernel's tiles in columns no wider than Ŝ_W.
 */
export function tileSegments(
  outputHeight: number,
  outputWidth: number,
  pair: KernelPair,
  shape: SegmentShape,
): Segmentation {
  const rows = Math.max(1, Math.floor(outputHeight / shape.height));
  const columns = Math.ceil(pair.k0 / Math.max(1, Math.ceil(shape.width / pair.first.r)));
  return gridSegments(outputHeight, outputWidth, pair, rows, columns);
}

/** The heights of rows of segments that share so many rows of ∇Y, or tiles of them. */
export function rowHeights(
  size: number,
  { rows, last }: Pick<Segmentation, "rows" | "last">,
): Parts {
  if (last === 1) return evenParts(size, rows);
  const long = Math.ceil(size / (rows - 1 + last) - ROUNDING);
  return { long, longOnes: rows - 1, short: Math.max(0, size - (rows - 1) * long) };
}

/** Shares are quotients of whole numbers. */
const ROUNDING = 1e-9;

/** Products of the longest sum of a kernel that goes over so many rows and tiles of each image. */
export function longestSum(
  { size, tiles, batch }: {
    readonly size: number;
    readonly tiles: number;
    readonly batch: number;
  },
  segmentation: Pick<Segmentation, "rows" | "last">,
  segmentColumns: number,
): number {
  return rowHeights(size, segmentation).long * Math.ceil(tiles / segmentColumns) * batch;
}

/** count + 1 boundaries of that many parts of `size`. */
export function partStarts(
  size: number,
  count: number,
  { long, longOnes, short }: Parts,
): number[] {
  return Array.from(
    { length: count + 1 },
    (_, i) => Math.min(size, i * short + Math.min(i, longOnes) * (long - short)),
  );
}

/**
 * The segments of `rows` x `firstColumns` on the first kernel, and what the second then gets.
 *
 * @param sharing Lets the second kernel add to the first one's buckets; it does in any case where the first has
 * but one segment, so that no workspace is needed.
 * @param last How high the last row is as a share of the others.
 */
export function gridSegments(
  outputHeight: number,
  outputWidth: number,
  pair: KernelPair,
  rows: number,
  firstColumns: number,
  sharing = false,
  last = 1,
): Segmentation {
  const { first, second, k0, k1 } = pair;
  const widest = Math.max(1, Math.floor(Math.ceil(k0 / firstColumns) * first.r / (second?.r ?? 1)));
  const single = rows === 1 && firstColumns === 1;
  const secondColumns = second === undefined ? 0 : single ? 1 : Math.ceil(k1 / widest);
  const columns = firstColumns + secondColumns;
  const shared = second !== undefined && (single || (sharing && secondColumns <= firstColumns));
  return {
    rows,
    last,
    columns,
    // Thousands of segmentations are priced, which asks for neither.
    get rowStarts() {
      return partStarts(outputHeight, rows, rowHeights(outputHeight, { rows, last }));
    },
    get columnStarts() {
      return [
        ...partStarts(k0, firstColumns, evenParts(k0, firstColumns)).map((tile) => tile * first.r),
        ...(second
          ? partStarts(k1, secondColumns, evenParts(k1, secondColumns)).slice(1).map((tile) =>
            k0 * first.r + tile * second.r
          )
          : []),
      ].map((start) => Math.min(start, outputWidth));
    },
    firstColumns,
    count: rows * (shared ? firstColumns : columns),
    shared,
  };
}

/** H_max, the most rows of segments that leaves each as high as the padding p_H. */
export function mostRows(outputHeight: number, paddingHeight: number): number {
  return Math.max(1, Math.floor(outputHeight / Math.max(1, paddingHeight)));
}

/** {@linkcode segmentShape} and {@linkcode tileSegments}: the segments of ∇Y for a baseline count Ẑ. */
export function segment(
  outputHeight: number,
  outputWidth: number,
  pair: KernelPair,
  count: number,
  paddingHeight = 0,
): Segmentation {
  const shape = segmentShape(outputHeight, outputWidth, pair, count, paddingHeight);
  return tileSegments(outputHeight, outputWidth, pair, shape);
}

/** Workgroups that take as long as each other: how many, and how long. */
export type WorkgroupGroup = readonly [count: number, time: number];

/**
 * When the last workgroup ends, where so many run at once and the next begins as soon as one has ended (list scheduling: Graham,
 * Bounds on Multiprocessing Timing Anomalies, 1969).
 *
 * @param groups In the order in which they begin; times in any unit.
 * @param places Workgroups that run at once, from 1.
 * @returns In the unit of `groups`; 0 without workgroups.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { makespan } from "./segments.ts";
 *
 * assert.equal(makespan([[224, 21], [224, 7]], 132), 49);
 * ```
 */
export function makespan(groups: readonly WorkgroupGroup[], places: number): number {
  /** When places are free, the earliest first, and how many are then. */
  let free: { at: number; places: number }[] = [{ at: 0, places }];
  for (const [count, time] of groups) {
    let left = time === 0 ? 0 : count;
    while (left > 0) {
      const [{ at, places: open }, ...later] = free as [typeof free[number], ...typeof free];
      const taken = Math.min(open, left);
      // All that is free at once goes on in whole rounds, while nothing else is.
      const rounds = later.length === 0 && taken === open ? Math.floor(left / open) : 1;
      left -= taken * rounds;
      const end = at + time * rounds;
      free = taken === open ? later : [{ at, places: open - taken }, ...later];
      const behind = free.findIndex((one) => one.at >= end);
      const place = behind < 0 ? free.length : behind;
      const same = free[place];
      if (same?.at === end) free[place] = { at: end, places: same.places + taken };
      else free.splice(place, 0, { at: end, places: taken });
    }
  }
  return free.at(-1)!.at;
}
