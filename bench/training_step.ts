/**
 * How much of a training step's time is spent outside the GPU, through prepared layers on ResNet-18's convolutions: forward
 * (bias and ReLU), backward-data, backward-filter, the bias' gradient and an SGD update for each layer.
 *   deno run -A bench/training_step.ts [--batch 32] [--steps 200] [--layers 17] [--size 224] [--layout nhwc] [--dtype f32] [--each]
 *
 * `gpu` is the time between the timestamps that a step's compute pass begins and ends with; `wall` is the host's time from the
 * first submission to the end of the last step, over the steps: no step waits for the one before. `encode` is what the host
 * needs to encode and submit a step. Without timestamps there are `wall` and `encode` alone. Counts of buffers and the bytes
 * of the process show whether memory stays flat.
 *
 * `--each` times every layer by itself, in microseconds, and says at how many GB/s the gradients of biases read theirs.
 *
 * For a machine without a network: deno bundle --output dist/training_step.js bench/training_step.ts
 */
import {
  type BoundPlan,
  type ConvProblem,
  convProblem,
  execute,
  fillTensor,
  type GpuDevice,
  type GpuTensor,
  gpuTensor,
  LAYOUTS,
  openDevice,
  prepareBiasGradient,
  prepareConvolution,
  printDescriptor,
  sharedWorkspace,
  type TensorSpec,
} from "../mod.ts";
import { oneOf, readOptions, wholeNumber } from "../examples/arguments.ts";
import { nsPerTick } from "../src/gpu/calibrate.ts";
import { PassTimer, TIMED_PASSES } from "../src/gpu/timer.ts";

const DOING = "Cannot measure";
const USAGE = "deno run -A bench/training_step.ts [--batch 32] [--steps 200] [--layers 17] " +
  "[--size 224] [--layout nhwc] [--dtype f32] [--each]";
const options = readOptions(DOING, USAGE, {
  batch: { type: "string", default: "32" },
  steps: { type: "string", default: "200" },
  layers: { type: "string", default: "17" },
  size: { type: "string", default: "224" },
  layout: { type: "string", default: "nhwc" },
  dtype: { type: "string", default: "f32" },
  each: { type: "boolean", default: false },
});
const batch = wholeNumber(DOING, "--batch", options.batch);
const steps = wholeNumber(DOING, "--steps", options.steps);
const most = wholeNumber(DOING, "--layers", options.layers);
const pixels = wholeNumber(DOING, "--size", options.size);
const layout = oneOf(DOING, "--layout", options.layout, LAYOUTS);
const dtype = oneOf(DOING, "--dtype", options.dtype, ["f32", "f16"]);

/** ResNet-18's convolutions, but for those of its shortcuts: channels in and out, size, filter, stride. */
const LAYERS: readonly (readonly [number, number, number, number, number])[] = [
  [3, 64, 224, 7, 2],
  ...Array.from({ length: 4 }, () => [64, 64, 56, 3, 1] as const),
  [64, 128, 56, 3, 2],
  ...Array.from({ length: 3 }, () => [128, 128, 28, 3, 1] as const),
  [128, 256, 28, 3, 2],
  ...Array.from({ length: 3 }, () => [256, 256, 14, 3, 1] as const),
  [256, 512, 14, 3, 2],
  ...Array.from({ length: 3 }, () => [512, 512, 7, 3, 1] as const),
];

function problemOf([inChannels, outChannels, size, filter, stride]: typeof LAYERS[number]) {
  const padding = (filter - 1) / 2;
  const side = Math.max(1, Math.round(size * pixels / 224));
  return convProblem({
    batch,
    inChannels,
    outChannels,
    inputSize: [side, side],
    filterSize: [filter, filter],
    stride: [stride, stride],
    paddingBegin: [padding, padding],
  });
}

