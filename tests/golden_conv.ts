import assert from "#assert";
import type { GoldenCase } from "./golden.ts";
import type { AlgorithmName, DeviceLimits } from "../src/algorithms/plan.ts";
import { planConv } from "../src/algorithms/planner.ts";
import type { GpuDevice } from "../src/gpu/device.ts";
import type { KernelVariant } from "../src/kernels/variant.ts";
import {
  type ConvDType,
  type ConvOutDType,
  operandTensors,
  type Operation,
  tensorShape,
} from "../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { referenceConv } from "../src/reference/reference.ts";
import { checkAgainst, computeReference, type Reference } from "../src/run/check.ts";
import { type ConvAsked, convSubject } from "../src/run/conv_subject.ts";
import { runPlan } from "../src/run/executor.ts";
import type { HostData, HostOperands } from "../src/run/subject.ts";
import { convertDType } from "../src/tensor/convert.ts";
import { convertLayout, filterLayoutFor, type Layout } from "../src/tensor/layout.ts";
import { tensor } from "../src/tensor/tensor.ts";
import { defined } from "../src/defined.ts";

/** One cell of the matrix that every driver must pass. */
export interface GoldenRun {
  readonly op: Operation;
  readonly algorithm: AlgorithmName;
  readonly layout: Layout;
  /** Of the operands, which are rounded to it, and scaled to all of int8's range; f32 where absent. */
  readonly dtype?: ConvDType;
  readonly outDtype?: ConvOutDType;
  readonly policy?: string;
  readonly splits?: number;
  readonly flush?: number;
  readonly sizes?: "constant" | "uniform";
  readonly tile?: string;
  /** Whether the device's matrix units multiply, where there are any. */
  readonly matrixUnits?: boolean;
  /** Of f32; halves are multiplied on matrix units, which nothing else is run on. */
  readonly math?: "f16x3";
  readonly variant?: KernelVariant;
  readonly maxWorkspaceBytes?: number;
  /** Replaces the device's limits: a small binding limit splits tensors. */
  readonly limits?: Partial<DeviceLimits>;
}

/** What a run plans on a device. */
export function goldenRequest(
  { limits, matrixUnits }: Pick<GpuDevice, "limits" | "matrixUnits">,
  golden: GoldenCase,
  { matrixUnits: units = false, limits: less, dtype = "f32", sizes = "uniform", ...others }:
    GoldenRun,
) {
  const { policy, splits, flush, variant, ...run } = others;
  return {
    ...run,
    schedule: defined({ policy, splits, flush, ...variant }),
    problem: golden.problems[run.op],
    dtype,
    filterLayout: filterLayoutFor(run.layout),
    epilogue: NO_EPILOGUE,
    ...(units && matrixUnits && { matrixUnits }),
    limits: { ...limits, ...less },
    sizes,
  };
}

/**
 * Runs a golden case on the device and holds the result by the gate: of f32 against PyTorch's FP64 values, of operands that are rounded
 * against those of our own reference. Gives the kernel's name.
 */
export async function agrees(
  gpu: GpuDevice,
  golden: GoldenCase,
  run: GoldenRun,
): Promise<string> {
  const request = goldenRequest(gpu, golden, run);
  const reference = await referenceOf(golden, request);
  const plan = planConv(request);
  const { operands, subject } = reference;
  const { result } = await runPlan(gpu, plan, operands, subject.result, 2);
  const { verdict, message } = checkAgainst(reference, result as HostData, plan.arithmetic);
  const what = `${golden.name} ${run.op} ${run.layout} with ${plan.kernel}`;
  assert.equal(verdict, "pass", `${what}: ${message}`);
  return plan.kernel;
}

const references = new Map<string, Promise<Reference>>();

/** The reference of a request, which serves all others of the same types and layout. */
function referenceOf(golden: GoldenCase, asked: ConvAsked): Promise<Reference> {
  const { problem: { op }, dtype, outDtype, layout } = asked;
  const key = [golden.name, op, dtype, outDtype, layout].join(" ");
  const known = references.get(key);
  if (known !== undefined) return known;
  const made = makeReference(golden, asked);
  references.set(key, made);
  return made;
}

async function makeReference(golden: GoldenCase, asked: ConvAsked): Promise<Reference> {
  const subject = convSubject(asked);
  const operands = operandsOf(golden, asked);
  const { op } = asked.problem;
  if (asked.dtype !== "f32") {
    return await computeReference({ subject, operands, mode: "full", seed: 1 });
  }
  // Magnitudes are ours; the values that count are PyTorch's.
  const { magnitudes, shape } = await magnitudesOf(golden, op);
  return { values: golden.results[op], magnitudes, shape, subject, operands, seed: 1 };
}

/** Operands of a golden case as a request has them in memory. */
function operandsOf(
  golden: GoldenCase,
  { problem, dtype = "f32", layout, filterLayout }: ConvAsked,
): HostOperands {
  const canonical = {
    input: golden.input,
    filter: golden.filter,
    output: golden.gradOutput,
  };
  return Object.fromEntries(
    operandTensors(problem.op).map((which) => {
      const data = dtype === "i8" ? wholeNumbers(canonical[which]) : canonical[which];
      const whole = convertDType(tensor("f32", tensorShape(problem, which), data), dtype);
      const lying = which === "filter"
        ? convertLayout(whole, "kcrs", filterLayout)
        : convertLayout(whole, "nchw", layout);
      return [which, lying.data];
    }),
  );
}

/** The nearest whole numbers, the largest made 127. */
function wholeNumbers(data: Float32Array<ArrayBuffer>): Float32Array<ArrayBuffer> {
  const largest = data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return data.map((value) => Math.round(value / largest * 127));
}

type Magnitudes = Awaited<ReturnType<typeof referenceConv>>;
const magnitudeCache = new Map<string, Promise<Magnitudes>>();

function magnitudesOf(golden: GoldenCase, op: Operation): Promise<Magnitudes> {
  const key = `${golden.name} ${op}`;
  const known = magnitudeCache.get(key);
  if (known !== undefined) return known;
  const tensors = {
    input: { data: golden.input, layout: "nchw" },
    filter: { data: golden.filter, layout: "kcrs" },
    output: { data: golden.gradOutput, layout: "nchw" },
  } as const;
  const operands = operandTensors(op).map((which) => [which, tensors[which]]);
  const made = referenceConv(golden.problems[op], Object.fromEntries(operands), { workers: 1 });
  magnitudeCache.set(key, made);
  return made;
}
