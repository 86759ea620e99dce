import type { WinogradTile } from "../../winograd/tile.ts";
import type { TileRun } from "./geometry.ts";

/** α of a one-dimensional tile where the user names none. */
const ALPHA = 8;
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

/**
 * Cuts the tiled axes into runs of tiles, one list entry a kernel. One axis: whole tiles, then one of what is left,
 * so that no tile is wasted (14 = 6 + 6 + 2). Two axes: tiles that may reach beyond the edge.
 */
export function tileRuns(
  places: readonly number[],
  filter: readonly number[],
  tile: WinogradTile | undefined,
): TileRun[][] {
  if (places.length === 1) {
    const [size, taps] = [places[0]!, filter[0]!];
    const r = tile?.r[0] ?? pieceOf(taps, 1);
    const n = Math.max(1, Math.min(size, tile?.n[0] ?? defaultN(taps, size)));
    const count = Math.floor(size / n);
    const rest = size - count * n;
    return [
      [{ n, r, first: 0, count }],
      ...(rest > 0 ? [[{ n: rest, r, first: count * n, count: 1 }]] : []),
    ];
  }
  return [
    places.map((size, d) => {
      const r = tile?.r[d] ?? pieceOf(filter[d]!, 2);
      const n = tile?.n[d] ?? 2;
      return { n, r, first: 0, count: Math.ceil(size / n) };
    }),
  ];
}
