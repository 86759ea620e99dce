import { planBiasGradient } from "../../../src/algorithms/bias_gradient/plan.ts";
import { H200 } from "../../../src/algorithms/device/h200.ts";
import type { Kernel } from "../../../src/kernels/kernel.ts";
import { convProblem, FLOAT_DTYPES } from "../../../src/problem/conv_problem.ts";
import { LAYOUTS } from "../../../src/tensor/layout.ts";
import { WGSL_LIMITS as limits } from "./limits.ts";

/** Gradients of biases of every layout and pair of element types, of vectors and single elements, in one pass and in two. */
export function biasGradientKernels(): Kernel[] {
  const kernels: Kernel[] = [];
  for (const outChannels of [40, 3]) {
    for (const inputSize of [[96, 96], [5, 5]]) {
      const filterSize = [1, 1];
      const problem = convProblem({ batch: 3, inChannels: 1, outChannels, inputSize, filterSize });
      for (const layout of LAYOUTS) {
        for (const dtype of FLOAT_DTYPES) {
          for (const outDtype of FLOAT_DTYPES) {
            const sizes = dtype === outDtype ? "uniform" : "constant";
            const request = { problem, layout, dtype, outDtype, sizes, device: H200 } as const;
            const least = dtype === "f16"
              ? limits
              : { ...limits, maxStorageBufferBindingSize: 2 ** 20 };
            kernels.push(
              ...planBiasGradient({ ...request, limits: least }).passes.map(({ kernel }) => kernel),
            );
          }
        }
      }
    }
  }
  return kernels;
}
