/** Layers that compute on tensors which stay on the device. */
export {
  type BiasGradientOptions,
  type BiasGradientTensors,
  prepareBiasGradient,
} from "./bias_gradient.ts";
export {
  type ConvolutionTensors,
  type ConvPlanOptions,
  prepareConvolution,
  type PrepareConvolutionOptions,
} from "./convolution.ts";
export { type GpuDType, GpuTensor, gpuTensor, type TensorSpec } from "./gpu_tensor.ts";
export {
  type Bound,
  type Layer,
  type LayerOptions,
  type LayerTensors,
  sharedWorkspace,
  type Workspace,
} from "./layer.ts";
export {
  prepareProduct,
  type PrepareProductOptions,
  type ProductPlanOptions,
  type ProductTensors,
} from "./product.ts";
export type { TuneOptions } from "./plan_cache.ts";
