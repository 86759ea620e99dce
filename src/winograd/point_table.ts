/**
 * Points of F(n,r), by n + r − 1, found by measured error.
 */
export const POINTS: Readonly<Record<string | number, string>> = {
  3: "0 1 inf",
  4: "0 ±1 inf",
  5: "0 ±3/4 3/2 inf",
  6: "0 ±2/3 ±3/2 inf",
  7: "0 ±1 ±1/2 4 inf",
  8: "0 ±1 ±1/2 ±2 inf",
  9: "0 ±1 ±3/4 ±3 1/4 inf",
  10: "0 ±2 ±3/4 ±4/3 ±1/3 inf",
  11: "0 ±1 ±1/2 ±3/2 ±3 1/4 inf",
  12: "0 ±1 ±1/4 ±3/4 ±3/2 ±3 inf",
  13: "0 ±1 ±1/2 ±3/4 ±3/2 ±3 1/4 inf",
  14: "0 ±1/2 ±2 ±3/4 ±4/3 ±1/3 ±3 inf",
  15: "0 ±1 ±2 ±1/2 ±4 ±1/4 ±3/4 4/3 inf",
  16: "0 ±1 ±2 ±1/2 ±4 ±1/4 ±3/4 ±4/3 inf",
};
