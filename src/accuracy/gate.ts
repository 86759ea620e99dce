import { ERROR_CEILING } from "../problem/error_bound.ts";
import type { ErrorGroup } from "./groups.ts";
import {
  CLOSER,
  differentErrors,
  erringShare,
  LEAST_GROUP,
  lookCloser,
  mostOfOrders,
  RMS,
  rmsLimit,
  rmsLimitOfOrders,
  sampleLimit,
  shareOf,
  singleLimit,
  standOut,
  worstGroup,
} from "./limits.ts";
import type { Measured } from "./measure.ts";
import type { Precision } from "./precision.ts";
import type { ErrorStatistics, Yardstick } from "./yardstick.ts";

/** The share of outputs too small to be seen from which on it is said. */
const TINY_SHARE = 0.01;

/** Half a unit of the last place of f16's subnormal numbers. */
const LEAST_HALF = 2 ** -25;

/** Why a result without an element has no verdict. */
export const EMPTY_RESULT = "the result is empty";

/** Why nothing can be said of results that show no fault; empty where something can. */
function untested(
  { report, unbounded, padded }: Measured,
  sample: ErrorStatistics,
): string[] {
  const { checked, total, nan } = report;
  if (total === 0) return [EMPTY_RESULT];
  if (checked === 0) return ["no output was compared"];
  if (nan === checked) {
    const why = padded > 0
      ? "as the reference has it, or as padding makes it"
      : "as the reference's are";
    return [`every output is NaN, ${why}: nothing was compared`];
  }
  if (unbounded > 0) {
    return [`no bound is known of ${unbounded} of ${checked} outputs: their Σ|a||b| is not finite`];
  }
  return Number.isFinite(sample.rms) && Number.isFinite(sample.typical)
    ? []
    : ["no bound is known: errors of simulated arithmetic are not finite"];
}

/** What should be known of infinities that are right. */
function infinityNotes({ report, overflow }: Measured, precision: Precision): string[] {
  const { checked, nan, inf } = report;
  if (overflow.count > 0) return [overflowText(overflow, checked, precision)];
  return nan + inf === checked && inf > 0
    ? [`no output is finite: ${inf} infinite and ${nan} NaN are as in the reference`]
    : [];
}

/** What should be known of NaN that the reference has not. */
function paddedNotes({ report: { checked }, padded }: Measured): string[] {
  return padded === 0 ? [] : [
    `${padded} of ${checked} outputs are NaN where padding meets NaN or an infinity: ` +
    "its zeros are multiplied, which the reference leaves out",
  ];
}

/** What should be known of outputs so small that a zero in their place passes: flushed, or rounded to the last place of f16. */
function tinyNotes(
  { report: { checked, nan, inf }, flushed, upTo }: Measured,
  { result }: Precision,
  limit: number,
): string[] {
  const size = Math.max(flushed, result === "f16" ? limit * LEAST_HALF : 0);
  const count = upTo(size);
  return count <= TINY_SHARE * (checked - nan - inf) ? [] : [
    `${count} of ${checked} outputs are hardly checked: up to ${figure(size)} ${result} ` +
    "rounds or flushes them, and a zero in their place passes",
  ];
}

/** Names what overflowed, and why: finite sums that the results' dtype cannot hold. */
function overflowText(
  { count, largest }: Measured["overflow"],
  checked: number,
  { result }: Precision,
): string {
  const mend = result === "f16"
    ? "; results in f32 hold it, and so do gradients of a smaller loss scale"
    : "";
  return `${count} of ${checked} outputs overflow ${result} to infinity: the reference reaches ` +
    `${figure(largest)}${mend}`;
}

/** A number of a few digits, as messages have it. */
function figure(value: number): string {
  return Number.isFinite(value) ? `${Number(value.toPrecision(3))}` : `${value}`;
}

