/**
 * Convolutions and matrix products on any GPU that has Vulkan, Metal or D3D12, through WebGPU.
 *
 * - On arrays of the host: {@linkcode convolve} and {@linkcode multiply}, checked by {@linkcode checkConvolution} and
 *   {@linkcode checkProduct}.
 * - On tensors that stay on the device: {@linkcode prepareConvolution}, {@linkcode prepareProduct} and
 *   {@linkcode prepareBiasGradient} on {@linkcode gpuTensor}.
 * - Results of any kernel: {@linkcode verify}.
 * - Without a device: {@linkcode planConv}, {@linkcode planGemm}, {@linkcode referenceConv} and {@linkcode referenceGemm}.
 *
 * A device comes from {@linkcode openDevice}, a problem from {@linkcode convProblem}, {@linkcode problemFromShapes} or
 * {@linkcode parseDescriptor}. Types of parts, and what these are made of, are exports of `internals.ts`.
 *
 * @module
 */

export * from "./web.ts";

export { openDevice } from "./src/gpu/device.ts";
export { readNpy, readNpz, writeNpy, writeNpz } from "./src/npy/mod.ts";
