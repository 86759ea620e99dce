/** What the projections of convolutions and of products share: outputs that are masked, activations, the verdict. */
import {
  judgeProjection,
  measureProjection,
  type ProjectionNoise,
  type ProjectionReport,
  varianceFloors,
} from "../accuracy/projection.ts";
import { type ErrorStatistics, type Precision, stored } from "../accuracy/mod.ts";
import { InputTypeError } from "../errors.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import {
  activate,
  activationGain,
  activationRoundings,
  activationScale,
  operandOf,
} from "../problem/activations.ts";
import type { ChannelTensors } from "../problem/epilogue.ts";
import type { IntegerProjection } from "../reference/gemm_projection.ts";
import type { Projection } from "../reference/projection.ts";
import type { ProjectionRecord } from "../report/record.ts";
import { unravelIndex } from "../tensor/tensor.ts";
import {
  type Checked,
  coverage,
  floorsOf,
  type Reference,
  type ReferenceRequest,
  resultStrides,
  yardstickOf,
} from "./check.ts";
import type { HostData, HostOperands, Subject } from "./subject.ts";

/** A result that is to be projected. */
export interface ProjectedResult {
  /** As it lies in memory. */
  readonly result: HostData;
  /** The same without its activation, and in products without the residual, where there is an activation. */
  readonly linear?: HostData | undefined;
  /** How the plan's sums are rounded on the device. */
  readonly arithmetic: PlanArithmetic;
  readonly readSeconds?: number | undefined;
  /** Whether what stands out fails without a closer look: what passes so passes. */
  readonly brief?: boolean;
}

/** The projected reference of a subject and its data: it serves every algorithm. */
export interface ResultProjection {
  /** Adds to what the sample says what the whole result does. */
  check(checked: Checked, projected: ProjectedResult): Promise<Checked>;
}

/** Multiply-adds and outputs of the places with NaNs and infinities that are compared one by one, at most. */
const MASKED_PRODUCTS = 1e9;
const MASKED_OUTPUTS = 65536;
/** Roundings that an output and its activation of the linear result may differ by. */
const ACTIVATED_ROUNDINGS = 4;
/** Unit roundoff of f32, and of results. */
const UNIT = 2 ** -24;
const STORED_UNITS = { bf16: 2 ** -8, f16: 2 ** -11, f32: UNIT, f64: 2 ** -53, i32: 0 } as const;

/** How the outputs of a projection are found, and rounded. */
interface Outputs {
  readonly subject: Subject;
  /** The same without its activation: what is projected. */
  readonly linear: Subject;
  /** What is added to an activated output. */
  readonly residual: HostData | undefined;
  /** What the activation reads for an output at a place in memory. */
  readonly operandAt: (place: number) => number;
}

/**
 * Projects the reference of a subject; nothing where the check is to be whole or a sample.
 *
 * @param reference What results are compared with one by one.
 * @throws as the subject's `project()`.
 */
export async function projectResult(
  request: ReferenceRequest,
  reference: Reference,
): Promise<ResultProjection | undefined> {
  if (coverage(request) !== "projected") return undefined;
  const start = performance.now();
  const { subject, operands, seed } = request;
  const linear = subject.linear ?? subject;
  const projection = await linear.reference.project(operands, seed);
  const referenceSeconds = (performance.now() - start) / 1000;
  const outputs: Outputs = {
    subject,
    linear,
    residual: subject.operands.some(({ role }) => role === "residual")
      ? operands.residual
      : undefined,
    operandAt: operandPlaces(subject, operands),
  };
  // The products are the same with an activation and without it.
  const own = linear === subject ? reference : { ...reference, subject: linear };
  return {
    check: async (checked, projected) => {
      const start = performance.now();
      const { result, linear: given, readSeconds, arithmetic } = projected;
      const bare = subject.linear === undefined;
      const sums = bare ? result : given;
      if (sums === undefined) {
        throw new InputTypeError(`Cannot project a result: it went through ${following(subject)}`);
      }
      const held = isExact(projection)
        ? holdExactly(projection, sums as Int32Array, linear)
        : await holdSums(
          projection,
          sums,
          own,
          arithmetic,
          outputs,
          request,
        );
      const reasons = [...held.reasons];
      if (!bare) {
        const finish = subject.reference.finish?.(operands);
        const place = finish === undefined
          ? activatedMismatch(result, sums, subject.tolerance.precision(arithmetic), outputs)
          : result.findIndex((value, at) => value !== finish(sums[at]!, at));
        if (place >= 0) {
          reasons.push(
            `output ${place} in memory is not ${following(subject)} of the result without it`,
          );
        }
      }
      return withProjection(checked, reasons, {
        ...held.figures,
        ...(bare ? {} : { activated: sums.length }),
        reference_seconds: referenceSeconds,
        seconds: (performance.now() - start) / 1000,
        ...(readSeconds === undefined ? {} : { read_seconds: readSeconds }),
      });
    },
  };
}

