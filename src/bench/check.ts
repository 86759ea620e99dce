import {
  type AccuracyReport,
  channelRmsLimit,
  type Gate,
  gateFor,
  independentErrors,
  judge,
  measureAccuracy,
  mixedReference,
  relL2Limit,
} from "../accuracy/mod.ts";
import {
  accumulationLength,
  type ConvProblem,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import type { Activation, Epilogue } from "../problem/epilogue.ts";
import { referenceConv, type ReferenceResult } from "../reference/reference.ts";
import type { AccuracyRecord, ProjectionRecord, Verdict } from "../report/record.ts";
import { stridesInLayout } from "../tensor/layout.ts";
import { elementCount } from "../tensor/tensor.ts";
import { channelLengths } from "./channel_lengths.ts";
import { type CheckMode, convCoverable, type Coverage, coverageOf, strataOf } from "./coverage.ts";
import { type HostOperands, layoutOf, type Layouts, referenceInputs } from "./operands.ts";

/** Unit roundoff of f32, in which the kernels accumulate. */
const UNIT_ROUNDOFF = 2 ** -24;

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

/** The FP64 reference of a case: it serves every algorithm. */
export interface Reference extends ReferenceResult, Layouts {
  readonly problem: ConvProblem;
  readonly activation: Activation;
  /** Products that are not 0 in an output of each channel, about; without them channels are taken to be alike. */
  readonly lengths?: Float64Array;
}

/** An accuracy report and what the gate makes of it. */
export interface Checked {
  readonly accuracy: AccuracyRecord;
  readonly verdict: Verdict;
  readonly message?: string;
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
  const result = await referenceConv(problem, referenceInputs(problem, operands, request), {
    ...(whole
      ? {}
      : coverage === "strata"
      ? { indices: convStrata(request, shape) }
      : { sample: { count, seed } }),
    ...(problem.op === "fwd" ? { epilogue } : {}),
    ...(onProgress ? { onProgress } : {}),
  });
  const lengths = channelLengths(problem, operands, request);
  return { ...result, problem, layout, filterLayout, lengths, activation: epilogue.activation };
}

/**
 * Compares a result, as it lies in memory, with its reference.
 *
 * @param amplification The plan's: how much its algorithm enlarges rounding errors.
 */
export function checkAgainst(
  reference: Reference,
  result: Float32Array,
  amplification = 1,
): Checked {
  const { problem, shape } = reference;
  const layout = layoutOf(resultTensor(problem.op), reference);
  const axis = channelAxis(problem);
  const compared = amplification > 1 ? mixedReference(reference, axis) : reference;
  const report = measureAccuracy(result, compared, {
    strides: stridesInLayout(shape, layout),
    channelAxis: axis,
    unitRoundoff: UNIT_ROUNDOFF,
    lengths: reference.lengths,
  });
  const length = accumulationLength(problem);
  const gate = gateFor({
    accumulationLength: length,
    unitRoundoff: UNIT_ROUNDOFF,
    amplification,
    activation: reference.activation,
    ...(amplification > 1 ? { independentErrors: independentErrors(problem.op, length) } : {}),
  });
  return judged(report, gate);
}

/** An output of every workgroup's tile. */
function convStrata({ problem, layout, seed }: ReferenceRequest, shape: readonly number[]) {
  const { op, groups, inChannels, outChannels } = problem;
  const run = (op === "bwd-data" ? inChannels : outChannels) / groups;
  const length = accumulationLength(problem);
  return strataOf(shape, channelAxis(problem), run, length, seed, layout === "chwn");
}

/** What the gate makes of a report. */
export function judged(report: AccuracyReport, gate: Gate): Checked {
  const { verdict, reasons } = judge(report, gate);
  const accuracy = {
    ...report,
    bound_limit: gate.maxBoundRatio,
    rel_l2_limit: relL2Limit(report, gate),
    channel_rms_limit: channelRmsLimit(report, gate),
  };
  return { accuracy, verdict, ...(reasons.length > 0 ? { message: reasons.join("; ") } : {}) };
}

/** Computes the reference and compares a result with it. */
export async function checkResult(
  request: ReferenceRequest & {
    readonly result: Float32Array;
    readonly amplification?: number | undefined;
  },
): Promise<Checked> {
  return checkAgainst(await computeReference(request), request.result, request.amplification);
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
