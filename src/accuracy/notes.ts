/** What a judgement says in words beside its figures. */
import type { Measured } from "./measure.ts";
import type { Precision } from "./precision.ts";
import type { ErrorStatistics } from "./yardstick.ts";

/** The share of outputs too small to be seen from which on it is said. */
const TINY_SHARE = 0.01;

/** Half a unit of the last place of f16's subnormal numbers. */
const LEAST_HALF = 2 ** -25;

/** Why a result without an element has no verdict. */
export const EMPTY_RESULT = "the result is empty";

/** Why nothing can be said of results that show no fault; empty where something can. */
export function untested(
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
export function infinityNotes({ report, overflow }: Measured, precision: Precision): string[] {
  const { checked, nan, inf } = report;
  if (overflow.count > 0) return [overflowText(overflow, checked, precision)];
  return nan + inf === checked && inf > 0
    ? [`no output is finite: ${inf} infinite and ${nan} NaN are as in the reference`]
    : [];
}

/** What should be known of NaN that the reference has not. */
export function paddedNotes({ report: { checked }, padded }: Measured): string[] {
  return padded === 0 ? [] : [
    `${padded} of ${checked} outputs are NaN where padding meets NaN or an infinity: ` +
    "its zeros are multiplied, which the reference leaves out",
  ];
}

/** What should be known of outputs so small that a zero in their place passes: flushed, or rounded to the last place of f16. */
export function tinyNotes(
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
    ? "; --out-dtype f32 holds it, and so do gradients of a smaller --loss-scale"
    : "";
  return `${count} of ${checked} outputs overflow ${result} to infinity: the reference reaches ` +
    `${figure(largest)}${mend}`;
}

/** A number of a few digits, as messages have it. */
export function figure(value: number): string {
  return Number.isFinite(value) ? `${Number(value.toPrecision(3))}` : `${value}`;
}
