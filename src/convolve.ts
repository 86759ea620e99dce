import type { Plan } from "./algorithms/plan.ts";
import { expectObject } from "./expect.ts";
import type { Clock } from "./gpu/execute.ts";
import type { GpuDevice } from "./gpu/gpu_device.ts";
import { type ConvPlanOptions, planConvolution, tunedConvolution } from "./layers/convolution.ts";
import { expectRuns } from "./layers/expect_call.ts";
import { expectBudget, type TuneOptions } from "./layers/plan_cache.ts";
import type { ConvDType, ConvOutDType, ConvProblem } from "./problem/conv_problem.ts";
import type { Epilogue } from "./problem/epilogue.ts";
import type { IntegerOperands } from "./problem/conv_elements.ts";
import type { CaseRecord } from "./report/record.ts";
import { caseRecord } from "./run/case_record.ts";
import type { Checked } from "./run/check.ts";
import { convResult, convSubject, type Layouts } from "./run/conv_subject.ts";
import type { CheckMode } from "./run/coverage.ts";
import { usedOperands } from "./run/operands.ts";
import { checkResult } from "./run/case_checks.ts";
import { runPlan } from "./run/executor.ts";
import type { HostData, HostOperands } from "./run/subject.ts";
import { timeRecord } from "./run/timing.ts";
import type { TypedArrayOf } from "./tensor/dtype.ts";

const DOING = "Cannot convolve";

/** How a convolution is to be done; what is absent is the planner's choice. */
export interface ConvolveOptions extends ConvPlanOptions, TuneOptions {
  /** Runs that are timed. Default 1. */
  readonly samples?: number;
  /** Back-to-back runs of a sample, for clocks that are coarse. Default 1. */
  readonly repeats?: number;
}

/** A result, and what made it. */
export interface Convolved<D extends ConvOutDType = ConvOutDType> extends Layouts {
  /** What was computed. */
  readonly problem: ConvProblem;
  /** What followed the sums. */
  readonly epilogue: Epilogue;
  /** Which operands of dtype i8 are u8, and their zero points. */
  readonly integers?: IntegerOperands | undefined;
  /** What ran. */
  readonly plan: Plan;
  /** Output, or the gradient that was asked for, as it lies in memory. */
  readonly result: TypedArrayOf<D>;
  /** Element type of the operands. */
  readonly dtype: ConvDType;
  /** Of the result. */
  readonly outDtype: D;
  /** The result's sizes in memory order. */
  readonly shape: readonly number[];
  /** Nanoseconds of a run in each sample, by the device's clock or the wall's. */
  readonly samplesNs: readonly number[];
  /** Runs of a sample. */
  readonly repeats: number;
  /** What measured. */
  readonly clock: Clock;
}

/**
 * Does one convolution or gradient: plans it, brings the operands to the device, runs the plan and fetches the result.
 * Layouts are nchw with kcrs where absent, or the filter layout that goes with `layout`.
 *
 * @param operands X of [N, C, H, W] and W of [K, C/g, R, S] forward, ∇Y of [N, K, P, Q] and W backward-data, X and ∇Y
 * backward-filter, each in the order of its layout; a bias of K values, which is added. They are read before the call returns its promise, so that they may be changed after it.
 * @throws {TypeError} where an operand is missing, of another size, or read by nothing
 * @throws {RangeError} where the algorithm that was named does not support the problem
 * @throws {UnsupportedError} where the device does not suffice
 * @throws {DeviceError} on errors of the device
 * @example
 * ```ts
 * import {
 *   checkConvolution,
 *   convolve,
 *   fillTensor,
 *   openDevice,
 *   parseDescriptor,
 * } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const problem = parseDescriptor("mb2ic8ih14oc16kh3ph1");
 * const input = fillTensor("f32", [2, 14, 14, 8], "normal", 1).data;
 * const filter = fillTensor("f32", [16, 3, 3, 8], "normal", 2).data;
 * using gpu = await openDevice();
 * const done = await convolve(gpu, problem, { input, filter }, { layout: "nhwc" });
 * assert.deepEqual(done.shape, [2, 14, 14, 16]);
 * assert.equal((await checkConvolution(done, { input, filter })).verdict, "pass");
 * ```
 */
export function convolve(
  gpu: GpuDevice,
  problem: ConvProblem,
  operands: HostOperands,
  options?: ConvolveOptions & { readonly dtype?: "f32"; readonly outDtype?: "f32" },
): Promise<Convolved<"f32">>;
/**
 * The same of other element types: f16 or bf16 operands, summed in f32; i8 or u8 operands (`dtype: "i8"`) in nhwc, forward, summed in
 * i32 without an error, with results in i32, or in i8 or u8 by the epilogue's scale. `integers` says which values of the
 * operands stand for zero, the epilogue's `zeroPoint` which of the result's does.
 *
 * @param operands Of `options.dtype` (bf16 in arrays of f32, whose values are rounded to it), a bias as the result, of i8 operands in i32; scales of output channels in f32, zero points
 * of filters in i32.
 */
