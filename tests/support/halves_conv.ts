/** Convolutions in halves, for the tests of `--math f16x3` on drivers. */
import assert from "#assert";
import type { Plan } from "../../src/algorithms/plan.ts";
import { planConv } from "../../src/algorithms/planner.ts";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import {
  type ConvProblem,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { referenceConv, type ReferenceResult } from "../../src/reference/reference.ts";
import { convSubject, referenceInputs } from "../../src/run/conv_subject.ts";
import { fillOperands } from "../../src/run/operands.ts";
import { runPlan } from "../../src/run/executor.ts";
import type { FillKind } from "../../src/tensor/fill.ts";
import { stridesInLayout } from "../../src/tensor/layout.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { eachPlace, type Spoil } from "./spoilt_operands.ts";

/** What a convolution is filled with. */
interface Data {
  readonly fill?: FillKind;
  readonly spoil?: Spoil;
  readonly seed?: number;
}

/** A request in halves, and what it multiplies. */
function halvesRequest(
  gpu: GpuDevice,
  descriptor: string,
  op: ConvProblem["op"],
  more: Partial<PlanRequest>,
  { fill = "uniform11", spoil, seed = 7 }: Data,
) {
  const problem = { ...parseDescriptor(descriptor), op };
  const request = convRequest(gpu, problem, {
    algorithm: "winograd2d-nonfused",
    math: "f16x3",
    ...(gpu.matrixUnits && { matrixUnits: gpu.matrixUnits }),
    ...more,
  });
  const operands = fillOperands(convSubject(request), fill, seed);
  spoil?.(
    (which, place, value) => {
      const name = operandTensors(op)[which]!;
      const layout = name === "filter" ? request.filterLayout : request.layout;
      const strides = stridesInLayout(tensorShape(problem, name), layout);
      operands[name]![place.reduce((at, one, axis) => at + one * strides[axis]!, 0)] = value;
    },
    problem.inputSize[0]!,
    {
      op,
      first: tensorShape(problem, operandTensors(op)[0]!),
      second: tensorShape(problem, operandTensors(op)[1]!),
    },
  );
  return { request, operands };
}

/** Runs a request once and holds all of it against FP64. */
export async function convolve(
  gpu: GpuDevice,
  descriptor: string,
  op: ConvProblem["op"],
  more: Partial<PlanRequest> = {},
  data: Data = {},
) {
  const { request, operands } = halvesRequest(gpu, descriptor, op, more, data);
  const checked = await checkedResult(gpu, request, operands);
  assert.match(checked.plan.kernel, /^(winograd2d_nonfused|implicit_gemm)_\w+_f32_f16x3_/);
  assert.equal(checked.plan.arithmetic.math, "f16x3");
  return { ...checked, request, operands };
}

/** The largest error of a result, by the largest Σ|a||b| of its image (or filter) and channel, in units of roundoff. */
function largestError(
  { values, magnitudes, shape }: ReferenceResult,
  result: Float32Array,
  strides: readonly number[],
): number {
  const planes = new Map<number, { error: number; most: number }>();
  let index = 0;
  eachPlace(shape, (place) => {
    const at = place.reduce((sum, one, axis) => sum + one * strides[axis]!, 0);
    const key = place[0]! * shape[1]! + place[1]!;
    const plane = planes.get(key) ?? { error: 0, most: 0 };
    if (Number.isFinite(values[index]!) && magnitudes[index]! < 3e38) {
      plane.error = Math.max(plane.error, Math.abs(result[at]! - values[index]!));
      plane.most = Math.max(plane.most, magnitudes[index]!);
    }
    planes.set(key, plane);
    index++;
  });
  return Math.max(
    ...[...planes.values()].map(({ error, most }) => error === 0 ? 0 : error / most * 2 ** 24),
  );
}

/** What F(4x4,3x3) in f32 errs by, in units of roundoff of a plane's largest Σ|a||b|. */
const USUAL = 8;

/** Errors of results of a request's operands, as {@linkcode largestError} has them. */
async function errorsOf(
  { request, operands }: ReturnType<typeof halvesRequest>,
  results: readonly Float32Array[],
): Promise<readonly number[]> {
  const { problem, layout, filterLayout } = request;
  const inputs = referenceInputs(problem, operands, request);
  const reference = await referenceConv(problem, inputs, { workers: 1 });
  const own = resultTensor(problem.op) === "filter" ? filterLayout : layout;
  const strides = stridesInLayout(reference.shape, own);
  return results.map((result) => largestError(reference, result, strides));
}

/** A request's result, as it is. */
async function resultOf(gpu: GpuDevice, { request, operands }: ReturnType<typeof halvesRequest>) {
  const plan = planConv(request);
  const { result } = await runPlan(gpu, plan, operands, convSubject(request).result, 1);
  return { plan, result: result as Float32Array };
}

/** A request's result in f32, whose infinities and NaN spread over its tiles, which the gate would fail. */
async function inF32(gpu: GpuDevice, { request, operands }: ReturnType<typeof halvesRequest>) {
  const { policy: _, ...schedule } = request.schedule ?? {};
  return (await resultOf(gpu, { request: { ...request, schedule, math: "f32" }, operands })).result;
}

/** Runs a request once, for its result as it is. */
export function unjudged(
  gpu: GpuDevice,
  descriptor: string,
  op: ConvProblem["op"],
  more: Partial<PlanRequest> = {},
  data: Data = {},
) {
  return resultOf(gpu, halvesRequest(gpu, descriptor, op, more, data));
}

/** A request in halves errs little more than one in f32 is seen to, whatever its data. */
export async function errsLittle(
  gpu: GpuDevice,
  descriptor: string,
  op: ConvProblem["op"],
  more: Partial<PlanRequest>,
  spoil: Spoil,
): Promise<Plan> {
  const halves = await convolve(gpu, descriptor, op, more, { spoil });
  let [mine, theirs] = await errorsOf(halves, [halves.result, await inF32(gpu, halves)]) as [
    number,
    number,
  ];
  // An infinity makes whole tiles of f32 NaN.
  if (Number.isNaN(theirs)) theirs = USUAL;
  // Where one product outweighs all others nothing averages: f32 may be lucky with one sample.
  for (const seed of [8, 9, 10, 11]) {
    if (mine <= 4 * Math.max(theirs, 1.5)) break;
    const other = halvesRequest(gpu, descriptor, op, more, { spoil, seed });
    theirs = Math.max(theirs, ...await errorsOf(other, [await inF32(gpu, other)]));
  }
  assert.ok(mine <= 4 * Math.max(theirs, 1.5), `${mine} u, f32 has ${theirs}`);
  return halves.plan;
}
