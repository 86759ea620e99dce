import type { WinogradTile } from "../../winograd/tile.ts";
import type { TileRun } from "./geometry.ts";

/** α of a one-dimensional tile where the user names none, at most, and those that may be faster. */
const ALPHA = 8;
const SHORTER = [6, 4];
/** Longer filter axes are cut into pieces: where one axis is tiled, and where two are. */
const LONGEST = [9, 7] as const;

/** Taps of a piece: the whole filter, or as even a share of it as fits. */
function pieceOf(taps: number, axes: 1 | 2): number {
  return Math.ceil(taps / Math.ceil(taps / LONGEST[axes - 1]!));
}

/** The default F(n,r) along one axis. */
function defaultN(taps: number, places: number): number {
  const r = pieceOf(taps, 1);
  const alpha = r <= 7 ? ALPHA : 2 * ALPHA;
  return Math.max(1, Math.min(places, alpha + 1 - r));
}

/** The kernels of a plan, each with a run of tiles along each tiled axis. */
export type TileRuns = readonly (readonly TileRun[])[];

/**
 * The ways of cutting the tiled axes into runs of tiles. One axis: whole tiles and one of what is left, so that no tile is
 * wasted (14 = 6 + 6 + 2, two kernels), or tiles that reach beyond the edge (14 of 4 · 4, one kernel); where no tile is given,
 * of the default and of shorter ones. Two axes: tiles that may reach beyond the edge.
 */
export function tileRuns(
  places: readonly number[],
  filter: readonly number[],
  tile: WinogradTile | undefined,
): TileRuns[] {
  if (places.length > 1) {
    return [[
      places.map((size, d) => {
        const r = tile?.r[d] ?? pieceOf(filter[d]!, 2);
        const n = tile?.n[d] ?? 2;
        return { n, r, first: 0, count: Math.ceil(size / n) };
      }),
    ]];
  }
  const [size, taps] = [places[0]!, filter[0]!];
  const r = tile?.r[0] ?? pieceOf(taps, 1);
  const within = (n: number) => Math.max(1, Math.min(size, n));
  const results = tile === undefined
    ? [defaultN(taps, size), ...SHORTER.map((alpha) => alpha + 1 - r).filter((n) => n > 1)]
    : [tile.n[0]!];
  return [...new Set(results.map(within))].flatMap((n) => axisRuns(size, n, r));
}

/** One axis by tiles of `n` results: exactly, and beyond the edge where that is another way. */
function axisRuns(size: number, n: number, r: number): TileRuns[] {
  const count = Math.floor(size / n);
  const rest = size - count * n;
  if (rest === 0) return [[[{ n, r, first: 0, count }]]];
  return [
    [[{ n, r, first: 0, count }], [{ n: rest, r, first: count * n, count: 1 }]],
    [[{ n, r, first: 0, count: count + 1 }]],
  ];
}
