/** What is wrong with a result that failed, and where. */
import { defined } from "../defined.ts";
import type { GemmInputs } from "../reference/gemm.ts";
import { computeReference } from "../run/check.ts";
import { referenceInputs } from "../run/conv_subject.ts";
import { type HostData, type HostOperands, isIntegral, type Subject } from "../run/subject.ts";
import { elementCount } from "../tensor/tensor.ts";
import { byteHypotheses } from "./byte_hypotheses.ts";
import { axisNames, convHypotheses } from "./conv_hypotheses.ts";
import { convCase } from "./conv_variants.ts";
import { gemmHypotheses, PRODUCT_NAMES } from "./gemm_hypotheses.ts";
import { bestMatch, type Hypothesis, type Match } from "./hypothesis.ts";
import { sampledOutputs, spread } from "./sampled_outputs.ts";
import { type Verified, type VerifyOptions, verifySubject } from "./verify.ts";
import { whereText, wrongOutputs } from "./wrong_outputs.ts";

/** A result that failed. */
export interface FailedResult extends Omit<VerifyOptions, "onProgress"> {
  readonly subject: Subject;
  readonly operands: HostOperands;
  readonly result: HostData;
  readonly verified: Verified;
}

/** What is known of a fault. */
export interface Diagnosis {
  /** `12 of 96 outputs are wrong: all in channel 3`. */
  readonly where: string;
  /** What the result is in place of what it should be, where that is known. */
  readonly match?: Match;
  /** Whether only wrong outputs match. */
  readonly partly: boolean;
  /** The arithmetic that errs as the result does, where another one is claimed. */
  readonly arithmetic?: string;
  /** Canonical flat index of the output that is wrong most. */
  readonly worst?: number;
}

/** Results of so many products are compared completely to find out where they are wrong. */
const WHOLE_PRODUCTS = 1e10;
/** What rounding errs by at most, and the share of outputs that it makes wrong at least, if any. */
const ROUNDED = { relL2: 0.05, share: 0.02 };
/** Outputs that hypotheses are tried on, wrong ones and any, and multiply-adds of one hypothesis. */
const TRIED = { wrong: 192, any: 64, products: 2e6 };

/** Finds out where a result is wrong, and what it may be in place of what it should be. */
export async function diagnose(failed: FailedResult): Promise<Diagnosis> {
  const { subject, operands, result, seed = 1 } = failed;
  const { rounding, accuracy: { bound_limit: allowed } } = failed.verified;
  const products = elementCount(subject.shape) * subject.sums.length * subject.sums.cost;
  const mode = products <= WHOLE_PRODUCTS ? "full" : "sample";
  const reference = await computeReference({ subject, operands, mode, seed });
  const found = wrongOutputs(reference, result, rounding, allowed);
  const where = whereText(found, subject.shape, namesOf(subject));
  const { worst } = found;
  const room = Math.max(16, Math.floor(TRIED.products / Math.max(1, subject.sums.length)));
  const some = spread(found.wrong.length, Math.min(TRIED.wrong, room)).map((at) =>
    found.wrong[at]!
  );
  const tried = sampledOutputs(reference, result, Math.min(TRIED.any, room), some);
  const hypotheses = [
    ...await byteHypotheses(subject, operands, tried.indices),
    ...hypothesesOf(subject, operands),
  ];
  const whole = bestMatch(hypotheses, tried);
  const match = whole ?? bestMatch(hypotheses, sampledOutputs(reference, result, 0, some));
  // Roundings are of all outputs, and leave no zeros.
  const few = found.wrong.length > 0 &&
    (found.wrong.length < ROUNDED.share * found.checked || found.zeros === found.wrong.length);
  const arithmetic = match || few ? undefined : await otherArithmetic(failed);
  return { where, partly: whole === undefined, ...defined({ match, arithmetic, worst }) };
}

/** Another arithmetic than the one claimed that errs as the result does. */
async function otherArithmetic(
  { subject, operands, result, verified, arithmetic, results, seed = 1 }: FailedResult,
): Promise<string | undefined> {
  const { mismatched, rel_l2 } = verified.accuracy;
  if (
    isIntegral(subject) || arithmetic.trim() === "auto" || mismatched > 0 || rel_l2 > ROUNDED.relL2
  ) {
    return;
  }
  const options = { arithmetic: "auto", results, seed };
  const other = await verifySubject(subject, operands, result, options);
  return other.verdict === "pass" ? other.arithmetic : undefined;
}

/** A diagnosis as a sentence without its end. */
export function diagnosisText({ where, match, partly, arithmetic }: Diagnosis): string {
  if (arithmetic !== undefined) return `${where}; errors are those of ${arithmetic}`;
  if (match === undefined) return where;
  const { name, relL2 } = match;
  return `${where}; ${partly ? "there " : ""}the result matches with ${name}: relative L2 ${
    relL2.toExponential(1)
  }`;
}

function namesOf({ asked }: Subject): readonly string[] {
  return "conv" in asked ? axisNames(asked.conv) : PRODUCT_NAMES;
}

/** The hypotheses for a subject; none where operands have zero points or results are scaled. */
function hypothesesOf(
  { asked, activation, shape }: Subject,
  operands: HostOperands,
): readonly Hypothesis[] {
  if ("gemm" in asked) return gemmHypotheses(asked.gemm, operands as GemmInputs);
  const { problem, layout, filterLayout, integers, epilogue } = asked.conv;
  if (integers !== undefined || epilogue?.scale !== undefined) return [];
  const inputs = referenceInputs(problem, operands, { layout, filterLayout });
  const own = problem.op === "bwd-filter" ? filterLayout : layout;
  return convHypotheses(convCase(problem, inputs, shape, activation), own);
}