/** What follows the sums, for messages. */
function following({ activation, reference: { finish } }: Subject): string {
  const steps = [
    ...(activation === "none" ? [] : [activation]),
    ...(finish === undefined ? [] : ["scaling and rounding"]),
  ];
  return steps.join(" and ");
}

/** What holding a result's sums against the reference's found. */
interface Held {
  readonly reasons: readonly string[];
  readonly figures: Omit<ProjectionRecord, "reference_seconds" | "seconds">;
}

function isExact(projection: Projection | IntegerProjection): projection is IntegerProjection {
  return projection.expected instanceof Int32Array;
}

/** Sums of whole numbers are the reference's, or wrong. */
function holdExactly(
  projection: IntegerProjection,
  result: Int32Array,
  { sums: { members }, tolerance: { where } }: Subject,
): Held {
  const sums = projection.project(result);
  const wrong = sums.findIndex((sum, place) => sum !== projection.expected[place]);
  const place = () => where(unravelIndex(wrong, projection.shape));
  return {
    reasons: wrong < 0 ? [] : [`${place()} differs from the reference's`],
    figures: {
      places: sums.length,
      members,
      max_ratio: wrong >= 0 ? Infinity : 0,
      limit: 0,
      patch_rms: 0,
      patch_limit: 0,
      size: 0,
      masked: 0,
      masked_checked: 0,
    },
  };
}

/** Outputs that are simulated where the sample met nothing that rounds. */
const WEIGHTIEST = 64;

/** What simulated arithmetic errs by: a sample may have missed all that is not 0, which the largest outputs have not. */
function simulatedErrors(reference: Reference, arithmetic: PlanArithmetic): ErrorStatistics {
  const { sample, of } = yardstickOf(reference, arithmetic);
  if (sample.rms > 0) return sample;
  const { magnitudes, indices } = reference;
  const largest = Array.from(magnitudes.keys())
    .filter((i) => magnitudes[i]! > 0 && magnitudes[i]! < Infinity)
    .sort((i, j) => magnitudes[j]! - magnitudes[i]!);
  return of(largest.slice(0, WEIGHTIEST).map((i) => indices?.[i] ?? i));
}

/** Sums differ from the reference's by no more than their noise. */
async function holdSums(
  projection: Projection,
  result: HostData,
  reference: Reference,
  arithmetic: PlanArithmetic,
  outputs: Outputs,
  request: ReferenceRequest,
): Promise<Held> {
  const { subject } = outputs;
  const noise = subject.tolerance.noise(simulatedErrors(reference, arithmetic), arithmetic);
  const { report, masked } = measureProjection(projection, projection.project(result), {
    noise,
    tiles: subject.tolerance.mixed(arithmetic),
    floorOf: varianceFloors(projection, floorsOf(reference, arithmetic)),
  });
  const singles = await checkMasked(
    result,
    projection,
    masked,
    { report, noise, precision: subject.tolerance.precision(arithmetic) },
    outputs,
    request,
  );
  return {
    reasons: [...judgeProjection(report, subject.tolerance.where), ...singles.reasons],
    figures: {
      places: report.places,
      members: report.members,
      max_ratio: report.max_ratio,
      limit: report.limit,
      patch_rms: report.patch.rms,
      patch_limit: report.patch.limit,
      size: report.size,
      masked: masked.length * report.members,
      masked_checked: singles.checked,
    },
  };
}

/** The verdict of both checks. */
function withProjection(
  checked: Checked,
  reasons: readonly string[],
  projection: ProjectionRecord,
): Checked {
  if (reasons.length === 0) return { ...checked, projection };
  const message = [...(checked.message === undefined ? [] : [checked.message]), ...reasons];
  return { ...checked, projection, verdict: "fail", message: message.join("; ") };
}

