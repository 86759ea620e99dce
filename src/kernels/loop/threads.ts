/** How the threads of a workgroup, or of one of its slices, lie on a tile of results. */
export interface ThreadGrid {
  /** Threads along rows and columns. */
  readonly rows: number;
  readonly columns: number;
  /** Threads of a warp along rows and columns, of which the grid is whole ones; absent where the grid is none. */
  readonly warp?: readonly [number, number] | undefined;
  /** Whether threads lie in pairs ({@linkcode threadPlace}), or row by row. */
  readonly paired: boolean;
}

/**
 * Declares `{prefix}x` and `{prefix}y`, the place of a thread on the grid: neighbours lie one below the other, and such pairs side
 * by side, as in CUTLASS's `RowMajorInterleaved<2>`. An NVIDIA GPU brings vectors of four to half a warp at once where each thread
 * wants what its neighbour does, or what the next but one does, and to a quarter where not: here a row
 * is the next but one's, a column the neighbour's. Of up to two columns that holds row by row, and an odd number of rows (of a warp,
 * or of the grid where there are none) lies so too.
 */
export function threadPlace(
  { rows, columns, warp, paired }: ThreadGrid,
  thread: string,
  prefix: string,
  [lane, warpIndex] = ["lane", "warp"],
): string {
  const [high, wide] = warp ?? [rows, columns];
  const place = (of: string) =>
    paired && high % 2 === 0 && wide > 2
      ? [`${of} / 2u % ${wide}u`, `${of} / ${2 * wide}u * 2u + ${of} % 2u`]
      : [`${of} % ${wide}u`, `${of} / ${wide}u`];
  if (warp === undefined) {
    const [x, y] = place(thread);
    return `let ${prefix}x = ${x};\nlet ${prefix}y = ${y};`;
  }
  const warps = columns / wide;
  const [x, y] = place(lane);
  return [
    `let ${lane} = ${thread} % 32u;`,
    `let ${warpIndex} = ${thread} / 32u;`,
    `let ${prefix}x = (${warpIndex} % ${warps}u) * ${wide}u + ${x};`,
    `let ${prefix}y = (${warpIndex} / ${warps}u) * ${high}u + ${y};`,
  ].join("\n");
}

/**
 * Declares `ay{i}` and `bx{j}`: the vectors of both tiles that a thread multiplies, of which neighbours have
 * neighbouring ones.
 *
 * @param bFirst WGSL of B's first vector in a row of its tile, where A lies before it.
 */
export function fragmentPlaces(
  { rows, columns }: Pick<ThreadGrid, "rows" | "columns">,
  aFragments: number,
  bFragments: number,
  bFirst?: string,
): string {
  const of = (count: number, text: (i: number) => string) =>
    Array.from({ length: count }, (_, i) => text(i));
  const b = bFirst === undefined ? "tx" : `${bFirst} + tx`;
  return [
    ...of(aFragments, (i) => `  let ay${i} = ty + ${i * rows}u;`),
    ...of(bFragments, (j) => `  let bx${j} = ${b} + ${j * columns}u;`),
  ].join("\n");
}
