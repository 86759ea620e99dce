import type { DeviceLimits } from "../src/algorithms/plan.ts";
import { planConv } from "../src/algorithms/planner.ts";
import type { AlgorithmName } from "../src/algorithms/names.ts";
import { checkAgainst, type Checked } from "../src/run/check.ts";
import { convResult, convSubject } from "../src/run/conv_subject.ts";
import { runPlan } from "../src/run/run_plan.ts";
import type { GpuDevice } from "../src/gpu/device.ts";
import { operandTensors, type Operation } from "../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { referenceConv } from "../src/reference/reference.ts";
import { convertLayout, filterLayoutFor, type Layout } from "../src/tensor/layout.ts";
import { tensor } from "../src/tensor/tensor.ts";
import { tensorShape } from "../src/problem/conv_problem.ts";
import type { GoldenCase } from "./golden.ts";

/** One cell of the matrix that every driver must pass. */
export interface GoldenRun {
  readonly op: Operation;
  readonly algorithm: AlgorithmName;
  readonly layout: Layout;
  readonly policy?: string;
  readonly splits?: number;
  readonly flush?: number;
  readonly sizes?: "constant" | "uniform";
  readonly tile?: string;
  /** Of f32; halves are multiplied on the device's matrix units, which nothing else is run on. */
  readonly math?: "f16x3";
  readonly maxWorkspaceBytes?: number;
  /** Replaces the device's limits: a small binding limit splits tensors. */
  readonly limits?: Partial<DeviceLimits>;
}

/** Runs a golden case on the device and holds the result against PyTorch's FP64 values, by the gate. */
export async function runGolden(
  gpu: GpuDevice,
  golden: GoldenCase,
  run: GoldenRun,
): Promise<Checked & { kernel: string }> {
  const { op, layout } = run;
  const problem = golden.problems[op];
  const filterLayout = filterLayoutFor(layout);
  const canonical = {
    input: golden.input,
    filter: golden.filter,
    output: golden.gradOutput,
  };
  const operands: Partial<Record<"input" | "filter" | "output", Float32Array<ArrayBuffer>>> = {};
  for (const which of operandTensors(op)) {
    const whole = tensor("f32", tensorShape(problem, which), canonical[which]);
    operands[which] = which === "filter"
      ? convertLayout(whole, "kcrs", filterLayout).data
      : convertLayout(whole, "nchw", layout).data;
  }
  const plan = planConv({
    problem,
    dtype: "f32",
    layout,
    filterLayout,
    epilogue: NO_EPILOGUE,
    algorithm: run.algorithm,
    ...(run.policy === undefined ? {} : { policy: run.policy }),
    ...(run.splits === undefined ? {} : { splits: run.splits }),
    ...(run.flush === undefined ? {} : { flush: run.flush }),
    ...(run.tile === undefined ? {} : { tile: run.tile }),
    ...(run.math === undefined
      ? {}
      : { math: run.math, ...(gpu.matrixUnits && { matrixUnits: gpu.matrixUnits }) }),
    ...(run.maxWorkspaceBytes === undefined ? {} : { maxWorkspaceBytes: run.maxWorkspaceBytes }),
    limits: { ...gpu.limits, ...run.limits },
    sizes: run.sizes ?? "uniform",
  });
  const { result } = await runPlan(gpu, plan, operands, convResult(problem), 2);
  // Magnitudes are ours; the values that count are PyTorch's.
  const { magnitudes, shape } = await magnitudesOf(golden, op);
  const reference = {
    values: golden.results[op],
    magnitudes,
    shape,
    subject: convSubject({ problem, layout, filterLayout }),
    operands,
    seed: 1,
  };
  const checked = checkAgainst(reference, result, plan.arithmetic);
  return { ...checked, kernel: plan.kernel };
}

type Magnitudes = Awaited<ReturnType<typeof referenceConv>>;
const magnitudeCache = new Map<string, Promise<Magnitudes>>();

function magnitudesOf(golden: GoldenCase, op: Operation): Promise<Magnitudes> {
  const key = `${golden.name} ${op}`;
  const known = magnitudeCache.get(key);
  if (known !== undefined) return known;
  const made = referenceConv(golden.problems[op], {
    input: { data: golden.input, layout: "nchw" },
    filter: { data: golden.filter, layout: "kcrs" },
    output: { data: golden.gradOutput, layout: "nchw" },
  }, { workers: 1 });
  magnitudeCache.set(key, made);
  return made;
}
