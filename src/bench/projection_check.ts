/** Every output of a result is checked: its random projection is held against the reference's. */
import {
  judgeProjection,
  measureProjection,
  type ProjectionNoise,
  type ProjectionReport,
} from "../accuracy/projection.ts";
import { F32, type Yardstick } from "../accuracy/mod.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import {
  accumulationLength,
  type ConvProblem,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import type { Activation } from "../problem/epilogue.ts";
import { activationRoundings } from "../problem/error_bound.ts";
import type { GemmDType, GemmProblem } from "../problem/gemm_problem.ts";
import { type GemmInputs, referenceGemm } from "../reference/gemm.ts";
import { projectGemm, projectIntegers } from "../reference/gemm_projection.ts";
import type { ProjectedArray } from "../reference/project_channels.ts";
import { projectConv, type Projection } from "../reference/projection.ts";
import {
  activate,
  activationScale,
  referenceConv,
  type ReferenceResult,
} from "../reference/reference.ts";
import type { ProjectionRecord } from "../report/record.ts";
import type { TensorData } from "../tensor/dtype.ts";
import { stridesInLayout } from "../tensor/layout.ts";
import { unravelIndex } from "../tensor/tensor.ts";
import {
  checkAgainst,
  type Checked,
  computeReference,
  convCoverage,
  convYardstickOf,
  type ReferenceRequest,
} from "./check.ts";
import type { CheckMode, Coverage } from "./coverage.ts";
import {
  checkGemm,
  computeGemmReference,
  gemmCoverage,
  type GemmReferenceRequest,
  gemmYardstickOf,
  heldProblem,
} from "./gemm_check.ts";
import { layoutOf, referenceInputs } from "./operands.ts";
import { gemmNoise, projectionNoise } from "./projection_noise.ts";

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
const UNIT = 2 ** -24;

