import type { Plan } from "./algorithms/plan.ts";
import { expectObject } from "./expect.ts";
import type { Clock } from "./gpu/execute.ts";
import type { GpuDevice } from "./gpu/gpu_device.ts";
import { expectRuns } from "./layers/expect_call.ts";
import { expectBudget, type TuneOptions } from "./layers/plan_cache.ts";
import { planProduct, type ProductPlanOptions, tunedProduct } from "./layers/product.ts";
import {
  type GemmDType,
  type GemmOutDType,
  type GemmProblem,
  gemmShape,
} from "./problem/gemm_problem.ts";
import type { Checked } from "./run/check.ts";
import type { CheckMode } from "./run/coverage.ts";
import { gemmSubject } from "./run/gemm_subject.ts";
import { usedOperands } from "./run/operands.ts";
import { checkResult } from "./run/case_checks.ts";
import { runPlan } from "./run/executor.ts";
import type { HostData, HostOperands } from "./run/subject.ts";

/** How a product is to be done; what is absent is the planner's choice. */
export interface MultiplyOptions extends ProductPlanOptions, TuneOptions {
  /** Runs that are timed. Default 1. */
  readonly samples?: number;
}

/** A product, and what made it. */
export interface Multiplied {
  /** What was computed. */
  readonly problem: GemmProblem;
  /** Of A and B. */
  readonly dtype: GemmDType;
  /** Of the result of f16. */
  readonly outDtype?: GemmOutDType;
  /** What ran. */
  readonly plan: Plan;
  /** Row by row, one of the batch after the other: of A's dtype where `outDtype` says nothing else, i32 for i8. */
  readonly result: HostData;
  /** [m, n], with the batch in front where there is one. */
  readonly shape: readonly number[];
  /** Nanoseconds of each run, by the device's clock or the wall's. */
  readonly samplesNs: readonly number[];
  /** What measured. */
  readonly clock: Clock;
}

/**
 * Does one matrix product, D = activation(alpha·op(A)·op(B) + beta·C + bias) + residual: plans it, brings the operands to the
 * device, runs the plan and fetches the result.
 *
 * @param operands Row-major: A and B in `options.dtype` (f32 where absent; bf16 in arrays of f32, whose values are rounded to it), the others as the result. They are read before the
 * call returns its promise, so that they may be changed after it.
 * @throws {TypeError} where an operand is missing, of another size or type, or read by nothing
 * @throws {RangeError} where options contradict each other, or results of i8 may leave 32 bits
 * @throws {UnsupportedError} where the device does not suffice; f16 and f64 need a feature that it was opened with
 * @throws {DeviceError} on errors of the device
 * @example
 * ```ts
 * import { checkProduct, fillTensor, gemmProblem, multiply, openDevice } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * const operands = {
 *   a: fillTensor("f32", [64, 96], "normal", 1).data,
 *   b: fillTensor("f32", [96, 32], "normal", 2).data,
 * };
 * const product = await multiply(gpu, gemmProblem({ m: 64, n: 32, k: 96 }), operands);
 * assert.deepEqual(product.shape, [64, 32]);
 * assert.equal((await checkProduct(product, operands)).verdict, "pass");
 * ```
 */
export async function multiply(
  gpu: GpuDevice,
  problem: GemmProblem,
  operands: HostOperands,
  options: MultiplyOptions = {},
): Promise<Multiplied> {
  const doing = "Cannot multiply";
  expectObject(doing, "options", options, "options");
  const { samples = 1, tuneBudget, ...wanted } = options;
  expectRuns(doing, "samples", samples);
  expectBudget(doing, tuneBudget);
  const { dtype = "f32" } = wanted;
  const planned = planProduct(gpu, problem, wanted);
  const { subject } = planned;
  const used = usedOperands(doing, subject, operands, Boolean(tuneBudget));
  // Nothing is awaited before operands are on their way, so that a caller may change them at once.
  if (subject.planner.admit) await subject.planner.admit("none", () => used);
  // Only what is copied may wait.
  const plan = tuneBudget
    ? await gpu.guard(() => tunedProduct(gpu, planned, tuneBudget))
    : planned.plan;
  const { result, samplesNs, clock } = await gpu.guard(() =>
    runPlan(gpu, plan, used, subject.result, samples)
  );
  return {
    problem,
    dtype,
    ...(wanted.outDtype && { outDtype: wanted.outDtype }),
    plan,
    result: result as HostData,
    shape: gemmShape(problem, "output"),
    samplesNs,
    clock,
  };
}

/** How a product is checked. */
export interface CheckProductOptions {
  /** `auto` where absent: every result, by a projection of them where there are many. */
  readonly mode?: CheckMode;
  /** Of the sample and the projection; 1 where absent. */
  readonly seed?: number;
}

/**
 * Checks a result of {@linkcode multiply} against the FP64 reference, by what arithmetic that sums in the order of its plan
 * errs by on the same data.
 *
 * @param operands What it was made of.
 * @throws {TypeError} where an operand is missing or of another size
 * @example
 * ```ts
 * import { checkProduct, gemmProblem, multiply, openDevice } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * const operands = { a: new Float32Array([1, 2, 3, 4]), b: new Float32Array([5, 6, 7, 8]) };
 * const product = await multiply(gpu, gemmProblem({ m: 2, n: 2, k: 2 }), operands);
 * assert.deepEqual([...product.result], [19, 22, 43, 50]);
 * assert.equal((await checkProduct(product, operands)).verdict, "pass");
 * ```
 */
export async function checkProduct(
  { problem, dtype, outDtype, plan, result }: Multiplied,
  operands: HostOperands,
  { mode = "auto", seed = 1 }: CheckProductOptions = {},
): Promise<Checked> {
  const { arithmetic } = plan;
  const subject = gemmSubject(problem, { dtype, outDtype });
  const held = usedOperands("Cannot check", subject, operands);
  return await checkResult({ subject, operands: held, result, arithmetic, mode, seed });
}
