/**
 * What `mod.ts` is made of: planning, kernels, buffers, the gate, files and records piece by piece, for tests, benchmarks,
 * tools and algorithms of one's own. It has every name that `mod.ts` refers to, and changes more often.
 *
 * @module
 */

export * from "./src/errors.ts";
export { VERSION } from "./src/version.ts";
export * from "./src/convolve.ts";
export * from "./src/multiply.ts";
export * from "./src/verify/library.ts";

export * from "./src/tensor/dtype.ts";
export * from "./src/tensor/fill.ts";
export * from "./src/tensor/layout.ts";
export * from "./src/tensor/tensor.ts";

export * from "./src/layers/mod.ts";

export * from "./src/problem/conv_problem.ts";
export * from "./src/problem/conv_transpose.ts";
export * from "./src/problem/descriptor.ts";
export * from "./src/problem/activations.ts";
export * from "./src/problem/epilogue.ts";
export * from "./src/problem/from_shapes.ts";
export * from "./src/problem/gemm_problem.ts";
export type { ByteDType, IntegerOperands } from "./src/problem/conv_elements.ts";
export * from "./src/problem/gemm_suite.ts";
export * from "./src/problem/gemm_problem.ts";
export {
  type AxisValues,
  bothSides,
  type PaddingMode,
  type Paddings,
} from "./src/problem/padding.ts";
export type {
  AxisTile,
  OperandRounding,
  PlanArithmetic,
  TileShare,
} from "./src/problem/plan_arithmetic.ts";

export type { Candidate, Rival } from "./src/algorithms/plan.ts";
export { type Balance, BALANCES, scheduleText } from "./src/algorithms/schedule.ts";
export { type MathChoice, MATHS } from "./src/algorithms/request.ts";
export type { TunedChoice, TuningTable } from "./src/algorithms/request.ts";
export {
  isRefusal,
  type Planned,
  type Refusal,
  type RefusalKind,
} from "./src/algorithms/refusal.ts";
export { H200 } from "./src/algorithms/device/h200.ts";
export { softwareDevice } from "./src/algorithms/device/software.ts";
export { modelOf } from "./src/algorithms/device/known.ts";
export type {
  DeviceModel,
  DeviceRates,
  DeviceShares,
  SlicedPolicies,
} from "./src/algorithms/device/model.ts";
export { type BiasGradientRequest, planBiasGradient } from "./src/algorithms/bias_gradient/plan.ts";
export type { MatrixUnit, MatrixUnits } from "./src/kernels/matrix_units.ts";
export { planGemm, tryPlanGemm } from "./src/algorithms/gemm/plan.ts";
export type { GemmRequest } from "./src/algorithms/gemm/operands.ts";
export type { BindingKind, Kernel } from "./src/kernels/kernel.ts";
export type { SizeMode } from "./src/kernels/module.ts";
export * from "./src/kernels/variant.ts";
export * from "./src/algorithms/plan.ts";
export * from "./src/algorithms/planner.ts";
export type { Algorithm, AlgorithmOption, OptionChoice } from "./src/algorithms/algorithm.ts";
export type { AlgorithmName } from "./src/algorithms/plan.ts";
export { algorithmNames, algorithms, registerAlgorithm } from "./src/algorithms/registry.ts";
export type { PlanRequest } from "./src/algorithms/request.ts";
export type { Schedule } from "./src/algorithms/schedule.ts";

export { browserProvider, openBrowserDevice } from "./src/gpu/browser.ts";
export * from "./src/gpu/buffers.ts";
export * from "./src/gpu/execute.ts";
export { GpuDevice } from "./src/gpu/gpu_device.ts";
export type { AdapterSummary } from "./src/gpu/adapter.ts";
export type { OpenOptions } from "./src/gpu/open.ts";
export type { Backend, GpuProvider, ProviderName } from "./src/gpu/provider.ts";

export { type GemmInputs, type GemmReferenceOptions, referenceGemm } from "./src/reference/gemm.ts";
export type { HostArray } from "./src/reference/geometry.ts";
export * from "./src/reference/reference.ts";

export * from "./src/accuracy/mod.ts";
export type { Checked } from "./src/run/check.ts";
export type { Layouts } from "./src/run/conv_subject.ts";
export type { CheckMode } from "./src/run/coverage.ts";
export type { HostData, HostOperands } from "./src/run/subject.ts";

export * from "./src/report/record.ts";

export * from "./src/npy/mod.ts";
export * from "./src/gpu/device.ts";
export { BACKENDS } from "./src/gpu/provider.ts";
