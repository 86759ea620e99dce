import { ERROR_CEILING } from "../problem/error_bound.ts";
import type { ErrorGroup } from "./groups.ts";
import type { GroupMember, Measured } from "./measure.ts";
import type { Precision } from "./precision.ts";
import type { ErrorStatistics } from "./statistics.ts";
import type { Yardstick } from "./yardstick.ts";

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

/** Times the 99.9th percentile of simulated errors that a single output may reach. */
const SINGLE = 7;
/** Times the 99.9th percentile of its own channel's, where that stands out. */
const CHANNEL = 4;
/** Times the largest error of an output (and of its tile) in a dozen simulated orders. */
const OWN = 3;
/** Times what is typical of the sample from which an output answers for itself, whatever its channel may: less than must be found. */
const ALONE = 19;
/** Times the simulated RMS that a group's may reach, and the whole result's. */
const RMS = 2.5;
/** How many standard deviations an RMS of few outputs may lie above that. */
const NOISE = 5;
/** Times the largest RMS of any one order. */
const ONE_ORDER = 1.5;
/** Times what is typical of the whole sample that an RMS may reach, whatever a second look says. */
const MOST = 3.8;
/** Outputs and groups that are looked at more closely, worst first. */
const CLOSER = { outputs: 12, channels: 32, groups: 48, members: 1024 };
/** Smaller groups say less than their outputs one by one. */
const LEAST_GROUP = 32;
/** The share of outputs too small to be seen from which on it is said. */
const TINY_SHARE = 0.01;

/** Half a unit of the last place of f16's subnormal numbers. */
const LEAST_HALF = 2 ** -25;

/** Why a result without an element has no verdict. */
export const EMPTY_RESULT = "the result is empty";

/** What an RMS of `count` independent errors may reach, over the simulated one. */
export function rmsLimit(errors: ErrorStatistics, count: number): number {
  return RMS + NOISE * rmsDeviation(errors, count);
}

/** The 99.9th percentile of an RMS of `count` independent errors, over the simulated one. */
export function typicalRms(errors: ErrorStatistics, count: number): number {
  return 1 + 3.1 * rmsDeviation(errors, count);
}

/** Standard deviation of the same. */
function rmsDeviation({ kurtosis }: ErrorStatistics, count: number): number {
  return Math.sqrt(Math.max(0.1, kurtosis - 1) / (4 * Math.max(1, count)));
}

