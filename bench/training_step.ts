/**
 * What a training step takes of the host and of the GPU, through prepared layers on ResNet-18's convolutions: forward (bias and
 * ReLU), the three gradients and an SGD update of each layer, in one compute pass.
 *   deno run -A bench/training_step.ts [--batch 32] [--steps 200] [--layers 17] [--layout nhwc] [--dtype f32]
 *
 * Milliseconds a step: `gpu` between the timestamps of its pass; `wall` from the first submission to the end of the last step,
 * over the steps, none of which waits for the one before; `encode` what the host takes to encode and submit it.
 * Without a network: deno bundle --output dist/training_step.js bench/training_step.ts
 */
import { parseArgs } from "node:util";
import {
  convProblem,
  fillTensor,
  type GpuTensor,
  gpuTensor,
  openDevice,
  prepareBiasGradient,
  prepareConvolution,
  sharedWorkspace,
  type TensorSpec,
} from "../mod.ts";
import { oneOf, wholeNumber } from "../src/cli/values.ts";
import { nsPerTick, PassTimer, TIMED_PASSES } from "../src/gpu/calibrate.ts";
import { LAYOUTS } from "../src/tensor/layout.ts";

const { values } = parseArgs({
  options: {
    batch: { type: "string", default: "32" },
    steps: { type: "string", default: "200" },
    layers: { type: "string", default: "17" },
    layout: { type: "string", default: "nhwc" },
    dtype: { type: "string", default: "f32" },
  },
});
const [batch, steps, layers] = [values.batch, values.steps, values.layers].map(wholeNumber(1));
const layout = oneOf(LAYOUTS)(values.layout);
const dtype = oneOf(["f32", "f16"])(values.dtype);

type Sizes = readonly [
  inChannels: number,
  outChannels: number,
  size: number,
  filter: number,
  stride: number,
];
const repeated = (count: number, sizes: Sizes): Sizes[] => Array<Sizes>(count).fill(sizes);
/** ResNet-18's convolutions, but for those of its shortcuts. */
const LAYERS: readonly Sizes[] = [
  [3, 64, 224, 7, 2],
  ...repeated(4, [64, 64, 56, 3, 1]),
  [64, 128, 56, 3, 2],
  ...repeated(3, [128, 128, 28, 3, 1]),
  [128, 256, 28, 3, 2],
  ...repeated(3, [256, 256, 14, 3, 1]),
  [256, 512, 14, 3, 2],
  ...repeated(3, [512, 512, 7, 3, 1]),
];

using gpu = await openDevice({ features: dtype === "f16" ? ["shader-f16"] : [] });
using resources = new DisposableStack();
const workspace = resources.use(sharedWorkspace(gpu));
const encoders: ((pass: GPUComputePassEncoder) => void)[] = [];

/** Small values, so that no run of updates leaves the type; tensors repeat them. */
const small = Float32Array.from(
  fillTensor("f32", [1 << 18], "normal", 1).data,
  (value) => value / 256,
);
const pattern = dtype === "f16"
  ? gpuTensor(gpu, { dtype, shape: [1 << 18] }, Float16Array.from(small))
  : gpuTensor(gpu, { dtype, shape: [1 << 18] }, small);

function tensorOf(spec: TensorSpec): GpuTensor {
  const made = resources.use(gpuTensor(gpu, spec));
  const encoder = gpu.device.createCommandEncoder();
  for (let at = 0; at < made.buffer.size; at += pattern.buffer.size) {
    const bytes = Math.min(pattern.buffer.size, made.buffer.size - at);
    encoder.copyBufferToBuffer(pattern.buffer, 0, made.buffer, at, bytes);
  }
  gpu.device.queue.submit([encoder.finish()]);
  return made;
}

const module = gpu.device.createShaderModule({
  code: `${dtype === "f16" ? "enable f16;" : ""}
@group(0) @binding(0) var<storage, read> gradient: array<${dtype}>;
@group(0) @binding(1) var<storage, read_write> weights: array<${dtype}>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
  let i = id.x + id.y * grid.x * 256u;
  if (i < arrayLength(&weights)) { weights[i] -= ${dtype}(1e-2) * gradient[i]; }
}`,
});
const pipeline = gpu.device.createComputePipeline({
  layout: "auto",
  compute: { module, entryPoint: "main" },
});