/** Compares the outputs of sums that are NaN or infinite one by one, as many as may be afforded. */
async function checkMasked(
  result: HostData,
  projection: Projection,
  masked: readonly number[],
  { report: { limit }, noise, precision }: {
    readonly report: ProjectionReport;
    readonly noise: ProjectionNoise;
    readonly precision: Precision;
  },
  { linear }: Outputs,
  { operands }: ReferenceRequest,
): Promise<{ reasons: string[]; checked: number }> {
  if (masked.length === 0) return { reasons: [], checked: 0 };
  const most = Math.min(
    MASKED_OUTPUTS,
    Math.ceil(MASKED_PRODUCTS / Math.max(1, linear.sums.length)),
  );
  const total = masked.length * projection.members;
  const count = Math.min(most, total);
  const chosen = new Set<number>();
  let last = -1;
  let indices: Float64Array = new Float64Array(0);
  for (let i = 0; i < count; i++) {
    // Spread evenly over places and members.
    const at = Math.floor((i * total) / count);
    const place = Math.floor(at / projection.members);
    if (place !== last) indices = projection.indicesOf(masked[place]!);
    last = place;
    chosen.add(indices[at % projection.members]!);
  }
  const { values, magnitudes, paddedNaN, indices: done } = await linear.reference.of(operands, {
    indices: Float64Array.from(chosen).sort(),
  });
  const strides = resultStrides(linear);
  const offsetOf = (index: number) =>
    unravelIndex(index, linear.shape).reduce((sum, at, axis) => sum + at * strides[axis]!, 0);
  let wrong = 0, first = "";
  done!.forEach((index, i) => {
    const y = result[offsetOf(index)]!;
    const ref = values[i]!;
    const spread = limit *
      Math.hypot(noise.products * magnitudes[i]!, noise.result * ref, noise.smallest);
    const tolerance = Number.isFinite(ref) && Number.isFinite(spread) ? spread : 0;
    const right = Number.isNaN(y)
      ? Number.isNaN(ref) || paddedNaN?.[i] === 1
      : y >= stored(precision, ref - tolerance) && y <= stored(precision, ref + tolerance);
    if (right) return;
    first ||= `${y} in place of ${stored(precision, ref)}`;
    wrong++;
  });
  const reasons = wrong === 0
    ? []
    : [`${wrong} of ${done!.length} outputs beside NaN or infinite ones are wrong (${first})`];
  return { reasons, checked: done!.length };
}

function operandPlaces(subject: Subject, operands: HostOperands): Outputs["operandAt"] {
  const operand = operandOf(subject.activation, operands as ChannelTensors<ArrayLike<number>>);
  const stride = resultStrides(subject)[1]!;
  const channels = subject.shape[1]!;
  return (place) => operand(Math.floor(place / stride) % channels);
}

/** Where in memory the first output lies that is not the activation of the linear one; -1 where there is none. */
function activatedMismatch(
  result: HostData,
  linear: HostData,
  precision: Precision,
  { subject: { activation }, residual, operandAt }: Outputs,
): number {
  const storedUnit = STORED_UNITS[precision.result];
  const as = (value: number) => stored(precision, value);
  const exponentials = activationRoundings(activation) * Math.min(UNIT, storedUnit);
  const roundings = ACTIVATED_ROUNDINGS * storedUnit + exponentials;
  for (let i = 0; i < result.length; i++) {
    const x = linear[i]!, y = result[i]!;
    const skip = residual?.[i] ?? 0;
    const operand = operandAt(i);
    const value = activate(activation, x, operand);
    const want = value + skip;
    if (Object.is(y, as(want)) || y === as(want)) continue;
    // What is made of an infinity has no roundings of it.
    const size = Number.isFinite(x) ? activationGain(activation, operand) * Math.abs(x) : 0;
    const scale = size + activationScale(activation, value) + Math.abs(skip);
    const room = roundings * scale + Number.MIN_VALUE;
    // Near the end of the dtype's range either side of infinity is right; of NaN nothing else is.
    if (!(y >= as(want - room) && y <= as(want + room))) return i;
  }
  return -1;
}
