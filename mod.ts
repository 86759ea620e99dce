/**
 * Convolutions on any GPU that has Vulkan, Metal or D3D12, through WebGPU.
 *
 * The way of the data: `.npy` files → {@linkcode Tensor} → {@linkcode ConvProblem} → {@linkcode planConv} →
 * {@linkcode execute} → {@linkcode measureAccuracy} against {@linkcode referenceConv}; {@linkcode convolve} and
 * {@linkcode checkConvolution} go it in two steps.
 *
 * @module
 */

export * from "./web.ts";

export * from "./src/errors.ts";
export * from "./src/npy/mod.ts";
export * from "./src/gpu/device.ts";
export { BACKENDS } from "./src/gpu/provider.ts";
