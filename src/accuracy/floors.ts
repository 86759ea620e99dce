import type { ReferenceResult } from "../reference/reference.ts";
import { elementCount } from "../tensor/tensor.ts";
import type { Grouping } from "./groups.ts";

/** What Σ|a||b| of an output, by its canonical flat index, counts for at least. */
export type Floors = (index: number) => number;

/** From so many checked outputs on their mean square is that of all outputs beside them. */
const ENOUGH = 64;

/**
 * Of Winograd's outputs: √(mean of squares) of Σ|a||b| over the checked outputs of the same first two axes (image and
 * channel, or both channels of a filter's gradient). An output whose own products are tiny, or all 0 on padding, has the
 * rounding errors of its tile, whose transforms meet larger data. Where a sample has few of them, what the image and the
 * channel have each is taken together. 0 for plain sums.
 */
export function tileFloors(
  { shape, magnitudes, indices }: Pick<ReferenceResult, "shape" | "magnitudes" | "indices">,
  { tile }: Pick<Grouping, "tile">,
): Floors {
  if (tile.every((size) => size === 1)) return () => 0;
  const [outer = 1, inner = 1] = shape;
  const area = elementCount(shape.slice(2));
  const slices = meanSquares(outer * inner);
  const [rows, columns, all] = [meanSquares(outer), meanSquares(inner), meanSquares(1)];
  for (let i = 0; i < magnitudes.length; i++) {
    const magnitude = magnitudes[i]!;
    if (!Number.isFinite(magnitude)) continue;
    const slice = Math.floor((indices?.[i] ?? i) / area);
    slices.add(slice, magnitude);
    rows.add(Math.floor(slice / inner), magnitude);
    columns.add(slice % inner, magnitude);
    all.add(0, magnitude);
  }
  const floors = Float64Array.from({ length: outer * inner }, (_, slice) => {
    if (indices === undefined || slices.count(slice) >= Math.min(ENOUGH, area)) {
      return slices.root(slice);
    }
    const mean = all.root(0);
    const row = rows.root(Math.floor(slice / inner)), column = columns.root(slice % inner);
    return mean === 0 ? 0 : row / mean * column;
  });
  return (index) => floors[Math.floor(index / area)]!;
}

/** Roots of the means of squares, of several kinds of numbers. */
function meanSquares(kinds: number) {
  const squares = new Float64Array(kinds);
  const counts = new Float64Array(kinds);
  return {
    add(kind: number, value: number): void {
      squares[kind]! += value * value;
      counts[kind]!++;
    },
    count: (kind: number) => counts[kind]!,
    root: (kind: number) => Math.sqrt(squares[kind]! / Math.max(1, counts[kind]!)),
  };
}