/** How the outputs of a projection are found, named and computed singly. */
interface Outputs {
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

/**
 * Projects the reference of a convolution; nothing where the check is to be whole or a sample.
 *
 * @throws as `projectConv()`.
 */
export async function convProjection(
  request: ReferenceRequest,
): Promise<ResultProjection | undefined> {
  if (convCoverage(request) !== "projected") return undefined;
  const start = performance.now();
  const { problem, operands, epilogue, seed } = request;
  const inputs = referenceInputs(problem, operands, request);
  const which = resultTensor(problem.op);
  const layout = layoutOf(which, request);
  const { bias, ...others } = inputs;
  const projection = await projectConv(problem, {
    ...others,
    ...(epilogue.bias && bias !== undefined ? { bias } : {}),
    result: layout,
  }, { seed });
  const linear = { problem, inputs, epilogue: { ...epilogue, activation: "none" as const }, seed };
  const referenceSeconds = (performance.now() - start) / 1000;
  const shape = tensorShape(problem, which);
  const strides = stridesInLayout(shape, layout);
  const length = accumulationLength(problem);
  const outputs: Outputs = {
    activation: epilogue.activation,
    stored: Math.fround,
    storedUnit: UNIT,
    length,
    offsetOf: (index) => offsetIn(index, shape, strides),
    where: (index) => convPlace(problem, index),
    reference: (indices) =>
      referenceConv(problem, inputs, {
        indices,
        ...(problem.op === "fwd" ? { epilogue: { ...epilogue, activation: "none" } } : {}),
      }),
    residual: () => 0,
  };
  return {
    check: (checked, projected) => {
      const { arithmetic } = projected;
      const yardstick = (epilogue.activation === "none" ? projected.yardstick : undefined) ??
        convYardstickOf(linear, arithmetic);
      const tile = arithmetic.tiles?.[0]?.axes.map(({ n }) => n);
      return checkProjected(checked, projected, projection, outputs, {
        noise: projectionNoise(yardstick.sample, F32),
        // A filter's taps are one tile.
        tile: problem.op === "bwd-filter" && tile !== undefined ? problem.filterSize : tile,
        referenceSeconds,
      });
    },
  };
}

/** Computes the reference of a convolution, projects it where that pays, and checks a result. */
export async function checkConvResult(
  request: Omit<ReferenceRequest, "linear"> & ProjectedResult & { readonly result: Float32Array },
): Promise<Checked> {
  const { result, linear, arithmetic, readSeconds } = request;
  const asked = {
    ...request,
    linear: request.epilogue.activation === "none" || linear !== undefined,
  };
  const reference = await computeReference(asked);
  const checked = checkAgainst(reference, result, arithmetic);
  const projection = await convProjection(asked);
  const yardstick = convYardstickOf(reference, arithmetic);
  const made = { result, linear, arithmetic, yardstick, readSeconds };
  return await projection?.check(checked, made) ?? checked;
}

/**
 * Projects the reference of a product; nothing where the check is to be whole or a sample.
 *
 * @throws as `projectGemm()`.
 */
export async function gemmProjection(
  request: GemmReferenceRequest,
): Promise<ResultProjection | undefined> {
  if (gemmCoverage(request) !== "projected") return undefined;
  const start = performance.now();
  const { dtype, seed } = request;
  const problem = heldProblem(request.problem, dtype);
  const operands = request.operands as GemmInputs;
  const linear = withoutActivation(problem);
  if (dtype === "i8") return integerProjection(problem, linear, operands, seed, start);
  const projection = await projectGemm(linear, operands, { seed });
  const referenceSeconds = (performance.now() - start) / 1000;
  const { k, batch } = problem;
  const skip = problem.activation !== "none" && problem.residual ? operands.residual! : undefined;
  const outputs: Outputs = {
    activation: problem.activation,
    stored: dtype === "f16" ? Math.f16round : dtype === "f32" ? Math.fround : Number,
    storedUnit: dtype === "f16" ? 2 ** -11 : dtype === "f32" ? UNIT : 2 ** -53,
    length: k,
    offsetOf: (index) => index,
    where: ([one, , column]) =>
      `the projection over rows at [${batch === 1 ? "" : `${one},`}·,${column}]`,
    reference: (indices) => referenceGemm(linear, operands, { indices }),
    residual: (offset) => skip?.[offset] ?? 0,
  };
  return {
    check: (checked, projected) => {
      const { arithmetic } = projected;
      const asked = { problem: linear, dtype, operands, seed };
      const yardstick = (problem.activation === "none" ? projected.yardstick : undefined) ??
        gemmYardstickOf(asked, arithmetic);
      const noise = gemmNoise(yardstick.sample, problem, dtype, arithmetic);
      return checkProjected(checked, projected, projection, outputs, { noise, referenceSeconds });
    },
  };
}

/** What of an activated product is projected: the same without activation and residual; nothing where it is not. */
export function linearGemm(
  problem: GemmProblem,
  dtype: GemmDType,
  mode: CheckMode,
): GemmProblem | undefined {
  return needsLinear(problem.activation, gemmCoverage({ problem, dtype, mode, linear: true }))
    ? withoutActivation(problem)
    : undefined;
}

/** A residual is added behind the activation, so it is left out, too. */
function withoutActivation(problem: GemmProblem): GemmProblem {
  return problem.activation === "none"
    ? problem
    : { ...problem, activation: "none", residual: false };
}

/** Computes the reference of a product, projects it where that pays, and checks a result. */
export async function checkGemmResult(
  request: Omit<GemmReferenceRequest, "linear"> & ProjectedResult,
): Promise<Checked> {
  const { problem, dtype, arithmetic, result, linear, readSeconds } = request;
  const asked = { ...request, linear: problem.activation === "none" || linear !== undefined };
  const reference = await computeGemmReference(asked);
  const checked = checkGemm(reference, result, arithmetic);
  const projection = await gemmProjection(asked);
  const made = {
    result,
    linear,
    arithmetic,
    yardstick: dtype === "i8" ? undefined : gemmYardstickOf(reference, arithmetic),
    readSeconds,
  };
  return await projection?.check(checked, made) ?? checked;
}

function integerProjection(
  problem: GemmProblem,
  linear: GemmProblem,
  operands: GemmInputs,
  seed: number,
  start: number,
): ResultProjection {
  const projection = projectIntegers(linear, operands, seed);
  const referenceSeconds = (performance.now() - start) / 1000;
  const { m, n, activation } = problem;
  return {
    check: (checked, { result, linear: given, readSeconds }) => {
      const start = performance.now();
      const own = (activation === "none" ? result : given) as Int32Array;
      const sums = projection.project(own);
      const wrong = sums.findIndex((sum, place) => sum !== projection.expected[place]);
      const reasons: string[] = [];
      if (wrong >= 0) {
        const one = Math.floor(wrong / n);
        reasons.push(
          `the projection over rows at [${problem.batch === 1 ? "" : `${one},`}·,${wrong % n}] ` +
            `differs from the reference's`,
        );
      }
      if (activation !== "none") {
        const skip = problem.residual ? operands.residual as Int32Array : undefined;
        const values = result as Int32Array;
        const place = values.findIndex((value, i) =>
          value !== ((Math.max(0, own[i]!) + (skip?.[i] ?? 0)) | 0)
        );
        if (place >= 0) reasons.push(activatedReason(place, activation));
      }
      return Promise.resolve(withProjection(checked, reasons, {
        places: sums.length,
        members: m,
        max_ratio: wrong >= 0 ? Infinity : 0,
        limit: 0,
        patch_rms: 0,
        patch_limit: 0,
        size: 0,
        masked: 0,
        masked_checked: 0,
        ...(activation === "none" ? {} : { activated: own.length }),
        reference_seconds: referenceSeconds,
        seconds: (performance.now() - start) / 1000,
        ...(readSeconds === undefined ? {} : { read_seconds: readSeconds }),
      }));
    },
  };
}

async function checkProjected(
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
    throw new TypeError(`Cannot project a result: it went through ${activation}`);
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

function activatedReason(offset: number, activation: Activation): string {
  return `output ${offset} in memory is not ${activation} of the result without it`;
}

function offsetIn(index: number, shape: readonly number[], strides: readonly number[]): number {
  return unravelIndex(index, shape).reduce((sum, at, axis) => sum + at * strides[axis]!, 0);
}

/** Which sums of a convolution's result a place's are. */
function convPlace(problem: ConvProblem, [outer, group, ...at]: readonly number[]): string {
  const { groups, op } = problem;
  const of = groups === 1 ? "" : ` of group ${group}`;
  return op === "bwd-filter"
    ? `the projection over both channels${of} at [·,·,${at}]`
    : `the projection over channels${of} at [${outer},·,${at}]`;
}
