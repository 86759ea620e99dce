/** How the threads of a workgroup, or of one of its slices, lie on a tile of results. */
export interface ThreadGrid {
  /** Threads along rows and columns. */
  readonly rows: number;
  readonly columns: number;
  /** Threads of a warp along rows and columns; absent where threads lie row by row. */
  readonly warp?: readonly [number, number] | undefined;
}

/** Declares `{prefix}x` and `{prefix}y`, the place of a thread on the grid. */
export function threadPlace(
  { columns, warp }: ThreadGrid,
  thread: string,
  prefix: string,
  [lane, warpIndex] = ["lane", "warp"],
): string {
  if (warp === undefined) {
    return `let ${prefix}x = ${thread} % ${columns}u;\nlet ${prefix}y = ${thread} / ${columns}u;`;
  }
  const warps = columns / warp[1];
  return [
    `let ${lane} = ${thread} % 32u;`,
    `let ${warpIndex} = ${thread} / 32u;`,
    `let ${prefix}x = (${warpIndex} % ${warps}u) * ${warp[1]}u + ${lane} % ${warp[1]}u;`,
    `let ${prefix}y = (${warpIndex} / ${warps}u) * ${warp[0]}u + ${lane} / ${warp[1]}u;`,
  ].join("\n");
}

/**
 * Declares `ay{i}` and `bx{j}`: the vectors of both tiles that a thread multiplies, of which neighbours have
 * neighbouring ones.
 *
 * @param bFirst WGSL of B's first vector in a row of its tile, where A lies before it.
 */
export function fragmentPlaces(
  { rows, columns }: ThreadGrid,
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