/** How a result is judged. */
export interface JudgeOptions {
  /**
   * The share of a limit of the sample from which something is looked at more closely: 1 where absent, which is all that a
   * verdict needs; with less, `of_limit` says how near to failing it was.
   */
  readonly closerFrom?: number;
  /**
   * The relative L2 error that simulated arithmetic may typically show, where data may be unlike what a kernel's storage is
   * made for: limits that follow from larger ones tell nothing. None where absent.
   */
  readonly mostTypical?: number;
}

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
  { closerFrom = 1, mostTypical = Infinity }: JudgeOptions = {},
): Judgement {
  const { report, overflow, effective, normalError } = measured;
  const reasons: string[] = [];
  const notes = infinityNotes(measured, precision);
  const compared = report.checked - report.nan - report.inf - report.mismatched;
  if (report.mismatched > 0) {
    const things = report.mismatched === 1 ? "output is" : "outputs are";
    reasons.push(
      `${report.mismatched} ${things} NaN or infinite where the reference is not the same, ` +
        "or the other way round",
    );
  } else if (compared <= 0 && overflow.count > 0) {
    reasons.push(...notes);
  }
  let ofLimit = reasons.length > 0 ? Infinity : 0;
  const within = (value: number, limit: number) => {
    ofLimit = Math.max(ofLimit, shareOf(value, limit));
    return value <= limit;
  };
  const above = (what: string, value: number, limit: number) => {
    if (!within(value, limit)) reasons.push(`${what} ${figure(value)} is above ${figure(limit)}`);
  };
  const { sample } = yardstick;
  const exact = sample.rms === 0;

  const { groups, weightedRms } = measured;
  const single = singleLimit(measured, yardstick, closerFrom);
  if (report.mismatched === 0) {
    if (single.offender === undefined) ofLimit = Math.max(ofLimit, single.ofLimit);
    else above("bound ratio", single.offender, single.limit);
  }

  // Over what data's norm is made of, as the ceiling is: a result that cancels has larger errors over its own.
  const typical = normalError > 0 ? sample.rms * measured.scaleShare : 0;
  if (reasons.length === 0 && !within(typical, mostTypical)) {
    reasons.push(
      `transformed data in half the bytes errs by ${figure(typical)} of this data, above ` +
        `${figure(mostTypical)}: neighbours are too unlike, half-transforms must go`,
    );
  }

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
  if (!within(weightedRms, allowed)) {
    const relative = relativeLimit(allowed, measured);
    reasons.push(
      Number.isFinite(measured.relL2)
        ? `relative L2 error ${figure(measured.relL2)} is above ${figure(relative)}`
        : `RMS error over its scale ${figure(weightedRms)} is above ${figure(allowed)}`,
    );
  }
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

/** Why nothing can be said of results that show no fault; empty where something can. */
function untested({ report, unbounded, padded }: Measured, sample: ErrorStatistics): string[] {
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

/** A limit of the RMS of errors over their scales as one of the relative L2 error, of all errors or of 0 where that is it. */
function relativeLimit(limit: number, { relL2, weightedRms, scaleNorm }: Measured): number {
  return limit === 0 ? 0 : limit === weightedRms ? relL2 : limit * scaleNorm;
}

/** What a value is of its limit: 1 at most where it is within it, even where both are infinite. */
function shareOf(value: number, limit: number): number {
  if (value === 0) return 0;
  const share = value / limit;
  return Number.isNaN(share) ? (value <= limit ? 1 : Infinity) : share;
}

/** Names what overflowed, and why: finite sums that the results' dtype cannot hold. */
function overflowText(
  { count, largest }: Measured["overflow"],
  checked: number,
  { result }: Precision,
): string {
  return `${count} of ${checked} outputs overflow ${result} to infinity: the reference reaches ` +
    `${figure(largest)}, gradients take a smaller --loss-scale, or results --out-dtype f32`;
}

/**
 * What outputs that err where no output of the sample does have of what they may by their own simulation: few products of
 * halves are mostly exact, and an order may round where no other does. Few of them are judged one by one.
 */
function erringShare(
  yardstick: Yardstick,
  members: readonly GroupMember[],
  closerFrom: number,
): number {
  if (members.length < LEAST_GROUP) return 0;
  const rms = Math.sqrt(members.reduce((sum, { ratio }) => sum + ratio ** 2, 0) / members.length);
  const count = differentErrors(members);
  const limit = lookCloser(
    yardstick,
    members,
    rms,
    closerFrom,
    { own: (own) => rmsLimit(own, count) * own.rms, orders: ordersLimit },
  );
  return shareOf(rms, limit);
}

/** What some outputs may reach. */
interface CloserLimits {
  /** By their own simulation. */
  own(own: ErrorStatistics): number;
  /** By that in many orders; the most of what they may by each where absent. */
  orders?(each: readonly ErrorStatistics[]): number;
  /** In whatever order. */
  readonly most?: number;
}

/**
 * What some outputs may reach by their own simulation. Before they fail (from a share of the limit on, where that is asked
 * for) it is made again in many more orders: how errors vary is then seen, not inferred. Not where they err by more than the
 * most, which no order would allow: a minute of long sums (74 s of Conv2N128's gradient).
 */
function lookCloser(
  yardstick: Yardstick,
  members: readonly { readonly index: number }[],
  value: number,
  closerFrom: number,
  { own, orders = (each) => Math.max(0, ...each.map(own)), most = Infinity }: CloserLimits,
): number {
  const indices = members.map(({ index }) => index);
  const limit = own(yardstick.of(indices));
  return value <= closerFrom * limit || value > most
    ? limit
    : Math.max(limit, orders(yardstick.again(indices)));
}

/** What an RMS may reach that was simulated in several orders: {@linkcode rmsLimit} with the deviation they show. */
function ordersLimit(each: readonly ErrorStatistics[]): number {
  if (each.length === 0) return 0;
  const mean = (of: (one: ErrorStatistics) => number) =>
    each.reduce((sum, one) => sum + of(one), 0) / each.length;
  const average = mean(({ rms }) => rms);
  const deviation = Math.sqrt(mean(({ rms }) => (rms - average) ** 2));
  const rms = Math.sqrt(mean((one) => one.rms ** 2));
  const largest = Math.max(...each.map((one) => one.rms));
  return Math.max(RMS * rms + NOISE * deviation, ONE_ORDER * largest);
}

/** The same, and no more than {@linkcode mostOfOrders}. */
function rmsLimitOfOrders(
  each: readonly ErrorStatistics[],
  sample: ErrorStatistics,
  count: number,
): number {
  return Math.min(ordersLimit(each), mostOfOrders(sample, count));
}

/** {@linkcode MOST} times what is typical of the RMS of `count` errors of the whole sample. */
function mostOfOrders(sample: ErrorStatistics, count: number): number {
  return MOST * sample.rms * typicalRms(sample, count);
}

/** Equal errors, as constant data has them, are one. */
function differentErrors(members: readonly GroupMember[]): number {
  return new Set(members.map(({ error }) => error)).size;
}

/**
 * What a single output's error may reach over its scale. Channels with one above what the sample allows are simulated by
 * themselves, all of them as far as that is affordable; what stands out of its own channel is simulated alone.
 */
function singleLimit(
  measured: Measured,
  yardstick: Yardstick,
  closerFrom: number,
): { limit: number; offender?: number; ofLimit: number } {
  const { outliers, groups, report } = measured;
  const { sample } = yardstick;
  let limit = SINGLE * sample.typical, ofLimit = 0;
  const most = report.max_bound_ratio;
  const usual = closerFrom * limit;
  if (most <= usual) return { limit, ofLimit: most === 0 ? 0 : most / limit };
  /** The share of what the output may reach by its own simulation. */
  const alone = (index: number, ratio: number, error: number | undefined) => {
    const value = error ?? ratio;
    const allowed = lookCloser(
      yardstick,
      [{ index }],
      value,
      closerFrom,
      { own: (own) => OWN * (error === undefined ? own.largest : own.largestError) },
    );
    return shareOf(value, allowed);
  };
  const rows = groups.filter(({ isRow, largest }) => isRow && largest > usual)
    .sort((a, b) => b.largest - a.largest);
  for (const row of rows.slice(0, CLOSER.channels)) {
    const members = measured.members(row, CLOSER.members);
    // What is beyond is looked at alone, whatever its channel allows.
    const most = sample.typical > 0 ? ALONE * sample.typical : Infinity;
    const closer = lookCloser(yardstick, members, row.largest, closerFrom, {
      own: ({ typical }) => CHANNEL * typical,
      most,
    });
    const allowed = Math.max(limit, closer);
    const answers = Math.min(allowed, most);
    let share = shareOf(row.largest, allowed);
    if (row.largest > answers) {
      const outlier = outliers.find(({ index }) => index === row.largestIndex);
      share = alone(row.largestIndex, row.largest, outlier?.error);
      if (!(share <= 1)) return { limit: answers, offender: row.largest, ofLimit };
    }
    ofLimit = Math.max(ofLimit, share);
    limit = Math.max(limit, row.largest);
  }
  // Without groups, or where outputs have no scale, outliers are looked at one by one.
  for (const { index, ratio, error } of outliers.slice(0, CLOSER.outputs)) {
    if (ratio <= limit) break;
    const share = alone(index, ratio, error);
    if (!(share <= 1)) return { limit, offender: ratio, ofLimit };
    ofLimit = Math.max(ofLimit, share);
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

/** Groups above a share of what the sample allows, worst first. */
function standOut(groups: readonly ErrorGroup[], sample: ErrorStatistics, from: number) {
  const over = (group: ErrorGroup) =>
    group.rms / (rmsLimit(sample, group.independent) * sample.rms);
  return groups.filter((group) => over(group) > from).sort((a, b) => over(b) - over(a));
}

function figure(value: number): string {
  return Number.isFinite(value) ? `${Number(value.toPrecision(3))}` : `${value}`;
}
