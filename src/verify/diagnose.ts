/** What is wrong with a result that failed, and where. */
import { comparison } from "../accuracy/walk.ts";
import { defined } from "../defined.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import type { GemmInputs } from "../reference/gemm.ts";
import { computeReference, floorsOf, type Reference, resultStrides } from "../run/check.ts";
import { referenceInputs } from "../run/conv_subject.ts";
import { type HostData, type HostOperands, isIntegral, type Subject } from "../run/subject.ts";
import { elementCount } from "../tensor/tensor.ts";
import {
  axisNames,
  byteHypotheses,
  convCase,
  convHypotheses,
  exchangedGroups,
} from "./conv_hypotheses.ts";
import { gemmHypotheses, PRODUCT_NAMES } from "./gemm_hypotheses.ts";
import {
  bestMatch,
  type Hypothesis,
  type Match,
  type SampledOutputs,
  sampledOutputs,
  shifted,
  spread,
} from "./hypothesis.ts";
import { type Verified, type VerifyOptions, verifySubject } from "./verify.ts";

/** A result that failed. */
interface FailedResult extends Omit<VerifyOptions, "onProgress"> {
  readonly subject: Subject;
  readonly operands: HostOperands;
  readonly result: HostData;
  readonly verified: Verified;
}

/** What is known of a fault. */
interface Diagnosis {
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
  const there = whole ?? bestMatch(hypotheses, sampledOutputs(reference, result, 0, some));
  const match = there ?? bestMatch(fittedHypotheses(subject, operands, tried), tried);
  // Roundings are of all outputs, and leave no zeros.
  const few = found.wrong.length > 0 &&
    (found.wrong.length < ROUNDED.share * found.checked || found.zeros === found.wrong.length);
  const arithmetic = match || few ? undefined : await otherArithmetic(failed);
  return {
    where,
    partly: whole === undefined && there !== undefined,
    ...defined({ match, arithmetic, worst }),
  };
}

