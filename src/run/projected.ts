/** What the projections of convolutions and of products share: outputs that are masked, activations, the verdict. */
import {
  judgeProjection,
  measureProjection,
  type ProjectionNoise,
  type ProjectionReport,
} from "../accuracy/projection.ts";
import type { Yardstick } from "../accuracy/mod.ts";
import { InputTypeError } from "../errors.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import type { Activation } from "../problem/epilogue.ts";
import { activationRoundings } from "../problem/error_bound.ts";
import type { ProjectedArray } from "../reference/project_channels.ts";
import type { Projection } from "../reference/projection.ts";
import { activate, activationScale, type ReferenceResult } from "../reference/reference.ts";
import type { ProjectionRecord } from "../report/record.ts";
import type { TensorData } from "../tensor/dtype.ts";
import type { Checked } from "./check.ts";
import type { Coverage } from "./coverage.ts";

/** A result that is to be projected. */
export interface ProjectedResult {
  /** As it lies in memory. */
  readonly result: TensorData;
  /** The same without its activation, and in products without the residual, where there is an activation. */
  readonly linear?: TensorData | undefined;
  /** How the plan's sums are rounded on the device. */
  readonly arithmetic: PlanArithmetic;
  /** The yardstick of the result, where it has no activation; made where absent. */
  readonly yardstick?: Yardstick | undefined;
  readonly readSeconds?: number | undefined;
}

/** The projected reference of a problem and its data: it serves every algorithm. */
export interface ResultProjection {
  /** Adds to what the sample says what the whole result does. */
  check(checked: Checked, projected: ProjectedResult): Promise<Checked>;
}

/** Multiply-adds and outputs of the places with NaNs and infinities that are compared one by one, at most. */
const MASKED_PRODUCTS = 1e9;
const MASKED_OUTPUTS = 65536;
/** Roundings that an output and its activation of the linear result may differ by. */
const ACTIVATED_ROUNDINGS = 4;
/** Unit roundoff of f32. */
export const UNIT = 2 ** -24;

/** How the outputs of a projection are found, named and computed singly. */
export interface Outputs {
  readonly activation: Activation;
  /** Rounds to the result's dtype. */
  readonly stored: (value: number) => number;
  readonly storedUnit: number;
  /** Multiply-adds of one output. */
  readonly length: number;
  /** Place in memory of a canonical index. */
  offsetOf(index: number): number;
  /** Says which sums a place's are. */
  where(index: readonly number[]): string;
  /** The reference of listed outputs, without the activation. */
  reference(indices: Float64Array): Promise<ReferenceResult>;
  /** What is added to an activated output. */
  residual(offset: number): number;
}

/** Whether a result is to be run without its activation, too, so that it can be projected. */
export function needsLinear(activation: Activation, coverage: Coverage): boolean {
  return activation !== "none" && coverage === "projected";
}

/** Holds a result's projection against the reference's, and adds to what the sample says. */
export async function checkProjected(
  checked: Checked,
  { result, linear, readSeconds }: ProjectedResult,
  projection: Projection,
  outputs: Outputs,
  { noise, tile, referenceSeconds }: {
    readonly noise: ProjectionNoise;
    readonly tile?: readonly number[] | undefined;
    readonly referenceSeconds: number;
  },
): Promise<Checked> {
  const start = performance.now();
  const { activation } = outputs;
  const own = (activation === "none" ? result : linear) as ProjectedArray | undefined;
  if (own === undefined) {
    throw new InputTypeError(`Cannot project a result: it went through ${activation}`);
  }
  const { report, masked } = measureProjection(projection, projection.project(own), {
    noise,
    tile,
  });
  const reasons = judgeProjection(report, outputs.where);
  const singles = await checkMasked(own, projection, masked, report, noise, outputs);
  reasons.push(...singles.reasons);
  if (activation !== "none") {
    const place = activatedMismatch(result as ProjectedArray, own, outputs);
    if (place >= 0) reasons.push(activatedReason(place, activation));
  }
  return withProjection(checked, reasons, {
    places: report.places,
    members: report.members,
    max_ratio: report.max_ratio,
    limit: report.limit,
    patch_rms: report.patch.rms,
    patch_limit: report.patch.limit,
    size: report.size,
    masked: masked.length * report.members,
    masked_checked: singles.checked,
    ...(activation === "none" ? {} : { activated: own.length }),
    reference_seconds: referenceSeconds,
    seconds: (performance.now() - start) / 1000,
    ...(readSeconds === undefined ? {} : { read_seconds: readSeconds }),
  });
}

/** The verdict of both checks. */
export function withProjection(
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
  result: ProjectedArray,
  projection: Projection,
  masked: readonly number[],
  { limit }: ProjectionReport,
  noise: ProjectionNoise,
  { stored, offsetOf, reference, length }: Outputs,
): Promise<{ reasons: string[]; checked: number }> {
  if (masked.length === 0) return { reasons: [], checked: 0 };
  const most = Math.min(MASKED_OUTPUTS, Math.ceil(MASKED_PRODUCTS / Math.max(1, length)));
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
  const { values, magnitudes, indices: done } = await reference(Float64Array.from(chosen).sort());
  let wrong = 0, first = "";
  done!.forEach((index, i) => {
    const y = result[offsetOf(index)]!;
    const ref = values[i]!;
    const spread = limit *
      Math.hypot(noise.products * magnitudes[i]!, noise.result * ref, noise.smallest);
    const tolerance = Number.isFinite(ref) && Number.isFinite(spread) ? spread : 0;
    const right = Number.isNaN(ref)
      ? Number.isNaN(y)
      : y >= stored(ref - tolerance) && y <= stored(ref + tolerance);
    if (right) return;
    first ||= `${y} in place of ${stored(ref)}`;
    wrong++;
  });
  const reasons = wrong === 0
    ? []
    : [`${wrong} of ${done!.length} outputs beside NaN or infinite ones are wrong (${first})`];
  return { reasons, checked: done!.length };
}

/** Where in memory the first output lies that is not the activation of the linear one; -1 where there is none. */
function activatedMismatch(
  result: ProjectedArray,
  linear: ProjectedArray,
  { activation, stored, storedUnit, residual }: Outputs,
): number {
  const exponentials = activationRoundings(activation) * Math.min(UNIT, storedUnit);
  const roundings = ACTIVATED_ROUNDINGS * storedUnit + exponentials;
  for (let i = 0; i < result.length; i++) {
    const x = linear[i]!, y = result[i]!;
    const skip = residual(i);
    const value = activate(activation, x);
    const want = stored(value + skip);
    if (Object.is(y, want) || y === want) continue;
    const scale = Math.abs(x) + activationScale(activation, value) + Math.abs(skip);
    if (!(Math.abs(y - want) <= roundings * scale + Number.MIN_VALUE)) return i;
  }
  return -1;
}

export function activatedReason(offset: number, activation: Activation): string {
  return `output ${offset} in memory is not ${activation} of the result without it`;
}