export function convolve(
  gpu: GpuDevice,
  problem: ConvProblem,
  operands: HostOperands,
  options: ConvolveOptions,
): Promise<Convolved>;
export async function convolve(
  gpu: GpuDevice,
  problem: ConvProblem,
  operands: HostOperands,
  options: ConvolveOptions = {},
): Promise<Convolved> {
  expectObject(DOING, "options", options, "options");
  expectObject(DOING, "operands", operands, "arrays");
  const { samples = 1, repeats = 1, tuneBudget, ...wanted } = options;
  expectRuns(DOING, "samples", samples);
  expectRuns(DOING, "repeats", repeats);
  expectBudget(DOING, tuneBudget);
  const { epilogue: part = {} } = wanted;
  expectObject(DOING, "epilogue", part, "what follows the sums");
  const epilogue = {
    bias: operands.bias !== undefined,
    ...(operands.scale === undefined ? {} : { scale: "channel" } as const),
    ...part,
  };
  const integers = wanted.dtype === "i8"
    ? { ...integersOf(operands), ...wanted.integers }
    : wanted.integers;
  const planned = planConvolution(gpu, problem, { ...wanted, epilogue, integers });
  const { asked, subject } = planned;
  const used = usedOperands(DOING, subject, operands, Boolean(tuneBudget));
  // Nothing is awaited before operands are on their way, so that a caller may change them at once.
  if (subject.planner.admit) await subject.planner.admit("none", () => used);
  const left = convResult(asked.problem, asked, asked.outDtype);
  // Only what is copied may wait.
  const { plan } = tuneBudget
    ? await gpu.guard(() => tunedConvolution(gpu, planned, tuneBudget))
    : planned;
  const made = await gpu.guard(() => runPlan(gpu, plan, used, left, samples, repeats));
  return { ...asked, plan, shape: left.shape, repeats, ...made };
}

/** What operands of dtype i8 say by themselves: which are u8, and whether filters have zero points. */
function integersOf({ input, filter, filterZeroPoint }: HostOperands): IntegerOperands {
  return {
    ...(input instanceof Uint8Array ? { inputDtype: "u8" } : {}),
    ...(filter instanceof Uint8Array ? { filterDtype: "u8" } : {}),
    ...(filterZeroPoint === undefined ? {} : { filterZeroPoint: "channel" }),
  };
}

/** How a result is checked. */
export interface CheckOptions {
  /** `auto` where absent: every output, by a projection of them where there are many. */
  readonly mode?: CheckMode;
  /** Of the sample and the projection; 1 where absent. */
  readonly seed?: number;
  /**
   * The result of the same convolution without its activation, which is what can be projected. Without it a large
   * result that has one is compared one by one.
   */
  readonly linear?: HostData;
}

/**
 * Checks a result of {@linkcode convolve} against the FP64 reference, by what arithmetic that sums in the order of its plan
 * errs by on the same data.
 *
 * @param operands What it was made of.
 * @throws {TypeError} where an operand is missing or of another size
 * @example
 * ```ts
 * import { checkConvolution, convolve, openDevice, parseDescriptor } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * const operands = { input: new Float32Array(4 * 4).fill(1), filter: new Float32Array(9).fill(0.1) };
 * const done = await convolve(gpu, parseDescriptor("mb1ic1ih4oc1kh3"), operands);
 * const { verdict, accuracy } = await checkConvolution(done, operands);
 * assert.deepEqual([verdict, accuracy.checked], ["pass", 4]); // 2 x 2 outputs
 * done.result[0] = 0;
 * assert.equal((await checkConvolution(done, operands)).verdict, "fail");
 * ```
 */
export async function checkConvolution(
  convolved: Convolved,
  operands: HostOperands,
  options: CheckOptions = {},
): Promise<Checked> {
  const subject = convSubject(convolved);
  return await checkResult({
    subject,
    result: convolved.result,
    arithmetic: convolved.plan.arithmetic,
    operands: usedOperands("Cannot check", subject, operands),
    linear: options.linear,
    mode: options.mode ?? "auto",
    seed: options.seed ?? 1,
  });
}

/** What a record says beside a result and its check. */
export interface ConvolutionRecordOptions {
  /** What it ran on: `gpu.info.adapter`. */
  readonly device: string;
  /** What {@linkcode checkConvolution} found; not checked where absent. */
  readonly checked?: Checked;
  /** Of made data. */
  readonly made?: { readonly fill: string; readonly seed: number };
}

/**
 * The record of a result of {@linkcode convolve}, as `wgconv bench` writes it: for `wgconv report` and `compare`, as a line of JSON.
 *
 * @example
 * ```ts
 * import { convolutionRecord, convolve, openDevice, parseDescriptor } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * const operands = { input: new Float32Array(4 * 4), filter: new Float32Array(9) };
 * const done = await convolve(gpu, parseDescriptor("mb1ic1ih4oc1kh3"), operands);
 * const record = convolutionRecord(done, { device: gpu.info.adapter });
 * assert.deepEqual([record.kind, record.op, record.verdict], ["case", "fwd", "none"]);
 * ```
 */
export function convolutionRecord(
  convolved: Convolved,
  { device, checked, made }: ConvolutionRecordOptions,
): CaseRecord {
  const { plan, samplesNs, repeats, clock } = convolved;
  const setup = {
    ...convSubject(convolved).traits,
    algorithm: plan.algorithm,
    device,
    ...(made === undefined ? {} : { made }),
  };
  const time = timeRecord(samplesNs, repeats, clock);
  return caseRecord(setup, { plan, time, ...checked ?? { verdict: "none" } });
}