/** What was allowed, and what stood out. Figures are over what simulated arithmetic typically shows. */
export interface Judgement {
  /** Whether nothing is beyond its limit; `none` where nothing can be said. */
  readonly verdict: "pass" | "fail" | "none";
  /** Each reason of a failure, or why nothing can be said, as a clause that can follow another. */
  readonly reasons: readonly string[];
  /** What should be known of results that pass, likewise: infinities that are right, outputs too small to be seen. */
  readonly notes: readonly string[];
  /** The largest error over its scale that was allowed. */
  readonly bound_limit: number;
  /** The 99.9th percentile of simulated errors over their scales. */
  readonly bound_typical: number;
  /** The relative L2 error that was allowed; infinite where references are all 0, and none can be measured. */
  readonly rel_l2_limit: number;
  /** The relative L2 error of simulated arithmetic. */
  readonly rel_l2_typical: number;
  /** The group that stands out most. */
  readonly worst_group: string | null;
  /** Its RMS over the simulated one. */
  readonly group_rms: number;
  /** What of that was allowed. */
  readonly group_rms_limit: number;
  /** The largest of all figures over what each was allowed: 1 fails. */
  readonly of_limit: number;
}

/** How a result is judged. */
export interface JudgeOptions {
  /**
   * The share of a limit of the sample from which something is looked at more closely: 1 where absent, which is all that a
   * verdict needs; with less, `of_limit` says how near to failing it was.
   */
  readonly closerFrom?: number;
}

/** Why results fail of sums that round nothing: whole numbers, or products that are 0. */
const MUST_BE_EXACT = "results must be exact: nothing is rounded";

/**
 * Whether results pass: their errors are compared with those of simulated arithmetic on the same data. What stands out is
 * simulated by itself before it fails, since data may be unlike in places that the sample missed (docs/accuracy.md, The gate).
 *
 * @param measured What {@linkcode measureAccuracy} made of the result.
 * @param yardstick Errors of simulated arithmetic on the same data.
 * @param precision As `measured` was measured by.
 */
