import {
  type Floors,
  judge,
  type Judgement,
  measureAccuracy,
  type Measured,
  sampleAlone,
  type Yardstick,
} from "../accuracy/mod.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import type { ReferenceResult } from "../reference/reference.ts";
import type { AccuracyRecord, ProjectionRecord, Verdict } from "../report/record.ts";
import { elementCount, rowMajorStrides } from "../tensor/tensor.ts";
import { type CheckMode, coverageOf, strataOf } from "./coverage.ts";
import type { HostData, HostOperands, Subject } from "./subject.ts";

/** What a reference is computed from. */
export interface ReferenceRequest {
  readonly subject: Subject;
  readonly operands: HostOperands;
  readonly mode: CheckMode;
  /** Whether there is a result of bare sums, to be projected; as the subject has it where absent. */
  readonly linear?: boolean;
  readonly seed: number;
  readonly onProgress?: (fraction: number) => void;
}

/** The FP64 reference of a subject, and what it was computed from: it serves every algorithm. */
export interface Reference extends ReferenceResult {
  readonly subject: Subject;
  readonly operands: HostOperands;
  readonly seed: number;
}

/** An accuracy report and what the gate makes of it. */
export interface Checked {
  /** The metrics, and what was allowed. */
  readonly accuracy: AccuracyRecord;
  /** Whether it is exact enough. */
  readonly verdict: Verdict;
  /** Why a verdict is `fail`; of one that passes, what should be known of it. */
  readonly message?: string;
  /** Where the whole result was projected. */
  readonly projection?: ProjectionRecord;
}

/** How a request covers its subject. */
export function coverage(
  { subject, mode, linear = subject.linear === undefined }: Pick<
    ReferenceRequest,
    "subject" | "mode" | "linear"
  >,
) {
  return coverageOf(subject, { mode, linear });
}

/**
 * What is run beside a subject, so that its result can be projected: the same without the activation. Nothing where it
 * has none, or is not projected.
 */
export function linearOf(subject: Subject, mode: CheckMode): Subject | undefined {
  return coverage({ subject, mode, linear: true }) === "projected" ? subject.linear : undefined;
}

/**
 * Computes the reference: whole, or a seeded sample, as `coverage()` says.
 *
 * @throws {RangeError} where results of int8 leave 32 bits.
 */
export async function computeReference(request: ReferenceRequest): Promise<Reference> {
  const { subject, operands, seed, onProgress } = request;
  const { shape, sums: { strata, length, sample: count } } = subject;
  const covered = coverage(request);
  const result = await subject.reference.of(operands, {
    ...(covered === "whole"
      ? {}
      : covered === "strata"
      ? { indices: strataOf(shape, strata, length, seed) }
      : { sample: { count, seed } }),
    ...(onProgress ? { onProgress } : {}),
  });
  return { ...result, subject, operands, seed };
}

/** The whole reference, each result summed by itself: another way than the blocked one that computes without a device. */
export async function computeSingly(
  { subject, operands, seed }: Pick<ReferenceRequest, "subject" | "operands" | "seed">,
): Promise<Reference> {
  const indices = Float64Array.from({ length: elementCount(subject.shape) }, (_, index) => index);
  return { ...await subject.reference.of(operands, { indices }), subject, operands, seed };
}

/** What errors are measured by: what Σ|a||b| counts for at least, and what arithmetic errs by. */
interface Measure {
  readonly floors: Floors | undefined;
  readonly yardstick: Yardstick;
}

const measures = new WeakMap<object, Map<string, Measure>>();

/** The yardstick of a reference: what an arithmetic errs by on its data. Made once. */
export function yardstickOf(reference: Reference, arithmetic: PlanArithmetic): Yardstick {
  return measureOf(reference, arithmetic).yardstick;
}

/** What Σ|a||b| of a plan's outputs counts for at least. */
export function floorsOf(reference: Reference, arithmetic: PlanArithmetic): Floors | undefined {
  return measureOf(reference, arithmetic).floors;
}

function measureOf(
  reference: Reference,
  arithmetic: PlanArithmetic,
): Measure {
  let made = measures.get(reference);
  if (made === undefined) measures.set(reference, made = new Map());
  const key = JSON.stringify(arithmetic);
  let measure = made.get(key);
  if (measure === undefined) {
    const { subject, operands, seed } = reference;
    const { tolerance } = subject;
    const floors = tolerance.floors(operands, arithmetic);
    const yardstick = tolerance.yardstick(operands, arithmetic, seed, floors);
    made.set(key, measure = { floors, yardstick });
  }
  return measure;
}

/** Strides of a subject's result in memory, one a canonical axis. */
export function resultStrides({ shape, axes }: Pick<Subject, "shape" | "axes">): number[] {
  const memory = rowMajorStrides(axes.map((axis) => shape[axis]!));
  return shape.map((_, axis) => memory[axes.indexOf(axis)]!);
}

/** Why results of tiles may be NaN or infinite where others are not. */
const SPREAD = "Winograd spreads a NaN or infinity over its tile: exact excludes it";

/**
 * Compares a result, as it lies in memory, with its reference.
 *
 * @param arithmetic The plan's.
 * @param brief Whether what stands out fails without a closer look.
 */
export function checkAgainst(
  reference: Reference,
  result: HostData,
  arithmetic: PlanArithmetic,
  brief = false,
): Checked {
  const { subject } = reference;
  const precision = subject.tolerance.precision(arithmetic);
  const { floors, yardstick } = measureOf(reference, arithmetic);
  const measured = measureAccuracy(result, reference, {
    strides: resultStrides(subject),
    precision,
    accumulationLength: subject.sums.length,
    activation: subject.activation,
    grouping: subject.tolerance.grouping(arithmetic),
    floors,
  });
  const judgement = judge(measured, brief ? sampleAlone(yardstick) : yardstick, precision);
  const { mismatched, nan, inf } = measured.report;
  return arithmetic.tiles !== undefined && mismatched > 0 && nan + inf > mismatched
    ? judged(measured, { ...judgement, reasons: [...judgement.reasons, SPREAD] })
    : judged(measured, judgement);
}

/** What the gate makes of a comparison. */
function judged({ report }: Measured, { verdict, reasons, notes, ...limits }: Judgement): Checked {
  const said = [...reasons, ...notes];
  return {
    accuracy: { ...report, ...limits },
    verdict,
    ...(said.length > 0 ? { message: said.join("; ") } : {}),
  };
}
