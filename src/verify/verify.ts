/** The accuracy gate for results that others computed. */
import { caseChecks } from "../run/case_checks.ts";
import type { Checked } from "../run/check.ts";
import type { HostData, HostOperands, Subject } from "../run/subject.ts";
import { parseClaim } from "./claims.ts";

/** How a result is verified. */
export interface VerifyOptions {
  /** What it claims to be computed in, as `--arithmetic` has it. */
  readonly arithmetic: string;
  /** Of samples and projections; 1 where absent. */
  readonly seed?: number;
  /** Told how far the reference is. */
  readonly onProgress?: (fraction: number) => void;
}

/** What the gate makes of a result. */
export interface Verified extends Checked {
  /** The way of computing that explains it; of one that fails, that which comes nearest. */
  readonly arithmetic: string;
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
  { arithmetic, seed = 1, onProgress }: VerifyOptions,
): Promise<Verified> {
  const ways = parseClaim(arithmetic);
  const checks = caseChecks(
    { subject, operands, mode: "auto", seed, ...(onProgress ? { onProgress } : {}) },
    false,
  );
  let nearest: Verified | undefined;
  for (const way of ways) {
    const checked = await checks.check({ result, arithmetic: way.arithmetic });
    const verified = { ...checked, arithmetic: way.name };
    if (checked.verdict !== "fail") return verified;
    if (nearest === undefined || shareOf(verified) < shareOf(nearest)) nearest = verified;
  }
  return nearest!;
}

/** The largest figure as a share of its limit, infinite where there is no number. */
function shareOf({ accuracy: { of_limit } }: Verified): number {
  return Number.isNaN(of_limit) ? Infinity : of_limit;
}
