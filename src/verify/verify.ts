/** The accuracy gate for results that others computed. */
import { defined } from "../defined.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { caseChecks } from "../run/case_checks.ts";
import { type Checked, type Reference, yardstickOf } from "../run/check.ts";
import { type HostData, type HostOperands, isIntegral, type Subject } from "../run/subject.ts";
import { type Claim, type ClaimedCase, parseClaims, type Way } from "./claims.ts";
import { coarserTrace, type Trace } from "./traces.ts";
import { beforeRounding, isScaled } from "./unrounded.ts";

/** What errors that `auto` ascribes to an arithmetic are of its usual ones, at least. */
const USUAL_SHARE = 0.1;
/** The same of the median relative error, which data may make smaller: one wrong output is no rounding of all. */
const MEDIAN_SHARE = 0.01;

/** Errors of so many times their expected limit are of no other order of the same sums, whatever stands out by it. */
const HOPELESS = 3;
/** Errors of so many times the limit of a sample are no roundings of outputs that it missed (none of 1,600 right ones needed a look). */
const FAR = 100;
/** The same of single outputs beside others that are the nearest: no closer look at tiles, which takes seconds, explains more. */
const STRAY = 10;
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
    const claimed = claims.slice(at).flatMap((claim) => claim.ways.map((way) => way.arithmetic));
    const trace = await coarserTrace(reference, result, passed, claimed);
    const verified = withTrace(passed, trace);
    if (trace?.final) {
      const other = trace.tiles
        ? await explainedUnrounded(claims[at]!, verified, reference, result, check, STRAY)
        : undefined;
      return other ?? verified;
    }
    traced ||= trace !== undefined;
    // Of `auto` the finest arithmetic says why it fails.
    nearest ??= verified;
    if (verified.verdict === "fail") continue;
    if (at === 0) return verified;
    // What is coarser yet explains it no better.
    if (explains(verified)) return explained(verified, name, claims);
    break;
  }
  const [claim] = claims;
  // What shows coarser roundings than it may is of no other algorithm.
  if (claim === undefined || traced || nearest?.verdict !== "fail") return nearest!;
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
 *
 * @param most What errs by more of the limits of a sample fails without a closer look.
 */
async function explainedUnrounded(
  { name, unrounded, results }: Claim,
  failed: Verified,
  reference: Reference,
  result: HostData,
  check: (way: Way, brief: boolean, result: HostData) => Promise<Verified>,
  most = FAR,
): Promise<Verified | undefined> {
  if (unrounded.length === 0 || results === undefined || reference.indices) return undefined;
  const before = beforeRounding(reference, result, results);
  if (isScaled(reference, before)) return undefined;
  for (const way of unrounded) {
    if (isFar(await check(way, true, before), most)) continue;
    const { verdict, accuracy } = await check(way, false, before);
    if (verdict !== "pass") continue;
    const message = `errors are those of ${way.name} in f32, rounded to ${results}`;
    const { operands } = failed.rounding;
    const rounding = { ...way.arithmetic, results, ...defined({ operands }) };
    const said = { arithmetic: `${name}, ${way.name}`, rounding };
    const limits = { ...failed.accuracy, of_limit: accuracy.of_limit };
    const explained = { ...failed, verdict: "pass", message, accuracy: limits, ...said } as const;
    return withTrace(explained, await coarserTrace(reference, result, explained, []));
  }
  return undefined;
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
    if (isFinal(brief) || isFar(brief)) continue;
    if (other !== undefined && isHopeless(other, rms)) continue;
    const verified = await check(way, false);
    if (verified.verdict !== "fail") return verified;
    if (other === undefined) failed.set(kind, { share: shareOf(verified), rms });
    if (nearest === brief || shareOf(verified) < shareOf(nearest!)) nearest = verified;
  }
  return nearest;
}

/** A result that passes but shows coarser roundings than it claims fails. */
function withTrace(verified: Verified, trace: Trace | undefined): Verified {
  return trace === undefined ? verified : { ...verified, verdict: "fail", message: trace.text };
}

/** Whether no closer look at outputs could help: they are NaN, or sums of all of them are wrong. */
function isFinal({ accuracy: { mismatched }, projection }: Verified): boolean {
  if (mismatched > 0) return true;
  if (projection === undefined) return false;
  const { max_ratio, limit, patch_rms, patch_limit } = projection;
  return !(max_ratio <= limit && patch_rms <= patch_limit);
}

/** Whether outputs err by far more than any closer look allows: of tiles it takes a minute. */
function isFar(verified: Verified, most = FAR): boolean {
  const share = shareOf(verified);
  return Number.isFinite(share) && share > most;
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
