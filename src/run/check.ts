import {
  F32,
  type Grouping,
  judge,
  type Judgement,
  measureAccuracy,
  type Measured,
  type Yardstick,
} from "../accuracy/mod.ts";
import {
  accumulationLength,
  type ConvProblem,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import type { Epilogue } from "../problem/epilogue.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import {
  referenceConv,
  type ReferenceInputs,
  type ReferenceResult,
} from "../reference/reference.ts";
import type { AccuracyRecord, ProjectionRecord, Verdict } from "../report/record.ts";
import { convYardstick } from "../simulate/conv_yardstick.ts";
import { stridesInLayout } from "../tensor/layout.ts";
import { elementCount } from "../tensor/tensor.ts";
import { type CheckMode, convCoverable, type Coverage, coverageOf, strataOf } from "./coverage.ts";
import { type HostOperands, layoutOf, type Layouts, referenceInputs } from "./operands.ts";

/** A sample's size: at least this many outputs ... */
const SAMPLE_COUNT = 4096;
/** ... and enough of each channel for its RMS to mean something, ... */
const SAMPLE_PER_CHANNEL = 64;
/** ... but no more multiply-adds than these: a second or so of two cores. */
const SAMPLE_PRODUCTS = 2e9;

/** What a reference is computed from. */
export interface ReferenceRequest extends Layouts {
  readonly problem: ConvProblem;
  readonly epilogue: Epilogue;
  readonly operands: HostOperands;
  readonly mode: CheckMode;
  /** Whether there is a result that no activation has changed, to be projected. */
  readonly linear?: boolean;
  readonly seed: number;
  readonly onProgress?: (fraction: number) => void;
}

/** The FP64 reference of a case, and what it was computed from: it serves every algorithm. */
export interface Reference extends ReferenceResult, Layouts {
  readonly problem: ConvProblem;
  readonly epilogue: Epilogue;
  readonly inputs: ReferenceInputs;
  readonly seed: number;
}

/** An accuracy report and what the gate makes of it. */
export interface Checked {
  /** The metrics, and what was allowed. */
  readonly accuracy: AccuracyRecord;
  /** Whether it is exact enough. */
  readonly verdict: Verdict;
  /** Why a verdict is `fail`. */
  readonly message?: string;
  /** Where the whole result was projected. */
  readonly projection?: ProjectionRecord;
}

/** How a result is covered, and the sample that this takes. */
export function convCoverage(
  { problem, mode, epilogue, linear = epilogue.activation === "none" }: Pick<
    ReferenceRequest,
    "problem" | "mode" | "epilogue" | "linear"
  >,
): Coverage {
  return coverageOf({ mode, linear, ...convCoverable(problem) });
}

/** Computes the reference: whole, or a seeded sample, as `convCoverage()` says. */
export async function computeReference(request: ReferenceRequest): Promise<Reference> {
  const { problem, layout, filterLayout, operands, epilogue, seed, onProgress } = request;
  const shape = tensorShape(problem, resultTensor(problem.op));
  const count = sampleCount(shape[channelAxis(problem)]!, accumulationLength(problem));
  const coverage = convCoverage(request);
  const whole = coverage === "whole" || elementCount(shape) <= count;
  const inputs = referenceInputs(problem, operands, request);
  const result = await referenceConv(problem, inputs, {
    ...(whole
      ? {}
      : coverage === "strata"
      ? { indices: convStrata(request, shape) }
      : { sample: { count, seed } }),
    ...(problem.op === "fwd" ? { epilogue } : {}),
    ...(onProgress ? { onProgress } : {}),
  });
  return { ...result, problem, layout, filterLayout, epilogue, inputs, seed };
}

const yardsticks = new WeakMap<object, Map<string, Yardstick>>();

/** A reference's yardstick for an arithmetic, made once. */
export function yardstickFor(
  reference: object,
  arithmetic: PlanArithmetic,
  make: () => Yardstick,
): Yardstick {
  let made = yardsticks.get(reference);
  if (made === undefined) yardsticks.set(reference, made = new Map());
  const key = JSON.stringify(arithmetic);
  let yardstick = made.get(key);
  if (yardstick === undefined) made.set(key, yardstick = make());
  return yardstick;
}

/** The yardstick of a convolution's reference: what its arithmetic errs by on this data. */
export function convYardstickOf(
  reference: Pick<Reference, "problem" | "inputs" | "epilogue" | "seed">,
  arithmetic: PlanArithmetic,
): Yardstick {
  return yardstickFor(
    reference,
    arithmetic,
    () => convYardstick({ ...reference, arithmetic, precision: F32 }),
  );
}

/**
 * Compares a result, as it lies in memory, with its reference.
 *
 * @param arithmetic The plan's.
 */
export function checkAgainst(
  reference: Reference,
  result: Float32Array,
  arithmetic: PlanArithmetic,
): Checked {
  const { problem, shape, epilogue } = reference;
  const measured = measureAccuracy(result, reference, {
    strides: stridesInLayout(shape, layoutOf(resultTensor(problem.op), reference)),
    precision: F32,
    accumulationLength: accumulationLength(problem),
    activation: epilogue.activation,
    grouping: groupingOf(problem, reference, arithmetic),
  });
  const yardstick = convYardstickOf(reference, arithmetic);
  return judged(
    measured,
    judge(measured, yardstick, F32),
  );
}

/** Rows of a convolution's product are its result's channels; columns lie as its layout has them. */
function groupingOf(
  { op, filterSize }: ConvProblem,
  { layout, filterLayout }: Layouts,
  { tiles }: PlanArithmetic,
): Grouping {
  const backward = op === "bwd-filter";
  const tile = tiles?.[0]?.axes.map(({ n }) => n) ?? filterSize.map(() => 1);
  return {
    rowAxis: backward ? 0 : 1,
    names: backward ? ["channel", "input channel"] : ["channel", "image"],
    otherInner: backward ? filterLayout === "krsc" : layout === "chwn",
    tile,
  };
}

/** An output of every workgroup's tile. */
function convStrata({ problem, layout, seed }: ReferenceRequest, shape: readonly number[]) {
  const { op, groups, inChannels, outChannels } = problem;
  const run = (op === "bwd-data" ? inChannels : outChannels) / groups;
  const length = accumulationLength(problem);
  return strataOf(shape, channelAxis(problem), run, length, seed, layout === "chwn");
}

/** What the gate makes of a comparison. */
export function judged({ report }: Measured, { verdict, reasons, ...limits }: Judgement): Checked {
  return {
    accuracy: { ...report, ...limits },
    verdict,
    ...(reasons.length > 0 ? { message: reasons.join("; ") } : {}),
  };
}

/** Computes the reference and compares a result with it. */
export async function checkResult(
  request: ReferenceRequest & {
    readonly result: Float32Array;
    readonly arithmetic: PlanArithmetic;
  },
): Promise<Checked> {
  return checkAgainst(await computeReference(request), request.result, request.arithmetic);
}

/** Outputs of a sample, for results of so many channels and products an output. */
export function sampleCount(channels: number, products: number): number {
  const affordable = Math.floor(SAMPLE_PRODUCTS / Math.max(1, products));
  return Math.max(SAMPLE_COUNT, Math.min(SAMPLE_PER_CHANNEL * channels, affordable));
}

/** The axis of the result that a bad channel would show on: K, or C of an input gradient. */
function channelAxis(problem: ConvProblem): 0 | 1 {
  return problem.op === "bwd-filter" ? 0 : 1;
}
