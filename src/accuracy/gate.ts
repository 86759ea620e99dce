import { activationRoundings, boundRatioLimit, type ErrorSource } from "../problem/error_bound.ts";
import type { Operation } from "../problem/conv_problem.ts";
import { noiseAllowance } from "./channels.ts";
import type { AccuracyReport } from "./report.ts";

/** What a correct kernel's errors stay below (docs/accuracy.md). */
export interface Gate {
  /** Limit of |y − ref| / (u · Σ|a||b|) of every output. */
  readonly maxBoundRatio: number;
  /** Limit of ‖y − ref‖ / ‖ref‖ ... */
  readonly maxRelL2: number;
  /** ... or, on data that cancels more than random signs do, of ‖y − ref‖ / ‖Σ|a||b|‖. */
  readonly maxMagnitudeL2: number;
  /** Limit of one channel's RMS over the median channel's, where each has many outputs. */
  readonly maxChannelRmsRatio: number;
  /** Errors of a channel that are independent, at most. */
  readonly independentErrors: number;
}

export interface GateOptions extends ErrorSource {
  /**
   * Of the accumulation: 2⁻²⁴ for f32. An amplification above 1 mixes outputs, as Winograd does, and the report is to be
   * made with `mixedReference`.
   */
  readonly unitRoundoff: number;
  /** Errors of a channel that are independent, at most: `independentErrors(op, length)` of Winograd; else all. */
  readonly independentErrors?: number;
}

/** Errors of the other operand's tiles make forward's and backward-data's more independent: by as much, measured. */
const TILES_APART = 4;

/**
 * Errors of a channel that are independent, of Winograd: its outputs share those of the channel's own transformed operand,
 * which has an element for each of an output's products. It is all that backward-filter has, where few tiles are summed.
 */
export function independentErrors(op: Operation, accumulationLength: number): number {
  return Math.max(1, accumulationLength) * (op === "bwd-filter" ? 1 : TILES_APART);
}

/** Of √L·u: healthy f32 kernels stay below 0.45. */
const L2_FACTOR = 1;
const CHANNEL_FACTOR = 2;
/**
 * Where channels are this unlike (positive data times signed filters; below 1.7 on data of one kind), what is known
 * of a channel's sums explains most of its errors, but not the way its partial sums took: that adds up to 1.3.
 */
const UNLIKE = 1.8;
const UNLIKE_FACTOR = 1.5;
/**
 * From this `condition` on, data cancels: partial sums wander, each output's in its own way, and so differ in
 * the variance of their errors. Their kurtosis is 7, of normal errors 3, so an RMS takes (7 − 1) / (3 − 1) as
 * many of them to be as sure.
 */
const CANCELLING = 1.5;
const CANCELLING_TAIL = 3;
/** The limits for one problem. */
export function gateFor(options: GateOptions): Gate {
  const { unitRoundoff, amplification = 1, activation = "none" } = options;
  const root = Math.sqrt(Math.max(1, options.accumulationLength));
  const extra = activationRoundings(activation);
  return {
    maxBoundRatio: boundRatioLimit(options),
    maxRelL2: (L2_FACTOR * root * amplification + extra) * unitRoundoff,
    maxMagnitudeL2: (L2_FACTOR * amplification + extra) * unitRoundoff,
    maxChannelRmsRatio: CHANNEL_FACTOR,
    independentErrors: options.independentErrors ?? Infinity,
  };
}

/** What `rel_l2` may reach on the data of `report`. */
export function relL2Limit(report: AccuracyReport, gate: Gate): number {
  return Math.max(gate.maxRelL2, gate.maxMagnitudeL2 * report.condition);
}

/** What `channel_rms_ratio` may reach: more where few outputs were checked, or the channels are unlike. */
export function channelRmsLimit(report: AccuracyReport, gate: Gate): number {
  // Transforms cancel even what is positive.
  const cancelling = report.condition > CANCELLING ||
    gate.independentErrors < report.worst_channel_checked;
  return Math.max(
    gate.maxChannelRmsRatio * (report.channel_unlikeness > UNLIKE ? UNLIKE_FACTOR : 1),
    noiseAllowance(
      Math.min(report.worst_channel_checked, gate.independentErrors),
      report.channels,
      cancelling ? CANCELLING_TAIL : 1,
    ),
  );
}

/** Whether the results pass, and each reason why not, as a clause that can follow another. */
export function judge(
  report: AccuracyReport,
  gate: Gate,
): { verdict: "pass" | "fail"; reasons: string[] } {
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
  const above = (what: string, value: number, limit: number) => {
    if (!(value <= limit)) reasons.push(`${what} ${figure(value)} is above ${figure(limit)}`);
  };
  if (report.mismatched === 0) {
    above("bound ratio", report.max_bound_ratio, gate.maxBoundRatio);
  }
  above("relative L2 error", report.rel_l2, relL2Limit(report, gate));
  above(
    `RMS error of channel ${report.worst_channel} over the median channel's`,
    report.channel_rms_ratio,
    channelRmsLimit(report, gate),
  );
  return { verdict: reasons.length === 0 ? "pass" : "fail", reasons };
}

function figure(value: number): string {
  return Number.isFinite(value) ? `${Number(value.toPrecision(3))}` : `${value}`;
}
