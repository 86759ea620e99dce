/**
 * Convolutions on any GPU that has Vulkan, Metal or D3D12, through WebGPU.
 *
 * The way of the data: `.npy` files → {@linkcode Tensor} → {@linkcode ConvProblem} → {@linkcode planConv} →
 * {@linkcode execute} → {@linkcode measureAccuracy} against {@linkcode referenceConv}.
 *
 * @module
 */

export * from "./src/errors.ts";
export { VERSION } from "./src/version.ts";

export * from "./src/tensor/dtype.ts";
export * from "./src/tensor/fill.ts";
export * from "./src/tensor/layout.ts";
export * from "./src/tensor/tensor.ts";
export * from "./src/npy/mod.ts";

export * from "./src/problem/conv_problem.ts";
export * from "./src/problem/descriptor.ts";
export * from "./src/problem/epilogue.ts";
export * from "./src/problem/from_shapes.ts";
export * from "./src/problem/gemm_problem.ts";
export * from "./src/problem/gemm_suite.ts";

export * from "./src/algorithms/gemm/plan.ts";
export * from "./src/algorithms/plan.ts";
export * from "./src/algorithms/planner.ts";
export * from "./src/algorithms/request.ts";

export * from "./src/gpu/buffers.ts";
export * from "./src/gpu/device.ts";
export * from "./src/gpu/execute.ts";
export { type Backend, BACKENDS } from "./src/gpu/provider.ts";

export * from "./src/reference/gemm.ts";
export * from "./src/reference/reference.ts";

export * from "./src/accuracy/mod.ts";

export * from "./src/report/record.ts";
