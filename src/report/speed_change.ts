import { erfc } from "../problem/erf.ts";
import { median, medianAbsoluteDeviation } from "./stats.ts";
import { formatMilliseconds } from "./format.ts";
import type { ReadCase, ReadTime } from "./record_schema.ts";

export type SpeedVerdict = "SAME" | "FASTER" | "SLOWER" | "AMBIGUOUS";

/** What a record says of its time. */
export type Timed = Pick<ReadCase, "time_ms" | "verdict" | "cache">;

export interface SpeedChange {
  readonly verdict: SpeedVerdict;
  /** Base time over new time: above 1 the new one is faster. `null` where a time is missing. */
  readonly speedup: number | null;
  /** Two-sided probability of the rank test, where it was made. */
  readonly p: number | null;
  readonly reason?: string;
}

export interface SpeedRule {
  /** Time ratio − 1 that counts as a regression. */
  readonly threshold: number;
  /** Time ratio − 1 by which two runs of one program differ anyhow. */
  readonly margin: number;
}

export const USUAL_MARGIN = 0.02;
export const USUAL_THRESHOLD = 0.05;
/** A difference of ranks is significant below this probability. */
const SIGNIFICANT = 0.01;
/** Noise interval: the median and this many median absolute deviations on both sides (2 σ of normal noise). */
export const NOISE_MADS = 3;

/**
 * Compares two records' times.
 *
 * - Medians within the margin are SAME.
 * - Beyond it, FASTER or SLOWER when both the rank test (p < 0.01) and the noise intervals (median ± 3 MAD,
 *   disjoint) say so.
 * - When neither says so, SAME up to the threshold: noise is the simplest explanation.
 * - Everything else is AMBIGUOUS with its reason: the two tests disagree, the noise hides a difference that
 *   would matter, there are no samples or too few, the clocks or the caches differ.
 */
export function speedChange(base: Timed, next: Timed, rule: SpeedRule): SpeedChange {
  const [a, b] = [usableTime(base), usableTime(next)];
  if (a === null || b === null) {
    const [which, { verdict }] = a === null ? ["the base", base] : ["the new record", next];
    const reason = `${which} ${verdict === "fail" ? "is wrong" : "has no time"}`;
    return { verdict: "AMBIGUOUS", speedup: null, p: null, reason };
  }
  const speedup = a.median / b.median;
  const p = a.samples.length > 0 && b.samples.length > 0 ? rankTest(a.samples, b.samples).p : null;
  const verdict = (verdict: SpeedVerdict, reason?: string): SpeedChange => ({
    verdict,
    speedup,
    p,
    ...(reason === undefined ? {} : { reason }),
  });
  const unlike = unlikeConditions(base, next);
  if (unlike !== undefined) return verdict("AMBIGUOUS", unlike);
  if (p === null) {
    const without = a.samples.length === 0 ? "the base" : "the new record";
    return verdict("AMBIGUOUS", `no samples in ${without}`);
  }
  if (leastP(a.samples.length, b.samples.length) >= SIGNIFICANT) {
    return verdict(
      "AMBIGUOUS",
      `too few samples to tell: ${a.samples.length} and ${b.samples.length}`,
    );
  }
  const difference = Math.max(speedup, 1 / speedup) - 1;
  if (difference <= Math.min(rule.margin, rule.threshold)) return verdict("SAME");
  const significant = p < SIGNIFICANT;
  const apart = disjoint(noiseInterval(a), noiseInterval(b));
  if (significant && apart) return verdict(speedup > 1 ? "FASTER" : "SLOWER");
  if (!significant && !apart && difference <= rule.threshold) return verdict("SAME");
  return verdict(
    "AMBIGUOUS",
    apart
      ? `the ranks overlap (p = ${p.toPrecision(2)})`
      : `the noise intervals overlap: ${printInterval(a)} and ${printInterval(b)}` +
        (significant ? "" : `, p = ${p.toPrecision(2)}`),
  );
}

/** The time of a record whose result counts. */
export function usableTime({ time_ms: time, verdict }: Timed): ReadTime | null {
  const usable = time !== null && time.median > 0 && verdict !== "fail" && verdict !== "error";
  return usable ? time : null;
}

/** What times were taken differently by, so that they cannot be compared; undefined where nothing is known. */
export function unlikeConditions(base: Timed, next: Timed): string | undefined {
  const compared: [what: string, a: string | undefined, b: string | undefined][] = [
    ["clocks", clockOf(base), clockOf(next)],
    ["caches", base.cache, next.cache],
  ];
  // What a record does not say is taken to be as the other's.
  const found = compared.find(([, a, b]) => a && b && a !== b);
  return found && `different ${found[0]}: ${found[1]} and ${found[2]}`;
}

/** Clocks of a device, which time the same: calls one after the other, without the host. */
const DEVICE_CLOCKS = ["timestamp", "CUDA events, calls of a graph"];

function clockOf({ time_ms: time }: Timed): string | undefined {
  const clock = time?.clock;
  return clock !== undefined && DEVICE_CLOCKS.includes(clock) ? DEVICE_CLOCKS[0] : clock;
}

export type Interval = readonly [low: number, high: number];

/** Where medians of such samples lie, in ms: the samples' median and {@linkcode NOISE_MADS} deviations on both sides. */
export function noiseInterval({ samples }: Pick<ReadTime, "samples">): Interval {
  const centre = median(samples);
  const reach = NOISE_MADS * medianAbsoluteDeviation(samples);
  return [centre - reach, centre + reach];
}

function disjoint(a: Interval, b: Interval): boolean {
  return a[1] < b[0] || b[1] < a[0];
}

function printInterval(time: ReadTime): string {
  const [low, high] = noiseInterval(time);
  return `${formatMilliseconds(Math.max(0, low))} to ${formatMilliseconds(high)}`;
}

interface RankTest {
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

/** A drop of less is within what runs differ by. */
const LEAST_DROP = 0.03;
const FEWEST = 9;
/** The probability below which halves of the samples are not of one distribution. */
const HALVES_DIFFER = 0.02;

/**
 * The share of its rate that a case lost while it was sampled: clocks that throttle, or another program. Undefined where its
 * second half of samples is not clearly slower than its first.
 */
export function slowdown(samples: readonly number[]): number | undefined {
  if (samples.length < FEWEST) return undefined;
  const half = samples.length >> 1;
  const [early, late] = [samples.slice(0, half), samples.slice(-half)];
  const drop = 1 - median(early) / median(late);
  return drop >= LEAST_DROP && rankTest(late, early).p < HALVES_DIFFER ? drop : undefined;
}
