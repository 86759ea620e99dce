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
/** Times the largest error of an output (and of its tile) in a dozen simulated orders. */
const OWN = 3;
/** Times the simulated RMS that a group's may reach, and the whole result's. */
const RMS = 2.5;
/** How many standard deviations an RMS of few outputs may lie above that. */
const NOISE = 5;
/** Outputs and groups that are looked at more closely, worst first. */
const CLOSER = { outputs: 12, groups: 6, members: 1024 };

/** What an RMS of `count` independent errors may reach, over the simulated one. */
export function rmsLimit({ kurtosis }: ErrorStatistics, count: number): number {
  return RMS + NOISE * Math.sqrt(Math.max(0.5, kurtosis - 1) / (4 * Math.max(1, count)));
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
  const { report, outliers, scaleNorm, effective, normalError } = measured;
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

  const usual = SINGLE * sample.typical;
  const single = singleLimit(report.mismatched > 0 ? [] : outliers, usual, yardstick);
  const { unlike } = single;
  if (unlike) ofLimit = Math.max(ofLimit, single.ofLimit);
  else if (report.mismatched === 0) {
    above("bound ratio", report.max_bound_ratio, single.limit);
  }

  // Outputs that were found to be right by themselves do not count against the rest.
  const { relL2, groups } = unlike ? measured.below(usual) : measured;
  let allowed = exact ? 0 : rmsLimit(sample, effective) * sample.rms * scaleNorm;
  if (relL2 > allowed && reasons.length === 0 && !exact) {
    // The sample may have missed the few outputs that most of the data's energy is in.
    const own = yardstick.of(measured.weighty(CLOSER.members));
    const limit = rmsLimit(own, Math.min(effective, CLOSER.members)) * own.rms;
    allowed = Math.max(allowed, limit * scaleNorm);
  }
  above("relative L2 error", relL2, allowed);
  if (precision.result !== "i32") {
    above("error over the data's norm", normalError, ERROR_CEILING[precision.result]);
  }

  const worst = worstGroup(groups, sample);
  let groupLimit = worst === undefined ? RMS : rmsLimit(sample, worst.independent);
  if (!exact && reasons.length > 0 && worst !== undefined) {
    // Where it is that the result is wrong.
    above(`RMS error of ${worst.name} over the typical`, worst.rms / sample.rms, groupLimit);
  } else if (!exact) {
    const standing = standOut(groups, sample);
    if (standing.length === 0 && worst !== undefined) {
      ofLimit = Math.max(ofLimit, worst.rms / sample.rms / groupLimit);
    }
    for (const group of standing.slice(0, CLOSER.groups)) {
      const members = measured.members(group, CLOSER.members);
      const own = yardstick.of(members);
      const limit = rmsLimit(own, Math.min(group.independent, members.length)) *
        Math.max(own.rms, sample.rms) / sample.rms;
      if (group === worst) groupLimit = limit;
      above(`RMS error of ${group.name} over the typical`, group.rms / sample.rms, limit);
    }
  }
  return {
    verdict: reasons.length === 0 ? "pass" : "fail",
    reasons,
    bound_limit: single.limit,
    bound_typical: sample.typical,
    rel_l2_limit: unlike && relL2 <= allowed ? Math.max(allowed, report.rel_l2) : allowed,
    rel_l2_typical: exact ? 0 : sample.rms * scaleNorm,
    worst_group: worst?.name ?? null,
    group_rms: worst === undefined || exact ? 0 : worst.rms / sample.rms,
    group_rms_limit: groupLimit,
    of_limit: ofLimit,
  };
}

/** What a single output's error may reach over its scale: more where outputs that stand out do so when simulated too. */
function singleLimit(
  outliers: Measured["outliers"],
  usual: number,
  yardstick: Yardstick,
): { limit: number; unlike: boolean; ofLimit: number } {
  const offenders = outliers.filter(({ ratio }) => !(ratio <= usual));
  let limit = usual, ofLimit = 0;
  for (const { index, ratio, error } of offenders.slice(0, CLOSER.outputs)) {
    const own = OWN * yardstick.of([index]).largestError;
    if (!(error <= own)) return { limit, unlike: false, ofLimit };
    limit = Math.max(limit, ratio);
    ofLimit = Math.max(ofLimit, error / own);
  }
  return { limit, unlike: offenders.length > 0, ofLimit };
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
