import type { GemmRequest } from "../algorithms/gemm/operands.ts";
import type { Plan } from "../algorithms/plan.ts";
import type { GpuDevice } from "../gpu/gpu_device.ts";
import { GEMM_DTYPES, type GemmProblem, gemmProblem } from "../problem/gemm_problem.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import type { Planning, Subject } from "../run/subject.ts";
import { specOf } from "./convolution.ts";
import { expectCall, PLANNING } from "./expect_call.ts";
import type { TensorSpec } from "./gpu_tensor.ts";
import { type Layer, type LayerOptions, makeLayer } from "./layer.ts";
import { expectBudget, planOn, tunedPlanning, type TuneOptions } from "./plan_cache.ts";

/** How a product is to be planned; what is absent is the planner's choice. */
export type ProductPlanOptions = Partial<Omit<GemmRequest, "problem" | "limits" | "sizes">>;

/** How a product is prepared. */
export interface PrepareProductOptions extends ProductPlanOptions, LayerOptions, TuneOptions {}

/** The tensors of a product, row-major; the batch is outermost where there is one. */
export interface ProductTensors {
  /** As it is stored: [m, k], or [k, m] where it is transposed. */
  readonly a: TensorSpec;
  /** As it is stored: [k, n], or [n, k] where it is transposed. */
  readonly b: TensorSpec;
  /** [m, n], where `beta` is not 0. */
  readonly c?: TensorSpec;
  /** m or n values, where there is a bias. */
  readonly bias?: TensorSpec;
  /** [m, n], where there is a residual. */
  readonly residual?: TensorSpec;
  /** The result, [m, n]. */
  readonly output: TensorSpec;
}

const OPTIONS = {
  ...PLANNING,
  dtype: GEMM_DTYPES,
  accumulate: ["f32", "f16"],
  outDtype: GEMM_DTYPES,
} as const satisfies Record<keyof ProductPlanOptions, unknown>;

/** A product as it is planned. */
interface PlannedProduct {
  readonly subject: Subject;
  readonly plan: Plan;
  /** Plans it by what else the planner is told. */
  readonly planAnew: (planning: Partial<Planning>) => Plan;
  readonly planning: Partial<Planning>;
}

/** Plans a product for a device, once for each way it is asked for. */
export function planProduct(
  gpu: GpuDevice,
  given: GemmProblem,
  options: ProductPlanOptions,
): PlannedProduct {
  expectCall("Cannot multiply", gpu, options, OPTIONS);
  const problem = gemmProblem(given);
  const { dtype = "f32", accumulate, outDtype, ...planning } = options;
  const arithmetic = {
    dtype,
    ...(accumulate && { accumulate }),
    ...(outDtype && { outDtype }),
  };
  const subject = gemmSubject(problem, arithmetic);
  const planAnew = (planning: Partial<Planning>) =>
    planOn(gpu, { problem, ...arithmetic }, planning, subject.planner.plan);
  return { subject, planning, planAnew, plan: planAnew(planning) };
}

/** A product's plan, planned anew by what is timed within a budget where that is given. */
export async function tunedProduct(
  gpu: GpuDevice,
  { subject, planning, plan, planAnew }: PlannedProduct,
  tuneBudget: number | undefined,
): Promise<Plan> {
  if (!tuneBudget) return plan;
  return planAnew(await tunedPlanning(gpu, subject, planning, tuneBudget));
}

/**
 * Makes a matrix product, D = activation(alpha·op(A)·op(B) + beta·C + bias) + residual, ready to run on tensors that stay on
 * the device, as `prepareConvolution()` does a convolution. Sums of i8 operands that leave 32 bits wrap.
 *
 * @throws {RangeError} where options contradict each other
 * @throws {UnsupportedError} where the device does not suffice; f16 and f64 need a feature that it was opened with
 * @throws {DeviceError} where a kernel does not compile, or the device is lost
 * @example
 * ```ts
 * import { gemmProblem, gpuTensor, openDevice, prepareProduct } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * using layer = await prepareProduct(gpu, gemmProblem({ m: 2, n: 2, k: 3 }));
 * using a = gpuTensor(gpu, layer.tensors.a, Float32Array.of(1, 2, 3, 4, 5, 6));
 * using b = gpuTensor(gpu, layer.tensors.b, Float32Array.of(1, 0, 0, 1, 1, 1));
 * using output = gpuTensor(gpu, layer.tensors.output);
 * layer.run({ a, b, output });
 * assert.deepEqual([...await output.read()], [4, 5, 10, 11]);
 * ```
 */
export async function prepareProduct(
  gpu: GpuDevice,
  problem: GemmProblem,
  options: PrepareProductOptions = {},
): Promise<Layer<ProductTensors>> {
  const { workspace, tuneBudget, ...wanted } = options;
  expectBudget("Cannot multiply", tuneBudget);
  const planned = planProduct(gpu, problem, wanted);
  const { subject } = planned;
  const plan = await gpu.guard(() => tunedProduct(gpu, planned, tuneBudget));
  const tensors = Object.fromEntries(
    [...subject.operands, subject.result].map((one) => [one.role, specOf(one)]),
  ) as unknown as ProductTensors & { readonly [role: string]: TensorSpec };
  return await gpu.guard(() =>
    makeLayer<ProductTensors>(gpu, plan, tensors, "output", { ...(workspace && { workspace }) })
  );
}