/** Groups that were exchanged, and values that were added along an axis, where biases are. */
function fittedHypotheses(
  subject: Subject,
  operands: HostOperands,
  tried: SampledOutputs,
): readonly Hypothesis[] {
  const { asked, shape } = subject;
  const axes = "gemm" in asked ? [1, 2] : asked.conv.problem.op === "fwd" ? [1] : [];
  const known = caseOf(subject, operands);
  return [
    ...(known === undefined ? [] : exchangedGroups(known, tried)),
    ...axes.map((axis) => shifted(tried, shape, axis, namesOf(subject)[axis]!)),
  ];
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

/** The hypotheses for a subject. */
function hypothesesOf(subject: Subject, operands: HostOperands): readonly Hypothesis[] {
  const { asked } = subject;
  if ("gemm" in asked) return gemmHypotheses(asked.gemm, operands as GemmInputs);
  const { problem: { op }, layout, filterLayout } = asked.conv;
  const known = caseOf(subject, operands);
  if (known === undefined) return [];
  return convHypotheses(known, op === "bwd-filter" ? filterLayout : layout);
}

/** A convolution as a case; undefined where operands have zero points or results are scaled, and of products. */
function caseOf({ asked, activation, shape }: Subject, operands: HostOperands) {
  if ("gemm" in asked) return undefined;
  const { problem, layout, filterLayout, integers, epilogue } = asked.conv;
  if (integers !== undefined || epilogue?.scale !== undefined) return undefined;
  const inputs = referenceInputs(problem, operands, { layout, filterLayout }, epilogue);
  return convCase(problem, inputs, shape, activation);
}

/** Outputs that were compared, and those of them that are wrong. */
interface WrongOutputs {
  /** Canonical flat indices, ascending, of the wrong ones. */
  readonly wrong: readonly number[];
  /** The one that is off by most of its scale. */
  readonly worst?: number;
  /** How many were compared. */
  readonly checked: number;
  /** Of the wrong ones, those that are NaN or infinite where the reference is not, or the other way round. */
  readonly mismatched: number;
  /** Of the wrong ones, those that are 0. */
  readonly zeros: number;
  /** Along each canonical axis, its places that have wrong outputs, and how many of those. */
  readonly counts: readonly ReadonlyMap<number, number>[];
  /** Wrong ones at an end of a spatial axis that has more than ends. */
  readonly atBorder: number;
}

/**
 * Compares a result with its reference output by output.
 *
 * @param allowed Error over scale from which an output is wrong.
 */
function wrongOutputs(
  reference: Reference,
  result: HostData,
  arithmetic: PlanArithmetic,
  allowed: number,
): WrongOutputs {
  const { subject, shape, values } = reference;
  const compare = comparison(result, reference, {
    strides: resultStrides(subject),
    precision: subject.tolerance.precision(arithmetic),
    accumulationLength: subject.sums.length,
    activation: subject.activation,
    floors: floorsOf(reference, arithmetic),
  });
  const wrong: number[] = [];
  const counts = shape.map(() => new Map<number, number>());
  let mismatched = 0, zeros = 0, atBorder = 0, worst: number | undefined, most = 0;
  compare((at, index, y, _ref, error, scale) => {
    if (Number.isNaN(error)) mismatched++;
    else if (error === 0 || Math.abs(error) <= allowed * scale) return;
    wrong.push(index);
    if (y === 0) zeros++;
    const ratio = Number.isNaN(error) ? Infinity : Math.abs(error) / scale;
    if (ratio > most) [most, worst] = [ratio, index];
    at.forEach((place, axis) => counts[axis]!.set(place, (counts[axis]!.get(place) ?? 0) + 1));
    const atEnd = shape.some((size, axis) =>
      axis > 1 && size > 2 && (at[axis] === 0 || at[axis] === size - 1)
    );
    if (atEnd) atBorder++;
  });
  return {
    wrong,
    ...(worst === undefined ? {} : { worst }),
    checked: values.length,
    mismatched,
    zeros,
    counts,
    atBorder,
  };
}

/** Sizes whose multiples kernels cut a result at; what is behind the last one is a tail. */
const BLOCKS = [128, 64, 32, 16, 8, 4];

/**
 * Says where wrong outputs lie: `12 of 96 outputs are wrong, all of them in channel 3, rows 0 to 2`.
 *
 * @param names What an entry of each axis is called, in the singular.
 */
function whereText(
  { wrong, checked, mismatched, zeros, counts, atBorder }: WrongOutputs,
  shape: readonly number[],
  names: readonly string[],
): string {
  if (wrong.length === 0) {
    return `none of ${grouped(checked)} outputs is beyond its own limit`;
  }
  const places = shape.flatMap((size, axis) => placesText(counts[axis]!, size, names[axis]!));
  if (wrong.length > 1 && atBorder === wrong.length) places.push("at the border");
  const kind = zeros === wrong.length
    ? "0 where the reference is not"
    : mismatched === 0
    ? "wrong"
    : mismatched === wrong.length
    ? "NaN or infinite where the reference is not, or the other way round"
    : `wrong (${grouped(mismatched)} NaN or infinite, or not)`;
  return `${grouped(wrong.length)} of ${grouped(checked)} outputs ${
    wrong.length === 1 ? "is" : "are"
  } ${kind}` +
    (places.length === 0 ? "" : `: ${wrong.length === 1 ? "" : "all "}in ${places.join(", ")}`)
      .replace("in at the border", "at the border");
}

/** Where the wrong places of an axis are, if they are not all of it. */
function placesText(counts: ReadonlyMap<number, number>, size: number, name: string): string[] {
  const places = [...counts.keys()].sort((a, b) => a - b);
  const [first, last] = [places[0], places.at(-1)];
  if (first === undefined || last === undefined || places.length === size) return [];
  if (places.length === 1) return [`${name} ${first}`];
  if (last - first + 1 === places.length) {
    const block = last === size - 1 && BLOCKS.find((one) => first === size - 1 - (size - 1) % one);
    return [
      `${name}s ${first} to ${last}${block ? `, the tail behind a multiple of ${block}` : ""}`,
    ];
  }
  const step = places[1]! - first;
  if (step > 1 && places.length > 2 && places.every((place, i) => place === first + i * step)) {
    return [`${name}s ${first} to ${last} in steps of ${step}`];
  }
  return places.length <= 4 ? [`${name}s ${places.join(", ")}`] : [];
}

function grouped(count: number): string {
  return count.toLocaleString("en-US");
}