/** Weights less a hundredth of their gradient, one thread a value. */
function sgdUpdate(gpu: GpuDevice) {
  const half = dtype === "f16";
  const module = gpu.device.createShaderModule({
    code: `${half ? "enable f16;" : ""}
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
  return (weights: GpuTensor, gradient: GpuTensor) => {
    const bindGroup = gpu.device.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: [gradient, weights].map(({ buffer }, binding) => ({
        binding,
        resource: { buffer },
      })),
    });
    const groups = Math.ceil(weights.shape.reduce((all, size) => all * size, 1) / 256);
    const rows = Math.ceil(groups / 65535);
    return (pass: GPUComputePassEncoder) => {
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, bindGroup);
      pass.dispatchWorkgroups(Math.ceil(groups / rows), rows);
    };
  };
}

using gpu = await openDevice(dtype === "f16" ? { features: ["shader-f16"] } : {});
let made = 0;
const { createBuffer } = gpu.device;
gpu.device.createBuffer = (descriptor) => {
  made++;
  return createBuffer.call(gpu.device, descriptor);
};
using resources = new DisposableStack();
const workspace = resources.use(sharedWorkspace(gpu));
const update = sgdUpdate(gpu);
const encoders: ((pass: GPUComputePassEncoder) => void)[] = [];
/** Forward, backward-filter, the bias' gradient and, but for the first, backward-data of each layer. */
const bound: { name: string; plans: BoundPlan[]; bytes: number }[] = [];
let passes = 0;

/** Small values, so that no run of updates leaves the type; tensors repeat them, since filling gigabytes takes minutes. */
const { data } = fillTensor("f32", [1 << 18], "normal", 1);
const small = Float32Array.from(data, (value) => value / 256);
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

async function addLayer(problem: ConvProblem, index: number): Promise<void> {
  const shared = { layout, dtype, workspace } as const;
  const epilogue = { bias: true, activation: "relu" } as const;
  const forward = resources.use(await prepareConvolution(gpu, problem, { ...shared, epilogue }));
  const toFilter = resources.use(
    await prepareConvolution(gpu, { ...problem, op: "bwd-filter" }, shared),
  );
  const toBias = resources.use(await prepareBiasGradient(gpu, problem, shared));
  const { input, filter, output } = forward.tensors;
  const x = tensorOf(input), w = tensorOf(filter), b = tensorOf(forward.tensors.bias!);
  const y = tensorOf(output), dy = tensorOf(output), dw = tensorOf(filter);
  const db = tensorOf(toBias.tensors.bias);
  encoders.push(
    (pass) => forward.encode(pass, { input: x, filter: w, bias: b, output: y }),
    (pass) => toBias.encode(pass, { output: dy, bias: db }),
    (pass) => toFilter.encode(pass, { input: x, output: dy, filter: dw }),
  );
  const plans = [
    forward.bind({ input: x, filter: w, bias: b, output: y }),
    toFilter.bind({ input: x, output: dy, filter: dw }),
    toBias.bind({ output: dy, bias: db }),
  ];
  // The first layer's input needs no gradient.
  if (index > 0) {
    const toInput = resources.use(
      await prepareConvolution(gpu, { ...problem, op: "bwd-data" }, shared),
    );
    const dx = tensorOf(input);
    encoders.push((pass) => toInput.encode(pass, { output: dy, filter: w, input: dx }));
    plans.push(toInput.bind({ output: dy, filter: w, input: dx }));
  }
  encoders.push(update(w, dw), update(b, db));
  passes += plans.reduce((sum, { steps }) => sum + steps.length, 2);
  console.log(`${printDescriptor(problem)}: ${plans.map(({ plan }) => plan.kernel).join(", ")}`);
  bound.push({ name: printDescriptor(problem), plans, bytes: dy.buffer.size });
}

console.log(`${gpu.info.adapter}, ${layout}, ${dtype}, batch ${batch}`);
const start = performance.now();
for (const [index, layer] of LAYERS.slice(0, most).entries()) {
  await addLayer(problemOf(layer), index);
}
await gpu.settle("Cannot prepare");
console.log(
  `prepared in ${((performance.now() - start) / 1000).toFixed(2)} s, ${passes} dispatches a step`,
);

/** Submits one step; timed where `index` is given. */
function submitStep(timer?: PassTimer, index = 0, last = false): void {
  const encoder = gpu.device.createCommandEncoder();
  const pass = timer?.beginPass(encoder, index) ?? encoder.beginComputePass();
  for (const encode of encoders) encode(pass);
  pass.end();
  if (last) timer?.resolve(encoder, index + 1);
  gpu.device.queue.submit([encoder.finish()]);
}

// The clocks rise, and what is bound at first use is bound.
for (let step = 0; step < Math.min(steps, 20); step++) submitStep();
await gpu.device.queue.onSubmittedWorkDone();
const tickNs = gpu.timestamps ? await nsPerTick(gpu) : 0;
const timer = gpu.timestamps ? PassTimer.of(gpu) : undefined;
let [wallMs, encodeMs, gpuMs, done] = [0, 0, 0, 0];
/** Milliseconds that an empty wait takes: Deno sleeps 10 before it says that work is done. */
async function emptyWait(): Promise<number> {
  const waits: number[] = [];
  for (let i = 0; i < 5; i++) {
    const from = performance.now();
    await gpu.device.queue.onSubmittedWorkDone();
    waits.push(performance.now() - from);
  }
  return Math.min(...waits);
}
const idle = await emptyWait();
const before = { made, bytes: Deno.memoryUsage().rss };
while (done < steps) {
  const count = Math.min(TIMED_PASSES, steps - done);
  const from = performance.now();
  for (let step = 0; step < count; step++) submitStep(timer, step, step === count - 1);
  encodeMs += performance.now() - from;
  if (timer === undefined) {
    await gpu.device.queue.onSubmittedWorkDone();
    wallMs += performance.now() - from - idle;
  } else {
    const ticks = await timer.read(count, "Cannot time");
    wallMs += performance.now() - from - idle;
    for (let step = 0; step < count; step++) {
      gpuMs += Number(ticks[2 * step + 1]! - ticks[2 * step]!) * tickNs / 1e6;
    }
  }
  done += count;
}
await gpu.settle("Cannot time");
const each = (ms: number) => `${(ms / steps).toFixed(3)} ms`;
console.log(`${steps} steps: wall ${each(wallMs)}, encode ${each(encodeMs)}`);
if (timer !== undefined) {
  const outside = 1 - gpuMs / wallMs;
  console.log(`gpu ${each(gpuMs)}, ${(100 * outside).toFixed(2)} % of a step outside the GPU`);
}
const grown = (Deno.memoryUsage().rss - before.bytes) / 2 ** 20;
console.log(
  `${made - before.made} buffers made in ${steps} steps, the process grew by ${
    grown.toFixed(1)
  } MiB`,
);
console.log(`workspace ${(workspace.bytes / 2 ** 20).toFixed(1)} MiB, shared by all layers`);

if (options.each) {
  console.log("layer\tfwd\tbwd-filter\tbias\tbwd-data\tGB/s of bias");
  for (const { name, plans, bytes } of bound) {
    const times: number[] = [];
    for (const one of plans) {
      const { samplesNs } = await execute(gpu, one, { samples: 9, repeats: 20, warmup: 5 });
      times.push(samplesNs.toSorted((a, b) => a - b)[4]! / 1000);
    }
    const rate = (bytes / times[2]! / 1000).toFixed(0);
    const columns = Array.from({ length: 4 }, (_, i) => times[i]?.toFixed(1) ?? "-");
    console.log([name, ...columns, rate].join("\t"));
  }
}
