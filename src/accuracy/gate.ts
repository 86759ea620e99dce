import { ERROR_CEILING } from "../problem/error_bound.ts";
import type { ErrorGroup } from "./groups.ts";
import type { Measured } from "./measure.ts";
import type { Precision } from "./precision.ts";
import type { ErrorStatistics } from "./statistics.ts";
import type { Yardstick } from "./yardstick.ts";

/** What was allowed, and what stood out. Figures are over what simulated arithmetic typically shows. */
export interface Judgement {
  readonly verdict: "pass" | "fail";
  /** Each reason of a failure, as a clause that can follow another. */
  readonly reasons: readonly string[];
  /** The largest error over its scale that was allowed, and the 99.9th percentile of simulated ones. */
  readonly bound_limit: number;
  readonly bound_typical: number;
  /** The relative L2 error that was allowed, and the simulated one. */
  readonly rel_l2_limit: number;
  readonly rel_l2_typical: number;
  /** The group that stands out most, its RMS over the simulated one, and what of that was allowed. */
  readonly worst_group: string | null;
  readonly group_rms: number;
  readonly group_rms_limit: number;
  /** The largest of all figures over what each was allowed: 1 fails. */
  readonly of_limit: number;
}

/** Times the 99.9th percentile of simulated errors that a single output may reach. */
const SINGLE = 7;
/** Times the 99.9th percentile of its own channel's, where that stands out. */
const CHANNEL = 4;
/** Times the largest error of an output (and of its tile) in a dozen simulated orders. */
const OWN = 3;
/** Times the simulated RMS that a group's may reach, and the whole result's. */
const RMS = 2.5;
/** How many standard deviations an RMS of few outputs may lie above that. */
const NOISE = 5;
/** Outputs and groups that are looked at more closely, worst first. */
const CLOSER = { outputs: 12, channels: 32, groups: 48, members: 1024 };
/** So few different errors are judged as single ones, where errors are spread: not all of one size, as of constant data. */
const FEW = 3;
const SPREAD = 2;
/** Smaller groups say less than their outputs one by one. */
const LEAST_GROUP = 32;

/** What an RMS of `count` independent errors may reach, over the simulated one. */
export function rmsLimit({ kurtosis }: ErrorStatistics, count: number): number {
  return RMS + NOISE * Math.sqrt(Math.max(0.1, kurtosis - 1) / (4 * Math.max(1, count)));
}

/**
 * Whether results pass: their errors are compared with those of simulated arithmetic on the same data. What stands out is
 * simulated by itself before it fails, since data may be unlike in places that the sample missed.
 */
export function judge(
  measured: Measured,
  yardstick: Yardstick,
  precision: Precision,
): Judgement {
  const { report, scaleNorm, effective, normalError } = measured;
  const reasons: string[] = [];
  const compared = report.checked - report.nan - report.inf - report.mismatched;
  if (report.mismatched > 0) {
    const things = report.mismatched === 1 ? "output is" : "outputs are";
    reasons.push(
      `${report.mismatched} ${things} NaN or infinite where the reference is not the same, ` +
        "or the other way round",
    );
  } else if (compared <= 0) {
    reasons.push("no finite output was checked");
  }
  let ofLimit = reasons.length > 0 ? Infinity : 0;
  const above = (what: string, value: number, limit: number) => {
    if (value > 0) ofLimit = Math.max(ofLimit, value / limit);
    if (!(value <= limit)) reasons.push(`${what} ${figure(value)} is above ${figure(limit)}`);
  };
  const { sample } = yardstick;
  const exact = sample.rms === 0;

  const { groups, relL2 } = measured;
  const single = singleLimit(measured, yardstick);
  if (report.mismatched === 0) {
    if (single.offender === undefined) ofLimit = Math.max(ofLimit, single.ofLimit);
    else above("bound ratio", single.offender, single.limit);
  }

  let allowed = exact ? 0 : rmsLimit(sample, effective) * sample.rms * scaleNorm;
  if (relL2 > allowed && reasons.length === 0) {
    // The sample may have missed the few outputs that most of the data's energy is in.
    const own = yardstick.of(measured.weighty(CLOSER.members));
    const limit = rmsLimit(own, Math.min(effective, CLOSER.members)) * own.rms;
    if (own.rms > 0) allowed = Math.max(allowed, limit * scaleNorm);
  }
  above("relative L2 error", relL2, allowed);
  if (precision.result !== "i32") {
    above("error over the data's norm", normalError, ERROR_CEILING[precision.result]);
  }

  const large = groups.filter(({ count }) => count >= LEAST_GROUP);
  const worst = worstGroup(large, sample);
  let groupLimit = worst === undefined ? RMS : rmsLimit(sample, worst.independent);
  const over = ({ rms }: ErrorGroup) => exact ? (rms > 0 ? Infinity : 0) : rms / sample.rms;
  if (reasons.length > 0 && worst !== undefined) {
    // Where it is that the result is wrong.
    above(`RMS error of ${worst.name} over the typical`, over(worst), groupLimit);
  } else {
    const standing = standOut(large, sample);
    if (standing.length === 0 && worst !== undefined) {
      ofLimit = Math.max(ofLimit, over(worst) / groupLimit);
    }
    for (const group of standing.slice(0, CLOSER.groups)) {
      const members = measured.members(group, CLOSER.members);
      const own = yardstick.of(members.map(({ index }) => index));
      // Equal errors, as constant data has them, are one.
      const distinct = new Set(members.map(({ error }) => error)).size;
      const tail = { ...own, kurtosis: Math.max(own.kurtosis, sample.kurtosis) };
      const limit = Math.max(
        rmsLimit(tail, Math.min(group.independent, distinct)) * Math.max(own.rms, sample.rms),
        distinct < FEW && sample.kurtosis > SPREAD
          ? CHANNEL * Math.max(own.typical, sample.typical)
          : 0,
      );
      if (group === worst && !exact) groupLimit = limit / sample.rms;
      if (limit > 0) ofLimit = Math.max(ofLimit, group.rms / limit);
      if (group.rms > limit) {
        above(
          `RMS error of ${group.name} over the typical`,
          over(group),
          exact ? 0 : limit / sample.rms,
        );
        break;
      }
    }
  }
  return {
    verdict: reasons.length === 0 ? "pass" : "fail",
    reasons,
    bound_limit: single.limit,
    bound_typical: sample.typical,
    rel_l2_limit: allowed,
    rel_l2_typical: exact ? 0 : sample.rms * scaleNorm,
    worst_group: worst?.name ?? null,
    group_rms: worst === undefined || exact ? 0 : worst.rms / sample.rms,
    group_rms_limit: groupLimit,
    of_limit: ofLimit,
  };
}

