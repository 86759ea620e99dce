/** An axis of a problem that is walked row by row: sizes, and where the filter meets the input. */
export interface ClippedAxis {
  readonly input: number;
  readonly output: number;
  readonly filter: number;
  readonly paddingBegin: number;
  /** 1 where absent. */
  readonly stride?: number;
  /** 1 where absent. */
  readonly dilation?: number;
}

/**
 * Rows of ∇Y, from start to end (exclusive), that meet a row of X in filter row `fh`: those oh with
 * 0 <= oh·stride + fh·dilation − padding < input. Empty (start = end) where none does.
 */
export function clippedRows(axis: ClippedAxis, fh: number): readonly [start: number, end: number] {
  const { input, output, paddingBegin, stride = 1, dilation = 1 } = axis;
  const offset = fh * dilation - paddingBegin;
  const start = Math.min(output, Math.max(0, Math.ceil(-offset / stride)));
  const end = Math.min(output, Math.max(start, Math.ceil((input - offset) / stride)));
  return [start, end];
}

/** The share of pairs of filter row and row of ∇Y that is skipped: p(p + 1) / (F_H·O_H) at stride 1 and padding p on both sides. */
export function skippedShare(axis: ClippedAxis): number {
  let kept = 0;
  for (let fh = 0; fh < axis.filter; fh++) {
    const [start, end] = clippedRows(axis, fh);
    kept += end - start;
  }
  return 1 - kept / (axis.filter * axis.output);
}

/**
 * Rows of ∇Y that a filter row needs, where the rows of several axes (outermost first) are counted through: the
 * outermost is clipped, the zero rows of the inner ones are left to the loader's bounds check.
 *
 * @param filterRow From 0 to the product of the axes' filter sizes.
 */
export function clippedFilterRow(
  outer: readonly ClippedAxis[],
  filterRow: number,
): readonly [start: number, end: number] {
  const [outermost, ...inner] = outer;
  if (!outermost) return [0, 1];
  const innerFilters = inner.reduce((rows, { filter }) => rows * filter, 1);
  const innerRows = inner.reduce((rows, { output }) => rows * output, 1);
  const [start, end] = clippedRows(outermost, Math.floor(filterRow / innerFilters));
  return [start * innerRows, end * innerRows];
}
