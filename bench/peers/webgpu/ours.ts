import type { GpuDevice } from "../../../src/gpu/gpu_device.ts";
import { gpuTensor, prepareConvolution, prepareProduct } from "../../../src/layers/mod.ts";
import type { Library, Peer } from "./peer.ts";

/** wgconv itself, a submission a call. */
export function ours(gpu: GpuDevice, version: string): Peer {
  return {
    version,
    async prepare({ conv, gemm, layout = "nhwc", half, operands }) {
      const dtype = half ? "f16" : "f32";
      const layer: Library = gemm
        ? await prepareProduct(gpu, gemm, { dtype })
        : await prepareConvolution(gpu, conv!, { dtype, layout, filterLayout: "kcrs" });
      const bound: Library = { [layer.result]: gpuTensor(gpu, layer.tensors[layer.result]) };
      for (const { role, data } of operands) {
        bound[role] = gpuTensor(gpu, layer.tensors[role], data as Library);
      }
      return {
        call: () => layer.run(bound),
        result: () => (layer.run(bound), bound[layer.result].read()),
        dispose: () =>
          [layer, ...Object.values<Library>(bound)].map((one) => one[Symbol.dispose]()),
      };
    },
  };
}
