/**
 * The library as far as it runs in a web page: no files and nothing of Deno. A device comes from
 * {@linkcode openBrowserDevice}.
 *
 * @module
 */

export {
  checkConvolution,
  convolutionRecord,
  type ConvolutionRecordOptions,
  convolve,
  type Convolved,
  type ConvolveOptions,
} from "./src/convolve.ts";
export { checkProduct, type Multiplied, multiply, type MultiplyOptions } from "./src/multiply.ts";
export type { Checked } from "./src/run/check.ts";
export { type VerifiedResult, verify, type VerifyResultOptions } from "./src/verify/library.ts";

export {
  GpuTensor,
  gpuTensor,
  type Layer,
  prepareBiasGradient,
  prepareConvolution,
  prepareProduct,
  sharedWorkspace,
  type TensorSpec,
  type Workspace,
} from "./src/layers/mod.ts";

export { parseNpy } from "./src/npy/source.ts";
export { type DType } from "./src/tensor/dtype.ts";
export { fillTensor } from "./src/tensor/fill.ts";
export {
  convertLayout,
  type FilterLayout,
  filterLayoutFor,
  type Layout,
} from "./src/tensor/layout.ts";
export { type Tensor, tensor } from "./src/tensor/tensor.ts";
export { type AccuracyReport, compareTensors } from "./src/accuracy/mod.ts";

export {
  type ConvProblem,
  convProblem,
  directFlops,
  type Operation,
  tensorShape,
} from "./src/problem/conv_problem.ts";
export { convTransposeProblem } from "./src/problem/conv_transpose.ts";
export { parseDescriptor, printDescriptor } from "./src/problem/descriptor.ts";
export { type Activation } from "./src/problem/activations.ts";
export { type Epilogue, NO_EPILOGUE } from "./src/problem/epilogue.ts";
export { problemFromShapes } from "./src/problem/from_shapes.ts";
export { type GemmProblem, gemmProblem } from "./src/problem/gemm_problem.ts";

export type { AlgorithmName } from "./src/algorithms/plan.ts";
export { DEFAULT_LIMITS, type DeviceLimits, type Plan } from "./src/algorithms/plan.ts";
export { planConv, supportedAlgorithms, tryPlanConv } from "./src/algorithms/planner.ts";
export { planGemm } from "./src/algorithms/gemm/plan.ts";
export { isRefusal } from "./src/algorithms/refusal.ts";
export type { PlanRequest } from "./src/algorithms/request.ts";
export type { Schedule } from "./src/algorithms/schedule.ts";

export { openBrowserDevice } from "./src/gpu/browser.ts";
export { GpuDevice } from "./src/gpu/gpu_device.ts";
export { referenceGemm } from "./src/reference/gemm.ts";
export { referenceConv } from "./src/reference/reference.ts";
export type {
  CaseRecord,
  EnvironmentRecord,
  ReportRecord,
  TuningRecord,
} from "./src/report/record.ts";

export { DeviceError, UnsupportedError } from "./src/errors.ts";
export { VERSION } from "./src/version.ts";
