/** How Winograd's tiles lie on a result. */
export interface ResultTiles {
  /** Outputs of a tile along the spatial axes; 1 where there is none. */
  readonly tile: readonly number[];
  /** Of joined rows (`TileShare.pitch`): places from one row to the next in the line that the last axis' tiles are of. */
  readonly pitch?: number | undefined;
}

/** Sizes of a result along the axes that tiles are counted along: its own, of joined rows none and their line. */
export function tiledSizes<T extends readonly number[]>(sizes: T, pitch: number | undefined): T {
  if (pitch === undefined) return sizes;
  const [rows, columns] = sizes.slice(-2) as [number, number];
  return [...sizes.slice(0, -2), 1, (rows - 1) * pitch + columns] as unknown as T;
}

/** Where an output lies along those axes. */
export function tiledPlace<T extends readonly number[]>(place: T, pitch: number | undefined): T {
  if (pitch === undefined) return place;
  const [row, column] = place.slice(-2) as [number, number];
  return [...place.slice(0, -2), 0, row * pitch + column] as unknown as T;
}

/** The output that lies there, which may be none of the result's. */
export function outputPlace<T extends readonly number[]>(place: T, pitch: number | undefined): T {
  if (pitch === undefined) return place;
  const line = place.at(-1)!;
  return [...place.slice(0, -2), Math.floor(line / pitch), line % pitch] as unknown as T;
}

/** A result's tiles, numbered. */
export interface TileNumbers {
  readonly count: number;
  /** The number of the tile that has an output; its place begins so many coordinates on. */
  of(place: readonly number[], first?: number): number;
}

/** Numbers the tiles of a result of so many places along its spatial axes. */
export function tileNumbers(
  sizes: readonly number[],
  { tile, pitch }: ResultTiles,
): TileNumbers {
  const extents = sizes.map((_, d) => tile[d] ?? 1);
  const counts = tiledSizes(sizes, pitch).map((size, d) => Math.ceil(size / extents[d]!));
  const line = pitch === undefined ? Infinity : counts.length - 1;
  return {
    count: counts.reduce((all, one) => all * one, 1),
    // No copies: it is called for each of millions of outputs.
    of(place, first = 0) {
      let number = 0;
      for (let d = 0; d < counts.length; d++) {
        const own = place[first + d]!;
        const at = d < line - 1 ? own : d < line ? 0 : place[first + d - 1]! * pitch! + own;
        number = number * counts[d]! + Math.floor(at / extents[d]!);
      }
      return number;
    },
  };
}
