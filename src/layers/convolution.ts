import type { Plan } from "../algorithms/plan.ts";
import type { PlanRequest } from "../algorithms/request.ts";
import type { GpuDevice } from "../gpu/gpu_device.ts";
import {
  CONV_DTYPES,
  CONV_OUT_DTYPES,
  type ConvDType,
  type ConvOutDType,
  type ConvProblem,
  convProblem,
  resultDtypes,
} from "../problem/conv_problem.ts";
import { type ChannelTensors, type Epilogue, fullEpilogue } from "../problem/epilogue.ts";
import { type ConvAsked, convSubject } from "../run/conv_subject.ts";
import type { Planning, Subject, SubjectTensor } from "../run/subject.ts";
import { FILTER_LAYOUTS, filterLayoutFor, LAYOUTS } from "../tensor/layout.ts";
import { expectFields } from "../expect.ts";
import { INTEGER_FIELDS } from "../problem/conv_elements.ts";
import { expectCall, PLANNING } from "./expect_call.ts";
import type { GpuDType, TensorSpec } from "./gpu_tensor.ts";
import { type Layer, type LayerOptions, makeLayer } from "./layer.ts";
import { expectBudget, planOn, tunedPlanning, type TuneOptions } from "./plan_cache.ts";

/** How a convolution is to be planned; what is absent is the planner's choice. */
export type ConvPlanOptions =
  & Partial<Omit<PlanRequest, "problem" | "limits" | "sizes" | "within" | "epilogue">>
  & {
    /** What follows the sums, forward; no bias and no activation where nothing is said of them. */
    readonly epilogue?: Partial<Epilogue>;
  };

/** How a convolution is prepared. */
export interface PrepareConvolutionOptions extends ConvPlanOptions, LayerOptions, TuneOptions {}

/**
 * The tensors of a convolution or a gradient. What the epilogue reads are K values each: `bias` where it is set, the `slope` of
 * `prelu`, the factors of int8 results where `epilogue.scale` is `channel`.
 */
export interface ConvolutionTensors extends ChannelTensors<TensorSpec> {
  /** X of [N, C, H, W], or its gradient: the result of bwd-data. */
  readonly input: TensorSpec;
  /** W of [K, C/g, R, S], or its gradient: the result of bwd-filter. */
  readonly filter: TensorSpec;
  /** Y of [N, K, P, Q], the result forward, or its gradient. */
  readonly output: TensorSpec;
  /** K zero points in i32, where `integers.filterZeroPoint` is `channel`. */
  readonly filterZeroPoint?: TensorSpec;
}

/** A convolution, all that was left out filled in, as it is planned and checked. */
interface PlannedConvolution {
  /** What was asked for. */
  readonly asked: ConvAsked & {
    readonly epilogue: Epilogue;
    readonly dtype: ConvDType;
    readonly outDtype: ConvOutDType;
  };
  /** The same as what a run computes. */
  readonly subject: Subject;
  /** What runs. */
  readonly plan: Plan;
  /** What the planner was told beside the problem. */
  readonly planning: Partial<Planning>;
}

const OPTIONS = {
  ...PLANNING,
  dtype: CONV_DTYPES,
  outDtype: CONV_OUT_DTYPES,
  layout: LAYOUTS,
  filterLayout: FILTER_LAYOUTS,
  epilogue: "an object",
  integers: "an object",
  algorithm: "a word",
  tile: "a word",
  pair: "a word",
  exact: "true or false",
  maxWorkspaceBytes: "a number",
  maxWorkspaceShare: "a number",
  maxBoundRatio: "a number",
} as const satisfies Record<keyof ConvPlanOptions, unknown>;

/** Plans a convolution for a device, once for each way it is asked for. */
export function planConvolution(
  gpu: GpuDevice,
  given: ConvProblem,
  options: ConvPlanOptions,
): PlannedConvolution {
  const doing = "Cannot convolve";
  expectCall(doing, gpu, options, OPTIONS);
  const problem = convProblem(given);
  const {
    dtype = "f32",
    outDtype = resultDtypes(dtype)[0],
    layout = "nchw",
    filterLayout = filterLayoutFor(layout),
    epilogue: part,
    integers,
    ...planning
  } = options;
  const epilogue = fullEpilogue(doing, part);
  if (integers !== undefined) expectFields(doing, "field of integers", integers, INTEGER_FIELDS);
  const asked = { problem, epilogue, layout, filterLayout, dtype, outDtype, integers };
  const subject = convSubject(asked);
  const plan = planOn(gpu, asked, planning, subject.planner.plan);
  return { asked, subject, planning, plan };
}

