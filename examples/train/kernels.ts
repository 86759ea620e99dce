/** What a training does beside its convolutions, a few lines of WGSL each: all on the device. */
import type { GpuDevice } from "../../mod.ts";
import { BATCH, CLASSES, MOMENTUM, PLACES, RATE } from "./network.ts";
import { PIXELS } from "./digits.ts";

/** A kernel on buffers. */
export type Encode = (pass: GPUComputePassEncoder) => void;

/** Element type of activations and weights. */
export type Half = "f32" | "f16";

/** Compiles a body that is run for each `i` of `count` on buffers `b0`, `b1`, ... of these types; those read first. */
function kernel(
  gpu: GpuDevice,
  types: readonly string[],
  count: number,
  body: string,
  declarations = "",
): (...buffers: GPUBuffer[]) => Encode {
  const half = types.some((type) => type.includes("f16"));
  const bindings = types.map((type, i) =>
    `@group(0) @binding(${i}) var<storage, read_write> b${i}: array<${type}>;`
  );
  const code = [
    half ? "enable f16;" : "",
    ...bindings,
    declarations,
    "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {",
    `  let i = id.x;\n  if (i >= ${count}u) { return; }`,
    body,
    "}",
  ].join("\n");
  const { device } = gpu;
  const module = device.createShaderModule({ code });
  const pipeline = device.createComputePipeline({
    layout: "auto",
    compute: { module, entryPoint: "main" },
  });
  const layout = pipeline.getBindGroupLayout(0);
  return (...buffers) => {
    const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
    const bindGroup = device.createBindGroup({ layout, entries });
    return (pass) => {
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, bindGroup);
      pass.dispatchWorkgroups(Math.ceil(count / 64));
    };
  };
}

/** Copies the pictures of a step, b2[b1·BATCH ...], from all of them, b0, to b3. */
export function gatherKernel(gpu: GpuDevice, type: Half) {
  return kernel(
    gpu,
    ["f32", "u32", "i32", type],
    BATCH * PIXELS,
    `b3[i] = ${type}(b0[u32(b2[b1[0] * ${BATCH}u + i / ${PIXELS}u]) * ${PIXELS}u + i % ${PIXELS}u]);`,
  );
}

/**
 * The loss of a picture, −log of the share that softmax gives its class, whether it was known, and the gradient of its
 * logits times `scale`: of logits b0, step b1, order b2 and labels b3 to gradients b4, losses b5 and hits b6.
 */
export function lossKernel(gpu: GpuDevice, type: Half, scale: number) {
  return kernel(
    gpu,
    [type, "u32", "i32", "i32", type, "f32", "f32"],
    BATCH,
    `  var logits: array<f32, ${CLASSES}>;
  var most = 0u;
  for (var k = 0u; k < ${CLASSES}u; k++) {
    for (var place = 0u; place < ${PLACES}u; place++) {
      logits[k] += f32(b0[(i * ${PLACES}u + place) * ${CLASSES}u + k]) / ${PLACES}.0;
    }
    if (logits[k] > logits[most]) { most = k; }
  }
  var sum = 0.0;
  for (var k = 0u; k < ${CLASSES}u; k++) { sum += exp(logits[k] - logits[most]); }
  let at = b1[0] * ${BATCH}u + i;
  let label = u32(b3[b2[at]]);
  b5[at] = log(sum) + logits[most] - logits[label];
  b6[at] = select(0.0, 1.0, most == label);
  for (var k = 0u; k < ${CLASSES}u; k++) {
    let share = exp(logits[k] - logits[most]) / sum - select(0.0, 1.0, k == label);
    for (var place = 0u; place < ${PLACES}u; place++) {
      b4[(i * ${PLACES}u + place) * ${CLASSES}u + k] = ${type}(share * ${scale / BATCH / PLACES});
    }
  }`,
  );
}

/** The gradient before ReLU, b1, of the one behind it, where results are b0. */
export function reluKernel(gpu: GpuDevice, type: Half, count: number) {
  return kernel(gpu, [type, type], count, `if (b0[i] <= ${type}(0)) { b1[i] = ${type}(0); }`);
}

/** Momentum b1 and weights b2 by gradient b0, which is so many times as large; b3 are the weights that layers read. */
export function updateKernel(gpu: GpuDevice, type: Half, count: number, scale: number) {
  return kernel(
    gpu,
    ["f32", "f32", "f32", type],
    count,
    `  b1[i] = ${MOMENTUM} * b1[i] + b0[i] * ${1 / scale};
  b2[i] -= ${RATE} * b1[i];
  b3[i] = ${type}(b2[i]);`,
  );
}

/** Counts a step. */
export function tickKernel(gpu: GpuDevice) {
  return kernel(gpu, ["u32"], 1, "b0[0] += 1u;");
}
