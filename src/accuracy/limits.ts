/** What errors may reach: limits from simulated arithmetic, and a closer look at what stands out. */
import type { ErrorGroup } from "./groups.ts";
import type { GroupMember, Measured } from "./measure.ts";
import type { ErrorStatistics, Yardstick } from "./yardstick.ts";

/** Times the 99.9th percentile of simulated errors that a single output may reach. */
const SINGLE = 7;
/** Times the 99.9th percentile of its own channel's, where that stands out. */
const CHANNEL = 4;
/** Times the largest error of an output (and of its tile) in a dozen simulated orders. */
const OWN = 3;
/** Times what is typical of the sample from which an output answers for itself, whatever its channel may: less than must be found. */
const ALONE = 19;
/** Times the simulated RMS that a group's may reach, and the whole result's. */
export const RMS = 2.5;
/** How many standard deviations an RMS of few outputs may lie above that. */
const NOISE = 5;
/** Times the largest RMS of any one order. */
const ONE_ORDER = 1.5;
/** Times what is typical of the whole sample that an RMS may reach, whatever a second look says. */
const MOST = 3.8;
/** Outputs and groups that are looked at more closely, worst first. */
export const CLOSER = { outputs: 12, channels: 32, groups: 48, members: 1024 };
/** Smaller groups say less than their outputs one by one. */
export const LEAST_GROUP = 32;

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

/** What a value is of its limit: 1 at most where it is within it, even where both are infinite. */
export function shareOf(value: number, limit: number): number {
  if (value === 0) return 0;
  const share = value / limit;
  return Number.isNaN(share) ? (value <= limit ? 1 : Infinity) : share;
}

/**
 * What outputs that err where no output of the sample does have of what they may by their own simulation: few products of
 * halves are mostly exact, and an order may round where no other does. Few of them are judged one by one.
 */
export function erringShare(
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
export function lookCloser(
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
export function rmsLimitOfOrders(
  each: readonly ErrorStatistics[],
  sample: ErrorStatistics,
  count: number,
): number {
  return Math.min(ordersLimit(each), mostOfOrders(sample, count));
}

/** {@linkcode MOST} times what is typical of the RMS of `count` errors of the whole sample. */
export function mostOfOrders(sample: ErrorStatistics, count: number): number {
  return MOST * sample.rms * typicalRms(sample, count);
}

/** Equal errors, as constant data has them, are one. */
export function differentErrors(members: readonly GroupMember[]): number {
  return new Set(members.map(({ error }) => error)).size;
}

/**
 * What a single output's error may reach over its scale. Channels with one above what the sample allows are simulated by
 * themselves, all of them as far as that is affordable; what stands out of its own channel is simulated alone.
 */
export function singleLimit(
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

/** What a single output's error may reach by the sample alone. */
export function sampleLimit(
  { report: { max_bound_ratio: most } }: Measured,
  { sample }: Yardstick,
): ReturnType<typeof singleLimit> {
  const limit = SINGLE * sample.typical;
  const ofLimit = shareOf(most, limit);
  return most <= limit ? { limit, ofLimit } : { limit, offender: most, ofLimit };
}

/** The group that stands out most for its size. */
export function worstGroup(groups: readonly ErrorGroup[], sample: ErrorStatistics) {
  let worst: ErrorGroup | undefined;
  let most = -1;
  for (const group of groups) {
    const over = group.rms / rmsLimit(sample, group.independent);
    if (over > most) [worst, most] = [group, over];
  }
  return worst;
}

/** Groups above a share of what the sample allows, worst first. */
export function standOut(groups: readonly ErrorGroup[], sample: ErrorStatistics, from: number) {
  const over = (group: ErrorGroup) =>
    group.rms / (rmsLimit(sample, group.independent) * sample.rms);
  return groups.filter((group) => over(group) > from).sort((a, b) => over(b) - over(a));
}