/** A planned convolution, planned anew by what is timed within a budget where that is given. */
export async function tunedConvolution(
  gpu: GpuDevice,
  planned: PlannedConvolution,
  tuneBudget: number | undefined,
): Promise<PlannedConvolution> {
  if (!tuneBudget) return planned;
  const { asked, subject, planning } = planned;
  const tuned = await tunedPlanning(gpu, subject, planning, tuneBudget);
  return { ...planned, plan: planOn(gpu, asked, tuned, subject.planner.plan) };
}

/** A tensor of a subject as one on the device. */
export function specOf({ dtype, shape }: SubjectTensor, layout?: TensorSpec["layout"]): TensorSpec {
  // Subjects are of types that kernels know.
  return { dtype: dtype as GpuDType, shape, ...(layout === undefined ? {} : { layout }) };
}

/**
 * Makes a convolution, or a gradient (`problem.op`), ready to run on tensors that stay on the device: plans it, compiles its
 * kernels and allocates its workspace. Plans and pipelines are cached with the device, so that a second layer of the same
 * kind costs little. Layouts are nchw with kcrs where absent, or the filter layout that goes with `layout`; sums of i8
 * operands that leave 32 bits wrap.
 *
 * @throws {TypeError | RangeError} where problem or options are none, or the algorithm that was named does not support the problem
 * @throws {UnsupportedError} where the device does not suffice
 * @throws {DeviceError} where a kernel does not compile, or the device is lost
 * @example
 * ```ts
 * import {
 *   convProblem,
 *   fillTensor,
 *   gpuTensor,
 *   openDevice,
 *   prepareConvolution,
 * } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * const sizes = { batch: 2, inChannels: 8, outChannels: 16, inputSize: [14, 14], filterSize: [3, 3] };
 * const problem = convProblem({ ...sizes, padding: "same" });
 * const options = { layout: "nhwc", epilogue: { bias: true, activation: "relu" } } as const;
 * using layer = await prepareConvolution(gpu, problem, options);
 *
 * const { tensors } = layer;
 * using input = gpuTensor(gpu, tensors.input, fillTensor("f32", [2, 14, 14, 8], "normal", 1).data);
 * using filter = gpuTensor(gpu, tensors.filter, fillTensor("f32", [16, 3, 3, 8], "normal", 2).data);
 * using bias = gpuTensor(gpu, tensors.bias!);
 * using output = gpuTensor(gpu, tensors.output);
 * layer.run({ input, filter, bias, output });
 * assert.deepEqual(output.shape, [2, 14, 14, 16]);
 * assert.ok((await output.read()).some((value) => value > 0));
 * ```
 */
export async function prepareConvolution(
  gpu: GpuDevice,
  problem: ConvProblem,
  options: PrepareConvolutionOptions = {},
): Promise<Layer<ConvolutionTensors>> {
  const { workspace, tuneBudget, ...wanted } = options;
  expectBudget("Cannot convolve", tuneBudget);
  const planned = planConvolution(gpu, problem, wanted);
  const { asked, subject, plan } = await gpu.guard(() =>
    tunedConvolution(gpu, planned, tuneBudget)
  );
  const layoutOf = (role: string) =>
    role === "filter"
      ? asked.filterLayout
      : role === "input" || role === "output"
      ? asked.layout
      : undefined;
  const tensors = Object.fromEntries(
    [...subject.operands, subject.result].map((one) => [
      one.role,
      specOf(one, layoutOf(one.role)),
    ]),
  ) as unknown as ConvolutionTensors & { readonly [role: string]: TensorSpec };
  const result = subject.result.role as keyof ConvolutionTensors;
  return await gpu.guard(() =>
    makeLayer<ConvolutionTensors>(gpu, plan, tensors, result, { ...(workspace && { workspace }) })
  );
}
