/**
 * Points of interpolation by α = n + r − 1, "±p" being p and −p: those with the least simulated error of all sets
 * of 0, ∞ and pairs of ±{1/4, 1/3, 1/2, 2/3, 3/4, 1, 4/3, 3/2, 2, 3, 4}, over all F(n,r) of one α; of sets within
 * 4 % the one with the fewest instructions. No F(n,r) would gain a quarter by points of its own.
 */
const POINTS: Readonly<Record<number, string>> = {
  3: "0 1 inf",
  4: "0 ±1 inf",
  5: "0 ±3/4 3/2 inf",
  6: "0 ±3/4 ±4/3 inf",
  7: "0 ±1 ±1/2 4 inf",
  8: "0 ±1 ±1/2 ±2 inf",
  9: "0 ±1 ±3/4 ±3 1/4 inf",
  10: "0 ±1/2 ±3/4 ±4/3 ±3 inf",
  11: "0 ±1 ±1/2 ±3/2 ±3 1/4 inf",
  12: "0 ±1 ±1/4 ±3/4 ±3/2 ±3 inf",
  13: "0 ±1 ±1/2 ±3/4 ±3/2 ±3 1/4 inf",
  14: "0 ±1/2 ±2 ±3/4 ±4/3 ±1/3 ±3 inf",
  15: "0 ±1 ±1/2 ±2 ±1/4 ±4 ±3/4 3/2 inf",
  16: "0 ±1 ±1/2 ±2 ±1/4 ±4 ±3/4 ±4/3 inf",
};

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