/** Weights less a hundredth of their gradient, one thread a value. */
function update(weights: GpuTensor, gradient: GpuTensor) {
  const bindGroup = gpu.device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [gradient, weights].map(({ buffer }, binding) => ({ binding, resource: { buffer } })),
  });
  const groups = Math.ceil(weights.shape.reduce((all, size) => all * size, 1) / 256);
  const rows = Math.ceil(groups / 65535);
  return (pass: GPUComputePassEncoder) => {
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bindGroup);
    pass.dispatchWorkgroups(Math.ceil(groups / rows), rows);
  };
}

for (const [index, sizes] of LAYERS.slice(0, layers).entries()) {
  const [inChannels, outChannels, size, filter, stride] = sizes;
  const problem = convProblem({
    batch: batch!,
    inChannels,
    outChannels,
    inputSize: [size, size],
    filterSize: [filter, filter],
    stride,
    padding: (filter - 1) / 2,
  });
  const shared = { layout, dtype, workspace } as const;
  const prepare = async (op: "fwd" | "bwd-data" | "bwd-filter", epilogue = {}) =>
    resources.use(await prepareConvolution(gpu, { ...problem, op }, { ...shared, epilogue }));
  const forward = await prepare("fwd", { bias: true, activation: "relu" });
  const toFilter = await prepare("bwd-filter");
  const toBias = resources.use(await prepareBiasGradient(gpu, problem, shared));
  const { tensors } = forward;
  const x = tensorOf(tensors.input), w = tensorOf(tensors.filter), b = tensorOf(tensors.bias!);
  const y = tensorOf(tensors.output), dy = tensorOf(tensors.output), dw = tensorOf(tensors.filter);
  const db = tensorOf(toBias.tensors.bias);
  encoders.push(
    (pass) => forward.encode(pass, { input: x, filter: w, bias: b, output: y }),
    (pass) => toBias.encode(pass, { output: dy, bias: db }),
    (pass) => toFilter.encode(pass, { input: x, output: dy, filter: dw }),
    update(w, dw),
    update(b, db),
  );
  // The first layer's input needs no gradient.
  if (index === 0) continue;
  const toInput = await prepare("bwd-data");
  const dx = tensorOf(tensors.input);
  encoders.push((pass) => toInput.encode(pass, { output: dy, filter: w, input: dx }));
}
await gpu.settle("Cannot prepare");

const tickNs = await nsPerTick(gpu);
const timer = PassTimer.of(gpu);

/** Runs steps; milliseconds of all of them. */
async function run(count: number): Promise<{ wall: number; encode: number; gpu: number }> {
  const start = performance.now();
  for (let step = 0; step < count; step++) {
    const encoder = gpu.device.createCommandEncoder();
    const pass = timer.beginPass(encoder, step);
    for (const encode of encoders) encode(pass);
    pass.end();
    if (step === count - 1) timer.resolve(encoder, count);
    gpu.device.queue.submit([encoder.finish()]);
  }
  const encode = performance.now() - start;
  const ticks = await timer.read(count, "Cannot time");
  const ran = Array.from({ length: count }, (_, step) => ticks[2 * step + 1]! - ticks[2 * step]!);
  const ns = Number(ran.reduce((sum, one) => sum + one, 0n)) * tickNs;
  return { wall: performance.now() - start, encode, gpu: ns / 1e6 };
}

// The clocks rise, and what is bound at first use is bound.
await run(Math.min(20, steps!));
const total = { wall: 0, encode: 0, gpu: 0 };
for (let done = 0; done < steps!; done += TIMED_PASSES) {
  const some = await run(Math.min(TIMED_PASSES, steps! - done));
  for (const what of ["wall", "encode", "gpu"] as const) total[what] += some[what];
}
await gpu.settle("Cannot time");
const each = (ms: number) => `${(ms / steps!).toFixed(3)} ms`;
console.log(`${gpu.info.adapter}, ${layout}, ${dtype}, batch ${batch}, ${steps} steps`);
console.log(`wall ${each(total.wall)}, gpu ${each(total.gpu)}, encode ${each(total.encode)}`);
