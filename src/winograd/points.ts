import { POINTS } from "./point_table.ts";

/** Largest number of points for which there are transforms. */
export const MAX_ALPHA = 16;

/**
 * Points of interpolation of F(n,r) in the order of the transforms' rows: "0", "1", "-1", "1/2", ..., "inf".
 * None where n or r is 1, since nothing is interpolated there.
 */
export function interpolationPoints(n: number, r: number): readonly string[] {
  if (n === 1 || r === 1) return [];
  const text = POINTS[n + r - 1];
  if (text === undefined) {
    throw new RangeError(`Cannot choose points of F(${n},${r}): there are none for ${n + r - 1}`);
  }
  return expandPoints(text);
}

/** `"0 ±1 1/2 inf"` → `["0", "1", "-1", "1/2", "inf"]` */
function expandPoints(text: string): string[] {
  return text.split(" ").flatMap((point) =>
    point.startsWith("±") ? [point.slice(1), `-${point.slice(1)}`] : [point]
  );
}