/**
 * What a single output's error may reach over its scale. Channels with one above what the sample allows are simulated by
 * themselves, all of them as far as that is affordable; what stands out of its own channel is simulated alone.
 */
function singleLimit(
  measured: Measured,
  yardstick: Yardstick,
): { limit: number; offender?: number; ofLimit: number } {
  const { outliers, groups, report } = measured;
  const { sample } = yardstick;
  let limit = SINGLE * sample.typical, ofLimit = 0;
  const most = report.max_bound_ratio;
  if (most <= limit) return { limit, ofLimit: most === 0 ? 0 : most / limit };
  const alone = (index: number, ratio: number, error: number | undefined) => {
    const own = yardstick.of([index]);
    return error === undefined ? ratio <= OWN * own.largest : error <= OWN * own.largestError;
  };
  const rows = groups.filter(({ isRow, largest }) => isRow && largest > limit)
    .sort((a, b) => b.largest - a.largest);
  const usual = limit;
  for (const row of rows.slice(0, CLOSER.channels)) {
    const members = measured.members(row, CLOSER.members);
    const own = yardstick.of(members.map(({ index }) => index));
    const allowed = Math.max(usual, CHANNEL * own.typical);
    if (row.largest <= allowed) {
      ofLimit = Math.max(ofLimit, row.largest / allowed);
    } else {
      const outlier = outliers.find(({ index }) => index === row.largestIndex);
      if (!alone(row.largestIndex, row.largest, outlier?.error)) {
        return { limit: allowed, offender: row.largest, ofLimit };
      }
      ofLimit = 1;
    }
    limit = Math.max(limit, row.largest);
  }
  // Without groups, or where outputs have no scale, outliers are looked at one by one.
  for (const { index, ratio, error } of outliers.slice(0, CLOSER.outputs)) {
    if (ratio <= limit) break;
    if (!alone(index, ratio, error)) return { limit, offender: ratio, ofLimit };
    limit = Math.max(limit, ratio);
  }
  return { limit, ofLimit };
}

/** The group that stands out most for its size. */
function worstGroup(groups: readonly ErrorGroup[], sample: ErrorStatistics) {
  let worst: ErrorGroup | undefined;
  let most = -1;
  for (const group of groups) {
    const over = group.rms / rmsLimit(sample, group.independent);
    if (over > most) [worst, most] = [group, over];
  }
  return worst;
}

/** Groups above what the sample allows, worst first. */
function standOut(groups: readonly ErrorGroup[], sample: ErrorStatistics) {
  const over = (group: ErrorGroup) =>
    group.rms / (rmsLimit(sample, group.independent) * sample.rms);
  return groups.filter((group) => over(group) > 1).sort((a, b) => over(b) - over(a));
}

function figure(value: number): string {
  return Number.isFinite(value) ? `${Number(value.toPrecision(3))}` : `${value}`;
}
