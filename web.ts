/**
 * The library as far as it runs in a web page: no files and nothing of Deno. A device comes from
 * {@linkcode openBrowserDevice}.
 *
 * @module
 */

export {
  DeviceError,
  InputRangeError,
  InputSyntaxError,
  InputTypeError,
  UnsupportedError,
} from "./src/errors.ts";
export { VERSION } from "./src/version.ts";
export * from "./src/convolve.ts";
export {
  checkProduct,
  type CheckProductOptions,
  type Multiplied,
  multiply,
  type MultiplyOptions,
} from "./src/multiply.ts";

export * from "./src/tensor/dtype.ts";
export * from "./src/tensor/fill.ts";
export * from "./src/tensor/layout.ts";
export * from "./src/tensor/tensor.ts";

export * from "./src/problem/conv_problem.ts";
export * from "./src/problem/descriptor.ts";
export * from "./src/problem/epilogue.ts";
export * from "./src/problem/from_shapes.ts";
export * from "./src/problem/gemm_problem.ts";
export * from "./src/problem/gemm_suite.ts";
export * from "./src/problem/gemm_arithmetic.ts";

export type { Rival } from "./src/algorithms/rival.ts";
export { H200, modelOf, softwareDevice } from "./src/algorithms/device/h200.ts";
export type { DeviceModel, DeviceRates, DeviceShares } from "./src/algorithms/device/model.ts";
export * from "./src/algorithms/gemm/plan.ts";
export * from "./src/kernels/main_loop_variant.ts";
export * from "./src/algorithms/plan.ts";
export * from "./src/algorithms/planner.ts";
export type { Algorithm, HeededOption } from "./src/algorithms/algorithm.ts";
export type { AlgorithmName } from "./src/algorithms/names.ts";
export { algorithmNames, algorithms, registerAlgorithm } from "./src/algorithms/registry.ts";
export type { PlanRequest } from "./src/algorithms/request.ts";

export { browserProvider, openBrowserDevice } from "./src/gpu/browser.ts";
export * from "./src/gpu/buffers.ts";
export * from "./src/gpu/execute.ts";
export { GpuDevice } from "./src/gpu/gpu_device.ts";
export type { OpenOptions } from "./src/gpu/open.ts";

export * from "./src/reference/gemm.ts";
export * from "./src/reference/reference.ts";

export * from "./src/accuracy/mod.ts";
export type { Checked } from "./src/bench/check.ts";
export type { HostOperands } from "./src/bench/operands.ts";

export * from "./src/report/record.ts";
