/** The accuracy gate for results that others computed. */
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { caseChecks } from "../run/case_checks.ts";
import { type Checked, yardstickOf } from "../run/check.ts";
import type { HostData, HostOperands, Subject } from "../run/subject.ts";
import type { Way } from "./claimed_tiles.ts";
import { type Claim, type ClaimedCase, parseClaims } from "./claims.ts";

/** What errors that `auto` ascribes to an arithmetic are of its usual ones, at least. */
const USUAL_SHARE = 0.1;

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
  { arithmetic, results, seed = 1, onProgress }: VerifyOptions,
): Promise<Verified> {
  const claims = parseClaims(arithmetic, claimedCase(subject, operands, results));
  const checks = caseChecks(
    { subject, operands, mode: "auto", seed, ...(onProgress ? { onProgress } : {}) },
    false,
  );
  const tried = new Set<string>();
  const failed = new Map<string, FailedWay>();
  let nearest: Verified | undefined;
  for (const [at, { name, ways }] of claims.entries()) {
    for (const way of ways) {
      const key = JSON.stringify(way.arithmetic);
      if (tried.has(key)) continue;
      tried.add(key);
      const kind = orderless(way);
      const reference = await checks.reference();
      const rms = () => yardstickOf(reference, way.arithmetic).sample.rms;
      const other = failed.get(kind);
      if (other !== undefined && isHopeless(other, rms())) continue;
      const checked = await checks.check({ result, arithmetic: way.arithmetic });
      const verified = { ...checked, arithmetic: way.name, rounding: way.arithmetic };
      if (checked.verdict !== "fail") {
        if (at === 0) return verified;
        // What is coarser yet explains it no better.
        return explains(checked) ? explained(verified, name, claims) : nearest!;
      }
      if (other === undefined) failed.set(kind, { share: shareOf(verified), rms: rms() });
      // Of `auto` what the finest arithmetic allows is said.
      if (at > 0) continue;
      if (nearest === undefined || shareOf(verified) < shareOf(nearest)) nearest = verified;
    }
  }
  return nearest!;
}

/** What the ways of a claim depend on. */
function claimedCase(
  subject: Subject,
  operands: HostOperands,
  results: VerifyOptions["results"],
): ClaimedCase {
  const { exact, asked, length } = subject;
  return {
    exact,
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
function explains({ accuracy: { rel_l2, rel_l2_typical } }: Checked): boolean {
  return !(rel_l2 < USUAL_SHARE * rel_l2_typical);
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
