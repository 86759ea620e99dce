import erfc from "@stdlib/math-base-special-erfc";

/** What {@linkcode rankTest} finds. */
export interface RankTest {
  /** Mann and Whitney's U of the first sample: pairs in which its value is the larger, ties as halves. */
  readonly u: number;
  /** Two-sided probability of a U so far from its mean if both came from one distribution. */
  readonly p: number;
}

/** Up to this many pairs of values, and without ties, the probability is exact. */
const MOST_EXACT_PAIRS = 400;

/**
 * Two-sided Mann-Whitney rank test of two samples: exact for small samples without ties, else the normal
 * approximation, corrected for ties and continuity.
 *
 * @throws {RangeError} if a sample is empty.
 */
export function rankTest(a: readonly number[], b: readonly number[]): RankTest {
  if (a.length === 0 || b.length === 0) {
    throw new RangeError("Cannot test ranks: a sample is empty");
  }
  const pairs = a.length * b.length;
  let u = 0;
  for (const x of a) for (const y of b) u += x > y ? 1 : x === y ? 0.5 : 0;
  const ties = tieTerm([...a, ...b]);
  const p = ties === 0 && pairs <= MOST_EXACT_PAIRS
    ? 2 * exactTail(Math.min(u, pairs - u), a.length, b.length)
    : approximateP(Math.abs(u - pairs / 2), a.length, b.length, ties);
  return { u, p: Math.min(1, p) };
}

/** Least probability that samples of these sizes can show: that of a complete separation. */
export function leastP(n: number, m: number): number {
  let ways = 1;
  for (let i = 1; i <= n; i++) ways *= (m + i) / i;
  return Math.min(1, 2 / ways);
}

/** Σ(t³ − t) over groups of t equal values. */
function tieTerm(values: number[]): number {
  values.sort((x, y) => x - y);
  let sum = 0;
  for (let start = 0; start < values.length;) {
    let end = start + 1;
    while (end < values.length && values[end] === values[start]) end++;
    sum += (end - start) ** 3 - (end - start);
    start = end;
  }
  return sum;
}

/** P(U ≤ u): of all orders of n + m values, those with at most u pairs in which the first sample is larger. */
function exactTail(u: number, n: number, m: number): number {
  // Coefficients of the Gaussian binomial ∏ (1 − q^(m+i)) / (1 − q^i): orders by their U.
  const orders = new Float64Array(n * m + 1);
  orders[0] = 1;
  for (let i = 1; i <= n; i++) {
    for (let at = n * m; at >= m + i; at--) orders[at] = orders[at]! - orders[at - m - i]!;
    for (let at = i; at <= n * m; at++) orders[at] = orders[at]! + orders[at - i]!;
  }
  let tail = 0;
  let all = 0;
  orders.forEach((count, value) => {
    all += count;
    if (value <= u) tail += count;
  });
  return tail / all;
}

function approximateP(distance: number, n: number, m: number, ties: number): number {
  const size = n + m;
  const variance = n * m / 12 * (size + 1 - ties / (size * (size - 1)));
  if (variance <= 0) return 1;
  const z = Math.max(0, distance - 0.5) / Math.sqrt(variance);
  return erfc(z / Math.SQRT2);
}
