import { median as medianOf, medianAbsoluteDeviation } from "./stats.ts";
import { formatMilliseconds } from "./format.ts";
import { leastP, rankTest } from "./ranks.ts";
import type { ReadCase, ReadTime } from "./record_schema.ts";

/** Whether one record is as fast as another. */
export type SpeedVerdict = "SAME" | "FASTER" | "SLOWER" | "AMBIGUOUS";

/** What {@linkcode speedChange} finds; `new` against `base`. */
export interface SpeedChange {
  readonly verdict: SpeedVerdict;
  /** Base time over new time: above 1 the new one is faster. `null` where a time is missing. */
  readonly speedup: number | null;
  /** Two-sided probability of the rank test, where it was made. */
  readonly p: number | null;
  /** Why the verdict is AMBIGUOUS. */
  readonly reason?: string;
}

/** Limits of {@linkcode speedChange}. */
export interface SpeedRule {
  /** Time ratio − 1 that counts as a regression. */
  readonly threshold: number;
  /** Time ratio − 1 by which two runs of one program differ anyhow. */
  readonly margin: number;
}

/** {@linkcode SpeedRule.margin} unless told. */
export const USUAL_MARGIN = 0.02;
/** {@linkcode SpeedRule.threshold} unless told. */
export const USUAL_THRESHOLD = 0.05;
/** A difference of ranks is significant below this probability. */
export const SIGNIFICANT = 0.01;
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
export function speedChange(base: ReadCase, next: ReadCase, rule: SpeedRule): SpeedChange {
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
export function usableTime({ time_ms: time, verdict }: ReadCase): ReadTime | null {
  const usable = time !== null && time.median > 0 && verdict !== "fail" && verdict !== "error";
  return usable ? time : null;
}

function unlikeConditions(base: ReadCase, next: ReadCase): string | undefined {
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

function clockOf({ time_ms: time }: ReadCase): string | undefined {
  const clock = time?.clock;
  return clock !== undefined && DEVICE_CLOCKS.includes(clock) ? DEVICE_CLOCKS[0] : clock;
}

/** From and to. */
export type Interval = readonly [low: number, high: number];

/** Where medians of such samples lie, in ms: the samples' median and {@linkcode NOISE_MADS} deviations on both sides. */
export function noiseInterval({ samples }: Pick<ReadTime, "samples">): Interval {
  const centre = medianOf(samples);
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