export function judge(
  measured: Measured,
  yardstick: Yardstick,
  precision: Precision,
  { closerFrom = 1 }: JudgeOptions = {},
): Judgement {
  const { report, effective, normalError } = measured;
  const reasons: string[] = [];
  const notes = infinityNotes(measured, precision);
  if (report.mismatched > 0) {
    const things = report.mismatched === 1 ? "output is" : "outputs are";
    reasons.push(
      `${report.mismatched} ${things} NaN or infinite where the reference is not the same, ` +
        "or the other way round",
    );
  }
  let ofLimit = reasons.length > 0 ? Infinity : 0;
  const within = (value: number, limit: number) => {
    ofLimit = Math.max(ofLimit, shareOf(value, limit));
    return value <= limit;
  };
  const refuse = (what: string, value: number, limit: number) => {
    const reason = limit === 0
      ? MUST_BE_EXACT
      : `${what} ${figure(value)} is above ${figure(limit)}`;
    if (!reasons.includes(reason)) reasons.push(reason);
  };
  const above = (what: string, value: number, limit: number) => {
    if (!within(value, limit)) refuse(what, value, limit);
  };
  const { sample } = yardstick;
  const exact = sample.rms === 0;

  const { groups, weightedRms } = measured;
  let allowed = exact ? 0 : rmsLimit(sample, effective) * sample.rms;
  if (exact && weightedRms > 0 && reasons.length === 0) {
    const share = erringShare(yardstick, measured.erring(CLOSER.members), closerFrom);
    allowed = share === 0 ? weightedRms : weightedRms / share;
  } else if (weightedRms > closerFrom * allowed && reasons.length === 0) {
    // The sample may have missed the few outputs that most of the data's energy is in.
    const members = measured.weighty(CLOSER.members);
    const count = Math.min(effective, differentErrors(members));
    allowed = Math.max(
      allowed,
      lookCloser(
        yardstick,
        members,
        weightedRms,
        closerFrom,
        {
          own: (own) => rmsLimit(own, count) * own.rms,
          orders: (each) => rmsLimitOfOrders(each, sample, count),
          most: mostOfOrders(sample, count),
        },
      ),
    );
  }
  // What is wrong as a whole needs no closer look at its parts.
  const wrong = !(weightedRms <= allowed);
  const single = wrong
    ? sampleLimit(measured, yardstick)
    : singleLimit(measured, yardstick, closerFrom);
  if (report.mismatched === 0) {
    if (single.offender === undefined) ofLimit = Math.max(ofLimit, single.ofLimit);
    else above("bound ratio", single.offender, single.limit);
  }

  if (!within(weightedRms, allowed)) {
    const relative = relativeLimit(allowed, measured);
    if (Number.isFinite(measured.relL2 + relative)) {
      refuse("relative L2 error", measured.relL2, relative);
    } else {
      refuse("RMS error over its scale", weightedRms, allowed);
    }
  }
  if (precision.result !== "i32") {
    const { result, ceiling = ERROR_CEILING[result] } = precision;
    above("error over the data's norm", normalError, ceiling);
  }

  const large = groups.filter(({ count }) => count >= LEAST_GROUP);
  const worst = worstGroup(large, sample);
  let groupLimit = worst === undefined ? RMS : rmsLimit(sample, worst.independent);
  const over = ({ rms }: ErrorGroup) => exact ? (rms > 0 ? Infinity : 0) : rms / sample.rms;
  if (reasons.length > 0 && worst !== undefined) {
    // Where it is that the result is wrong.
    above(`RMS error of ${worst.name} over the typical`, over(worst), exact ? 0 : groupLimit);
  } else {
    const standing = standOut(large, sample, closerFrom);
    if (standing.length === 0 && worst !== undefined) within(over(worst), groupLimit);
    for (const group of standing.slice(0, CLOSER.groups)) {
      if (exact) {
        const erring = measured.erring(CLOSER.members, group);
        if (within(erringShare(yardstick, erring, closerFrom), 1)) continue;
        above(`RMS error of ${group.name} over the typical`, over(group), 0);
        break;
      }
      const members = measured.members(group, CLOSER.members);
      const count = Math.min(group.independent, differentErrors(members));
      const limit = lookCloser(
        yardstick,
        members,
        group.rms,
        closerFrom,
        {
          own(own) {
            const tail = { ...own, kurtosis: Math.max(own.kurtosis, sample.kurtosis) };
            return rmsLimit(tail, count) * Math.max(own.rms, sample.rms);
          },
          orders: (each) => rmsLimitOfOrders(each, sample, count),
          most: mostOfOrders(sample, count),
        },
      );
      if (group === worst) groupLimit = limit / sample.rms;
      if (!within(group.rms, limit)) {
        above(`RMS error of ${group.name} over the typical`, over(group), limit / sample.rms);
        break;
      }
    }
  }
  const unsaid = reasons.length > 0 ? [] : untested(measured, sample);
  return {
    verdict: reasons.length > 0 ? "fail" : unsaid.length > 0 ? "none" : "pass",
    reasons: [...reasons, ...unsaid],
    notes: reasons.length + unsaid.length === 0
      ? [...notes, ...paddedNotes(measured), ...tinyNotes(measured, precision, single.limit)]
      : [],
    bound_limit: single.limit,
    bound_typical: sample.typical,
    rel_l2_limit: relativeLimit(allowed, measured),
    rel_l2_typical: relativeLimit(sample.rms, measured),
    worst_group: worst?.name ?? null,
    group_rms: worst === undefined || exact ? 0 : worst.rms / sample.rms,
    group_rms_limit: groupLimit,
    of_limit: ofLimit,
  };
}

/** A limit of the RMS of errors over their scales as one of the relative L2 error, of all errors or of 0 where that is it. */
function relativeLimit(limit: number, { relL2, weightedRms, scaleNorm }: Measured): number {
  return limit === 0 ? 0 : limit === weightedRms ? relL2 : limit * scaleNorm;
}
