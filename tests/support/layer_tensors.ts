/** Tensors of a layer, for the tests that run one. */
import type { GpuDevice } from "../../src/gpu/gpu_device.ts";
import { type GpuTensor, gpuTensor, type TensorSpec } from "../../src/layers/gpu_tensor.ts";
import type { Layer } from "../../src/layers/layer.ts";
import type { HostData } from "../../src/run/subject.ts";
import { fillTensor } from "../../src/tensor/fill.ts";

/** Seeded values for a tensor. */
function valuesOf({ dtype, shape }: TensorSpec, seed: number): Float32Array<ArrayBuffer> {
  return fillTensor(dtype, shape, "normal", seed).data as Float32Array<ArrayBuffer>;
}

/** Tensors of seeded values for all of a layer's, and these values; the result is left zero. */
export function tensorsOf<T extends Layer["tensors"]>(
  gpu: GpuDevice,
  { tensors, result }: Layer<T>,
) {
  const data: Record<string, HostData> = {};
  const made = Object.fromEntries(
    Object.entries(tensors as Record<string, TensorSpec>).map(([name, spec], seed) => {
      if (name === result) return [name, gpuTensor(gpu, spec)];
      data[name] = valuesOf(spec, seed);
      return [name, gpuTensor(gpu, spec, valuesOf(spec, seed))];
    }),
  );
  return { made: made as { readonly [name in keyof T]-?: GpuTensor }, data };
}
