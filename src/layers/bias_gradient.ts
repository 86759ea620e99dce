import { tryPlanBiasGradient } from "../algorithms/bias_gradient/plan.ts";
import type { GpuDevice } from "../gpu/gpu_device.ts";
import {
  type ConvProblem,
  convProblem,
  FLOAT_DTYPES,
  tensorShape,
} from "../problem/conv_problem.ts";
import { type Layout, LAYOUTS, shapeInLayout } from "../tensor/layout.ts";
import { expectCall } from "./expect_call.ts";
import type { TensorSpec } from "./gpu_tensor.ts";
import { type Layer, type LayerOptions, makeLayer } from "./layer.ts";
import { planOn } from "./plan_cache.ts";

/** How a bias' gradient is prepared. */
export interface BiasGradientOptions extends LayerOptions {
  /** Of the output's gradient; f32 where absent. f16 needs a device that was opened with `shader-f16`. */
  readonly dtype?: "f32" | "f16" | "bf16";
  /** Of the bias' gradient; as the output's where absent. */
  readonly outDtype?: "f32" | "f16" | "bf16";
  /** Of the output's gradient; nchw where absent. */
  readonly layout?: Layout;
}

/** The tensors of a bias' gradient. */
export interface BiasGradientTensors {
  /** ∇Y of [N, K, P, Q]. */
  readonly output: TensorSpec;
  /** The result: K values. */
  readonly bias: TensorSpec;
}

/**
 * Makes the gradient of a convolution's bias ready to run on tensors that stay on the device: the output's gradient summed
 * over images and places. Sums are in f32, compensated where the driver's compiler lets them be, and added in one order: the
 * same input gives the same bits again.
 *
 * @param problem The convolution's; its operation does not matter.
 * @throws {UnsupportedError} where the device does not suffice
 * @throws {DeviceError} where a kernel does not compile, or the device is lost
 * @example
 * ```ts
 * import { gpuTensor, openDevice, parseDescriptor, prepareBiasGradient } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * const problem = parseDescriptor("mb1ic1ih2oc2kh1");
 * using layer = await prepareBiasGradient(gpu, problem, { layout: "nchw" });
 * using output = gpuTensor(gpu, layer.tensors.output, Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8));
 * using bias = gpuTensor(gpu, layer.tensors.bias);
 * layer.run({ output, bias });
 * assert.deepEqual([...await bias.read()], [10, 26]);
 * ```
 */
export async function prepareBiasGradient(
  gpu: GpuDevice,
  given: ConvProblem,
  options: BiasGradientOptions = {},
): Promise<Layer<BiasGradientTensors>> {
  const { workspace, ...wanted } = options;
  const kinds = { dtype: FLOAT_DTYPES, outDtype: FLOAT_DTYPES, layout: LAYOUTS };
  expectCall("Cannot sum a bias' gradient", gpu, wanted, kinds);
  const problem = convProblem(given);
  const { dtype = "f32", outDtype = dtype, layout = "nchw" } = wanted;
  const asked = { gradient: "bias", problem, dtype, outDtype, layout } as const;
  const plan = planOn(
    gpu,
    asked,
    {},
    ({ limits, device }) => tryPlanBiasGradient({ ...asked, limits, ...(device && { device }) }),
  );
  const tensors: BiasGradientTensors = {
    output: { dtype, shape: shapeInLayout(tensorShape(problem, "output"), layout), layout },
    bias: { dtype: outDtype, shape: [problem.outChannels] },
  };
  return await gpu.guard(() =>
    makeLayer<BiasGradientTensors>(gpu, plan, tensors, "bias", { ...(workspace && { workspace }) })
  );
}
