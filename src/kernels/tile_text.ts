/** A tile's sizes as its name has them. */
export interface TileSizes {
  /** Rows (M), columns (N) and depth (K) of a workgroup. */
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  /** Results of a thread. */
  readonly threadRows: number;
  readonly threadColumns: number;
}

/**
 * Reads `64x32x8_8x4`; a thread has 8x8 results where that is left out. Undefined for
 * other text, and where a thread's results are no multiples of 4 that divide the workgroup's, or nothing is deep.
 */
export function parseTileSizes(text: string): TileSizes | undefined {
  const match = /^(\d+)x(\d+)x(\d+)(?:_(\d+)x(\d+))?$/.exec(text);
  if (match === null) return undefined;
  const [rows, columns, depth, threadRows, threadColumns] = match.slice(1, 6).map((part) =>
    part === undefined ? 8 : Number(part)
  ) as [number, number, number, number, number];
  const fits = (extent: number, thread: number) =>
    extent > 0 && thread > 0 && thread % 4 === 0 && extent % thread === 0;
  return depth > 0 && fits(rows, threadRows) && fits(columns, threadColumns)
    ? { rows, columns, depth, threadRows, threadColumns }
    : undefined;
}

/** `64x32x8_8x4`, as {@linkcode parseTileSizes} reads it. */
export function tileSizesText(
  { rows, columns, depth, threadRows, threadColumns }: TileSizes,
): string {
  return `${rows}x${columns}x${depth}_${threadRows}x${threadColumns}`;
}
