/** How Winograd's tiles lie on a result. */
export interface ResultTiles {
  /** Outputs of a tile along the spatial axes; 1 where there is none. */
  readonly tile: readonly number[];
}

/** A result's tiles, numbered. */
interface TileNumbers {
  readonly count: number;
  /** The number of the tile that has an output; its place begins so many coordinates on. */
  of(place: readonly number[], first?: number): number;
}

/** Numbers the tiles of a result of so many places along its spatial axes. */
export function tileNumbers(
  sizes: readonly number[],
  { tile }: ResultTiles,
): TileNumbers {
  const extents = sizes.map((_, d) => tile[d] ?? 1);
  const counts = sizes.map((size, d) => Math.ceil(size / extents[d]!));
  return {
    count: counts.reduce((all, one) => all * one, 1),
    // No copies: it is called for each of millions of outputs.
    of(place, first = 0) {
      let number = 0;
      for (let d = 0; d < counts.length; d++) {
        number = number * counts[d]! + Math.floor(place[first + d]! / extents[d]!);
      }
      return number;
    },
  };
}
