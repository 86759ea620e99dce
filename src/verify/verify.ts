/** The accuracy gate for results that others computed. */
import { type Precision, stored } from "../accuracy/mod.ts";
import { defined } from "../defined.ts";
import type { OperandRounding, PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { caseChecks } from "../run/case_checks.ts";
import { type Checked, type Reference, resultStrides, yardstickOf } from "../run/check.ts";
import { type HostData, type HostOperands, isIntegral, type Subject } from "../run/subject.ts";
import { ROUNDINGS } from "../simulate/sum_source.ts";
import { type Claim, type ClaimedCase, parseClaims, type Way } from "./claims.ts";
import { exponentOf } from "../simulate/unit_sums.ts";
import { unravelIndex } from "../tensor/tensor.ts";
import { sampledOutputs } from "./hypothesis.ts";

/** Outputs that are looked at. */
const COUNT = 1024;
/** Fewer different ones say nothing. */
const FEWEST = 32;
/** So many right results have all their last bits 0 by no chance. */
const FEWEST_RESULTS = 16;
/** Results below this share of Σ|a||b| have last bits that rounding decides. */
const CANCELLED = 2 ** -8;
/** Errors below which operands are rounded to nothing that is known here. */
const LEAST_REL_L2 = 1e-6;
/** What rounded operands make at least, over Σ|a||b|, to be told from f32's sums. */
const LEAST_MADE = 2 ** -22;
/** What errors have of those that rounded operands make, about 1 or nearly nothing, and how sure that must be. */
const SHARE = { least: 0.7, most: 1.3, deviations: 8 };

/** Operands that are coarser than those of an arithmetic. */
const COARSER: Readonly<Record<OperandRounding, readonly OperandRounding[]>> = {
  f32: ["tf32", "tf32-truncated", "bf16"],
  tf32: ["bf16"],
  "tf32-truncated": ["bf16"],
  f16: ["bf16"],
  bf16: [],
};

/** What was found of a result, and the arithmetic that it was judged by. */
interface Judged extends Pick<Checked, "verdict" | "accuracy"> {
  readonly rounding: PlanArithmetic;
}

/**
 * What a result that passes shows of coarser roundings than its arithmetic has: a reason to fail; undefined of nothing.
 *
 * @param result As it lies in memory.
 */
async function coarserTrace(
  reference: Reference,
  result: HostData,
  verified: Judged,
): Promise<string | undefined> {
  const { subject, operands } = reference;
  if (isIntegral(subject) || verified.verdict !== "pass") return undefined;
  const outputs = sampledOutputs(reference, result, COUNT);
  const grain = coarserGrain(outputs, verified);
  if (grain !== undefined) return `all results are numbers of ${grain}`;
  const cut = cutResults(reference, outputs, verified);
  if (cut !== undefined) return `results are rounded toward zero, not to the nearest ${cut}`;
  const { rel_l2 } = verified.accuracy;
  const { operands: own = "f32", sums } = verified.rounding;
  if (sums === "f64" || !(rel_l2 >= LEAST_REL_L2)) return undefined;
  const indices = Float64Array.from(outputs.indices).sort();
  const order = outputs.indices.map((index, i) => [index, i] as const).sort(([a], [b]) => a - b);
  for (const kind of COARSER[own]) {
    const { values } = await subject.reference.of(roundedOperands(operands, kind), { indices });
    const over = order.map(([, i]) => 1 / outputs.magnitudes[i]!);
    // Of sums that cancel, what operands' rounding makes is no larger than that of sums.
    const errors = order.map(([, i], at) => (outputs.got[i]! - outputs.expected[i]!) * over[at]!);
    const made = order.map(([, i], at) => (values[at]! - outputs.expected[i]!) * over[at]!);
    if (rmsOf(made) > LEAST_MADE && isMadeOf(errors, made)) {
      return `errors are those of operands in ${WORDS[kind]}`;
    }
  }
  return undefined;
}

const WORDS: Readonly<Record<OperandRounding, string>> = {
  f32: "f32",
  tf32: "TF32",
  "tf32-truncated": "TF32, cut off",
  f16: "f16",
  bf16: "bf16",
};

/** The type that all results have which should be rounded otherwise. */
function coarserGrain(
  { got, expected, magnitudes }: ReturnType<typeof sampledOutputs>,
  { rounding: { results, sums } }: Judged,
): string | undefined {
  if (results === "bf16") return undefined;
  const kinds = results === "f16" || sums === "f64" ? ["bf16"] as const : ["bf16", "f16"] as const;
  const as = (result: Precision["result"], value: number) =>
    stored({ unitRoundoff: 0, smallestNormal: 0, result }, value);
  const own = results ?? (sums === "f64" ? "f64" : "f32");
  return kinds.find((kind) => {
    const coarse = (value: number) => as(kind, value) === value;
    // What is right in few bits says nothing, nor what is left of sums that cancel.
    const finer = expected.flatMap((value, i) =>
      coarse(as(own, value)) || Math.abs(value) < CANCELLED * magnitudes[i]! ? [] : [i]
    );
    const different = new Set(finer.map((i) => as(own, expected[i]!))).size;
    return different >= FEWEST_RESULTS && finer.every((i) => coarse(got[i]!));
  });
}

/** How far f32 sums of `length` products may be from the exact ones, over Σ|a||b|: more than any order errs, as units that cut do. */
function sumError(length: number): number {
  return (4 * Math.sqrt(length) + length / 4) * 2 ** -24;
}

/**
 * The 16-bit type to which all results are cut off. Only those count whose exact values lie so far beyond the middle of two numbers
 * that f32 sums cannot decide how they are rounded.
 */
function cutResults(
  { subject: { activation, sums: { length } } }: Reference,
  { got, expected, magnitudes }: ReturnType<typeof sampledOutputs>,
  { rounding: { results, sums, tiles, math } }: Judged,
): "f16" | "bf16" | undefined {
  if (results === undefined || sums === "f16" || tiles || math) {
    return undefined;
  }
  if (activation !== "none" && activation !== "relu") return undefined;
  const seen = new Set<number>();
  for (const [i, exact] of expected.entries()) {
    const size = Math.abs(exact);
    const nearest = stored({ unitRoundoff: 0, smallestNormal: 0, result: results }, size);
    const below = besides(nearest, false, results);
    const margin = sumError(length) * magnitudes[i]!;
    if (!Number.isFinite(nearest) || nearest - margin <= size) continue;
    if (size - margin <= (nearest + below) / 2) continue;
    if (Math.abs(got[i]!) >= nearest) return undefined;
    seen.add(exact);
  }
  return seen.size >= FEWEST ? results : undefined;
}

/** Operands of the products rounded; what is added stays. */
function roundedOperands(operands: HostOperands, kind: OperandRounding): HostOperands {
  const round = ROUNDINGS[kind];
  return Object.fromEntries(
    Object.entries(operands).map(([role, data]) => [
      role,
      ["input", "filter", "output", "a", "b"].includes(role)
        ? (data as Float64Array).map(round)
        : data,
    ]),
  );
}

function rmsOf(values: readonly number[]): number {
  const finite = values.filter(Number.isFinite);
  return Math.sqrt(finite.reduce((sum, value) => sum + value * value, 0) / finite.length);
}

/** Whether errors have other ones as a part of them, by regression on what these differ from their mean by. */
function isMadeOf(errors: readonly number[], made: readonly number[]): boolean {
  const known = made.keys().filter((i) => Number.isFinite(errors[i]! - made[i]!)).toArray();
  if (new Set(known.map((i) => made[i]!)).size < FEWEST) return false;
  const mean = (list: readonly number[]) =>
    known.reduce((sum, i) => sum + list[i]!, 0) / known.length;
  const [e, m] = [mean(errors), mean(made)];
  let products = 0, squares = 0, fourths = 0;
  for (const i of known) {
    const other = made[i]! - m;
    products += other * (errors[i]! - e);
    squares += other ** 2;
    fourths += other ** 4;
  }
  // Few large ones say no more than so few.
  if (squares ** 2 < FEWEST * fourths) return false;
  const share = products / squares;
  let spread = 0;
  for (const i of known) {
    const other = made[i]! - m;
    spread += (other * (errors[i]! - e - share * other)) ** 2;
  }
  const deviation = Math.sqrt(spread) / squares;
  return share > SHARE.least && share < SHARE.most && share > SHARE.deviations * deviation;
}

/** What errors that `auto` ascribes to an arithmetic are of its usual ones, at least. */
const USUAL_SHARE = 0.1;
/** The same of the median relative error, which data may make smaller: one wrong output is no rounding of all. */
const MEDIAN_SHARE = 0.01;

/** Errors of so many times their expected limit are of no other order of the same sums, whatever stands out by it. */
const HOPELESS = 3;
/** Orders whose errors differ by less are alike. */
const ALIKE = 1.05;

/** How a result is verified. */
export interface VerifyOptions {
  /** What it claims to be computed in, as `--arithmetic` has it. */
  readonly arithmetic: string;
  /** The type that the result's file has, where that is coarser than f32: the claim may say another. */
  readonly results?: "f16" | "bf16" | undefined;
  /** Of samples and projections; 1 where absent. */
  readonly seed?: number;
  /** Told how far the reference is. */
  readonly onProgress?: (fraction: number) => void;
}

/** What the gate makes of a result. */
export interface Verified extends Checked {
  /** The way of computing that explains it; of one that fails, that which comes nearest. */
  readonly arithmetic: string;
  /** How its sums are rounded. */
  readonly rounding: PlanArithmetic;
}

/**
 * Verifies a result by the ways that its claim allows: it passes if it errs by no more than one of them does on the same data. Its
 * order of summation is not known, so several are simulated.
 *
 * @param subject What is computed, of operands as they lie in memory.
 * @param result As it lies in memory.
 * @throws {TypeError} for an arithmetic that is none.
 */
export async function verifySubject(
  subject: Subject,
  operands: HostOperands,
  result: HostData,
  options: VerifyOptions,
): Promise<Verified> {
  const { claims, reference, check } = await checksOf(subject, operands, result, options);
  const tried = new Set<string>();
  let nearest: Verified | undefined;
  let traced = false;
  for (const [at, { name, ways }] of claims.entries()) {
    const others = ways.filter(({ arithmetic }) => !tried.has(JSON.stringify(arithmetic)));
    others.forEach(({ arithmetic }) => tried.add(JSON.stringify(arithmetic)));
    const passed = await checkWays(others, reference, check);
    if (passed === undefined) continue;
    const verified = withTrace(passed, await coarserTrace(reference, result, passed));
    traced ||= verified.verdict !== passed.verdict;
    // Of `auto` the finest arithmetic says why it fails.
    nearest ??= verified;
    if (verified.verdict === "fail") continue;
    if (at === 0) return verified;
    // What is coarser yet explains it no better.
    return explains(verified) ? explained(verified, name, claims) : nearest;
  }
  const [claim] = claims;
  // What shows coarser roundings than it may is of no other algorithm.
  if (claims.length > 1 || claim === undefined || traced || nearest?.verdict !== "fail") {
    return nearest!;
  }
  return await explainedUnrounded(claim, nearest, reference, result, check) ?? nearest;
}

/**
 * Verifies a result of 16 bits that passed as plain sums, which should have been exact, as one of tiles in f32: those libraries take
 * unasked.
 *
 * @returns What passes; undefined where tiles do not explain it.
 */
export async function verifyUnrounded(
  subject: Subject,
  operands: HostOperands,
  result: HostData,
  options: VerifyOptions,
  verified: Verified,
): Promise<Verified | undefined> {
  const { claims, reference, check } = await checksOf(subject, operands, result, options);
  const found = await explainedUnrounded(claims[0]!, verified, reference, result, check);
  return found?.verdict === "pass" ? found : undefined;
}

/** What a result claims, its reference, and what judges it by a way. */
async function checksOf(
  subject: Subject,
  operands: HostOperands,
  result: HostData,
  { arithmetic, results, seed = 1, onProgress }: VerifyOptions,
) {
  const claims = parseClaims(arithmetic, claimedCase(subject, operands, results));
  const checks = caseChecks(
    { subject, operands, mode: "auto", seed, ...(onProgress ? { onProgress } : {}) },
    false,
  );
  const check = async (
    { name, arithmetic }: Way,
    brief: boolean,
    of: HostData = result,
  ): Promise<Verified> => ({
    ...await checks.check({ result: of, arithmetic, brief }),
    arithmetic: name,
    rounding: arithmetic,
  });
  return { claims, reference: await checks.reference(), check };
}

/**
 * A result that fails passes where tiles in f32, rounded to 16 bits, may have made it: what stands before the rounding errs as they
 * do. Where exact results are 0, or sums are whole, these err and plain sums do not.
 */
async function explainedUnrounded(
  { name, unrounded, results }: Claim,
  failed: Verified,
  reference: Reference,
  result: HostData,
  check: (way: Way, brief: boolean, result: HostData) => Promise<Verified>,
): Promise<Verified | undefined> {
  if (unrounded.length === 0 || results === undefined || reference.indices) return undefined;
  const before = beforeRounding(reference, result, results);
  if (isScaled(reference, before)) return undefined;
  for (const way of unrounded) {
    const { verdict, accuracy } = await check(way, false, before);
    if (verdict !== "pass" || !(accuracy.of_limit <= UNROUNDED_SHARE)) continue;
    const message = `errors are those of ${way.name} in f32, rounded to ${results}`;
    const { operands } = failed.rounding;
    const rounding = { ...way.arithmetic, results, ...defined({ operands }) };
    const said = { arithmetic: `${name}, ${way.name}`, rounding };
    const limits = { ...failed.accuracy, of_limit: accuracy.of_limit };
    const explained = { ...failed, verdict: "pass", message, accuracy: limits, ...said } as const;
    return withTrace(explained, await coarserTrace(reference, result, explained));
  }
  return undefined;
}

/** Wrong outputs that say by what they are wrong: nearly all, by a share of what they should be that is as good as one. */
const SCALED = { fewest: 8, nearly: 0.8, least: 0.2, spread: 0.1 };

/** Whether outputs that are not the nearest are a multiple of what they should be: zeros, or negated. No rounding errs so. */
function isScaled(reference: Reference, before: Float64Array<ArrayBuffer>): boolean {
  const { got, expected } = sampledOutputs(reference, before, before.length);
  const shares = expected.flatMap((exact, i) => got[i] === exact ? [] : [got[i]! / exact - 1]);
  const middle = shares.toSorted((one, other) => one - other)[shares.length >> 1] ?? 0;
  const near = shares.filter((one) => Math.abs(one - middle) <= SCALED.spread * Math.abs(middle));
  return shares.length >= SCALED.fewest && Number.isFinite(middle) &&
    Math.abs(middle) >= SCALED.least && near.length >= SCALED.nearly * shares.length;
}

/** What errors of tiles may be of their limits, where plain sums do not explain a result. */
const UNROUNDED_SHARE = 0.5;

/** The values nearest to the exact ones that 16 bits round to a result: of the nearest number the exact one itself. */
function beforeRounding(
  { subject, values }: Reference,
  result: HostData,
  results: "f16" | "bf16",
): Float64Array<ArrayBuffer> {
  const strides = resultStrides(subject);
  const before = Float64Array.from(result);
  values.forEach((exact, index) => {
    const place = unravelIndex(index, subject.shape)
      .reduce((sum, at, axis) => sum + at * strides[axis]!, 0);
    const got = before[place]!;
    const edge = (got + besides(got, exact > got, results)) / 2;
    // Beyond the edge the exact value would round to another number.
    before[place] = exact > got ? Math.min(exact, edge) : Math.max(exact, edge);
  });
  return before;
}

/** Bits behind the first one, and the exponent of the smallest normal number. */
const FORMATS = { f16: { bits: 10, least: -14 }, bf16: { bits: 7, least: -126 } } as const;

/** The number of 16 bits next to one of them. */
function besides(value: number, above: boolean, results: "f16" | "bf16"): number {
  const { bits, least } = FORMATS[results];
  const exponent = Math.max(least, exponentOf(value));
  // Below a power of two numbers are closer.
  const inward = above !== value > 0 && exponent > least && Math.abs(value) === 2 ** exponent;
  const step = 2 ** (exponent - bits - (inward ? 1 : 0));
  return above ? value + step : value - step;
}

/**
 * Checks a result by one way after the other until one passes: first briefly, then with a closer look, those first that come nearest.
 *
 * @returns What the way says that passes, or comes nearest; undefined of no ways.
 */
async function checkWays(
  ways: readonly Way[],
  reference: Reference,
  check: (way: Way, brief: boolean) => Promise<Verified>,
): Promise<Verified | undefined> {
  const briefly: (readonly [Way, Verified])[] = [];
  for (const way of ways) {
    const verified = await check(way, true);
    if (verified.verdict !== "fail") return verified;
    briefly.push([way, verified]);
  }
  briefly.sort(([, one], [, other]) => shareOf(one) - shareOf(other));
  const failed = new Map<string, FailedWay>();
  let nearest = briefly[0]?.[1];
  for (const [way, brief] of briefly) {
    const { rms } = yardstickOf(reference, way.arithmetic).sample;
    const kind = orderless(way);
    const other = failed.get(kind);
    if (isFinal(brief) || (other !== undefined && isHopeless(other, rms))) continue;
    const verified = await check(way, false);
    if (verified.verdict !== "fail") return verified;
    if (other === undefined) failed.set(kind, { share: shareOf(verified), rms });
    if (nearest === brief || shareOf(verified) < shareOf(nearest!)) nearest = verified;
  }
  return nearest;
}

/** A result that passes but shows coarser roundings than it claims fails. */
function withTrace(verified: Verified, trace: string | undefined): Verified {
  return trace === undefined ? verified : { ...verified, verdict: "fail", message: trace };
}

/** Whether no closer look at outputs could help: they are NaN, or sums of all of them are wrong. */
function isFinal({ accuracy: { mismatched }, projection }: Verified): boolean {
  if (mismatched > 0) return true;
  if (projection === undefined) return false;
  const { max_ratio, limit, patch_rms, patch_limit } = projection;
  return !(max_ratio <= limit && patch_rms <= patch_limit);
}

/** What the ways of a claim depend on. */
function claimedCase(
  subject: Subject,
  operands: HostOperands,
  results: VerifyOptions["results"],
): ClaimedCase {
  const { asked, sums: { length } } = subject;
  return {
    exact: isIntegral(subject),
    results,
    problem: "conv" in asked ? asked.conv.problem : undefined,
    length,
    added: subject.operands.some(({ role }) => role === "bias" || role === "c"),
    wide: Object.values(operands).some((data) => data instanceof Float64Array),
  };
}

/**
 * Whether errors are as large as an arithmetic's usually are: a fault is none of its roundings because these are so much larger.
 */
function explains({ accuracy: { rel_l2, rel_l2_typical, median_rel } }: Checked): boolean {
  return !(rel_l2 < USUAL_SHARE * rel_l2_typical) &&
    !(median_rel !== null && median_rel < MEDIAN_SHARE * rel_l2_typical);
}

/** A result that `auto` explains by other arithmetic than the finest. */
function explained(verified: Verified, name: string, claims: readonly Claim[]): Verified {
  const finer = claims.slice(0, claims.findIndex((claim) => claim.name === name));
  const said = `errors are those of ${name}, not of ${finer.map((claim) => claim.name).join(", ")}`;
  const message = [...(verified.message === undefined ? [] : [verified.message]), said].join("; ");
  return { ...verified, message };
}

/** A way that failed: its largest figure as a share of the limit, and what it usually errs by. */
interface FailedWay {
  readonly share: number;
  readonly rms: number;
}

/**
 * Whether another order of the same sums would fail as well: by far, or for the same reason where orders matter as little as they do
 * beside rounded operands.
 */
function isHopeless({ share, rms }: FailedWay, other: number): boolean {
  const expected = share * rms / other;
  if (!Number.isFinite(expected)) return false;
  return expected > HOPELESS || (expected > ALIKE && Math.abs(rms / other - 1) < ALIKE - 1);
}

/** What ways have in common that differ in the order of sums alone. */
function orderless(
  { arithmetic: { operands, sums, tiles, transformed, results, math } }: Way,
): string {
  return JSON.stringify({ operands, sums, tiles, transformed, results, math });
}

/** The largest figure as a share of its limit, infinite where there is no number. */
function shareOf({ accuracy: { of_limit } }: Verified): number {
  return Number.isNaN(of_limit) ? Infinity : of_limit;
}
