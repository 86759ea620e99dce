/**
 * Points of interpolation by α = n + r − 1, "±p" being p and −p: those with the least simulated error of all sets
 * of 0, ∞ and pairs of ±{1/4, 1/3, 1/2, 2/3, 3/4, 1, 4/3, 3/2, 2, 3, 4}, over all F(n,r) of one α; of sets within
 * 4 % the one with the fewest instructions. No F(n,r) would gain a quarter by points of its own.
 */
export const POINTS: Readonly<Record<number, string>> = {
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
