import { nsPerTick } from "./calibrate.ts";
import { pipelinesOf } from "./prepare.ts";
import assert from "#assert";
import type { Kernel } from "../kernels/kernel.ts";
import { DeviceError, UnsupportedError } from "../errors.ts";
import { createBuffer, download, upload } from "./buffers.ts";
import { type GpuDevice, openDevice } from "./device.ts";
import { createPlanBuffers, execute, preparePlan } from "./execute.ts";
import {
  COUNT,
  planOf,
  SAXPY,
  saxpyBuffers,
  saxpyPlan,
  saxpyUniforms,
} from "../../tests/support/test_plans.ts";
import { test } from "../../tests/drivers/driver.ts";

async function readFloats(gpu: GpuDevice, buffer: GPUBuffer, count: number): Promise<number[]> {
  const floats = new Float32Array(count);
  await download(gpu, buffer, 0, 4 * count, new Uint8Array(floats.buffer));
  return [...floats];
}

test("execute() runs a kernel with uniforms", async (gpu) => {
  const plan = saxpyPlan();
  using buffers = saxpyBuffers(gpu, plan);
  using prepared = await preparePlan(gpu, plan, buffers);
  const { samplesNs, clock } = await execute(gpu, prepared);
  assert.equal(clock, "timestamp");
  assert.equal(samplesNs.length, 1);
  const z = await readFloats(gpu, buffers.get("output"), COUNT);
  assert.deepEqual(z, Array.from({ length: COUNT }, (_, i) => 12 * i + 0.5));
});

test("execute() runs passes in order, each with its uniforms, on one pipeline", async (gpu) => {
  const bytes = 4 * COUNT;
  const pass = (from: number, to: number, factor: number, shift: number) => ({
    kernel: SAXPY,
    bindings: [from, 1, to].map((buffer) => ({ buffer, offset: 0, size: bytes })),
    uniforms: saxpyUniforms(factor, shift),
    grid: [Math.ceil(COUNT / 64), 1, 1] as const,
    multiplications: COUNT,
  });
  const plan = planOf([
    { name: "x", role: "input", bytes },
    { name: "y", role: "filter", bytes },
    { name: "t", role: "workspace", bytes },
    { name: "z", role: "output", bytes },
  ], [pass(0, 2, 2, 0), pass(2, 3, 3, 1)]);
  using buffers = saxpyBuffers(gpu, plan);
  using prepared = await preparePlan(gpu, plan, buffers);
  await execute(gpu, prepared, { samples: 3, repeats: 2 });
  const z = await readFloats(gpu, buffers.get("output"), COUNT);
  assert.deepEqual(z, Array.from({ length: COUNT }, (_, i) => 3 * 12 * i + 10 * i + 1));
  assert.equal(pipelinesOf(gpu).size, 1);
});

/** Copies two halves of a tensor, bound separately, to the output. */
const JOIN: Kernel = {
  name: "test_join",
  wgsl: `
@group(0) @binding(0) var<storage, read> low: array<f32>;
@group(0) @binding(1) var<storage, read> high: array<f32>;
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  let split = arrayLength(&low);
  if (id.x < split) { z[id.x] = low[id.x]; } else { z[id.x] = high[id.x - split]; }
}`,
  workgroupSize: [64, 1, 1],
  workgroupBytes: 0,
  bindings: ["read", "read", "write"],
  features: [],
};

test("execute() takes one buffer in several bindings and buffers of the caller", async (gpu) => {
  const plan = planOf([
    { name: "x", role: "input", bytes: 512 },
    { name: "z", role: "output", bytes: 512 },
  ], [{
    kernel: JOIN,
    bindings: [
      { buffer: 0, offset: 0, size: 256 },
      { buffer: 0, offset: 256, size: 256 },
      { buffer: 1, offset: 0, size: 512 },
    ],
    grid: [2, 1, 1],
    multiplications: 0,
  }]);
  const input = createBuffer(gpu, 512, "mine");
  const data = Float32Array.from({ length: 128 }, (_, i) => i * i);
  upload(gpu, input, 0, data);
  {
    using buffers = createPlanBuffers(gpu, plan, { input });
    using prepared = await preparePlan(gpu, plan, buffers);
    await execute(gpu, prepared);
    assert.deepEqual(await readFloats(gpu, buffers.get("output"), 128), [...data]);
  }
  assert.deepEqual(await readFloats(gpu, input, 128), [...data]);
  input.destroy();
});

test("createPlanBuffers() refuses a given buffer that is too small", (gpu) => {
  const input = createBuffer(gpu, 16, "mine");
  assert.throws(() => createPlanBuffers(gpu, saxpyPlan(), { input }), {
    name: "RangeError",
    message: "Cannot use the given input buffer: x has 4000 bytes, it has 16",
  });
  input.destroy();
});

test("execute() gives positive times a sample, by both clocks, cycling through plans", async (gpu) => {
  const plan = saxpyPlan();
  using first = saxpyBuffers(gpu, plan);
  using second = saxpyBuffers(gpu, plan);
  using one = await preparePlan(gpu, plan, first);
  using two = await preparePlan(gpu, plan, second);
  for (const clock of ["timestamp", "wall"] as const) {
    const result = await execute(gpu, [one, two], { samples: 3, repeats: 50, warmup: 2, clock });
    assert.equal(result.clock, clock);
    assert.equal(result.samplesNs.length, 3);
    assert.ok(result.samplesNs.every((ns) => ns > 0 && ns < 1e8), result.samplesNs.join());
  }
  for (const buffers of [first, second]) {
    assert.equal((await readFloats(gpu, buffers.get("output"), 2))[1], 12.5);
  }
});

test("execute() works on a device without timestamps", async (gpu) => {
  Object.defineProperty(gpu, "timestamps", { value: false });
  const plan = saxpyPlan();
  using buffers = saxpyBuffers(gpu, plan);
  using prepared = await preparePlan(gpu, plan, buffers);
  const { clock, samplesNs } = await execute(gpu, prepared);
  assert.equal(clock, "wall");
  assert.equal(samplesNs.length, 1);
});

test("execute() of several callers at once gives each its own times", async (gpu) => {
  const plan = saxpyPlan();
  using buffers = saxpyBuffers(gpu, plan);
  using prepared = await preparePlan(gpu, plan, buffers);
  const results = await Promise.all(
    [1, 2, 3].map((samples) => execute(gpu, prepared, { samples })),
  );
  assert.deepEqual(results.map(({ samplesNs }) => samplesNs.length), [1, 2, 3]);
});

test("execute() refuses counts that are none, and no plan", async (gpu) => {
  await assert.rejects(execute(gpu, []), { message: "Cannot execute: no plan is given" });
  const prepared = { plan: saxpyPlan(), steps: [], [Symbol.dispose]() {} };
  await assert.rejects(execute(gpu, prepared, { samples: 0 }), RangeError);
  await assert.rejects(execute(gpu, prepared, { repeats: 1.5 }), RangeError);
});

test("execute() throws an error of the device, and works again after it", async (gpu) => {
  const plan = saxpyPlan();
  using buffers = saxpyBuffers(gpu, plan);
  using prepared = await preparePlan(gpu, plan, buffers);
  await nsPerTick(gpu);
  gpu.device.createBuffer({ size: 2 ** 52, usage: 0x80 });
  await assert.rejects(execute(gpu, prepared), {
    name: "DeviceError",
    message: /^Cannot execute: .*4503599627370496/,
  });
  assert.equal((await execute(gpu, prepared)).samplesNs.length, 1);
});

Deno.test("execute() after close is a DeviceError", async () => {
  const gpu = await openDevice();
  const plan = saxpyPlan();
  const buffers = saxpyBuffers(gpu, plan);
  const prepared = await preparePlan(gpu, plan, buffers);
  gpu.close();
  await assert.rejects(
    execute(gpu, prepared),
    (error: unknown) => error instanceof DeviceError && /the device is closed$/.test(error.message),
  );
});

test("preparePlan() shows the line of WGSL that does not compile", async (gpu) => {
  const wgsl = SAXPY.wgsl.replace("p.factor * x", "p.factor * nothing");
  const plan = saxpyPlan({}, { name: "test_broken", wgsl });
  using buffers = saxpyBuffers(gpu, plan);
  await assert.rejects(
    preparePlan(gpu, plan, buffers),
    (error: unknown) =>
      error instanceof DeviceError &&
      /^Cannot compile test_broken: .*nothing.*\(line 8, column \d+\)\n {4}8 \|.*nothing/s
        .test(error.message),
  );
  using good = await preparePlan(gpu, saxpyPlan(), buffers);
  assert.equal((await execute(gpu, good)).samplesNs.length, 1);
});

test("preparePlan() refuses WGSL whose bindings are not the kernel's", async (gpu) => {
  const plan = saxpyPlan({}, {
    name: "test_bindings",
    bindings: ["read", "read", "read", "uniform"],
  });
  using buffers = saxpyBuffers(gpu, plan);
  await assert.rejects(preparePlan(gpu, plan, buffers), {
    name: "DeviceError",
    message: /^Cannot compile test_bindings: /,
  });
});

test("preparePlan() refuses two kernels of one name", async (gpu) => {
  const plan = saxpyPlan();
  using buffers = saxpyBuffers(gpu, plan);
  using _prepared = await preparePlan(gpu, plan, buffers);
  const other = saxpyPlan({}, { wgsl: SAXPY.wgsl + "\n" });
  await assert.rejects(preparePlan(gpu, other, buffers), {
    name: "TypeError",
    message: "Cannot compile test_saxpy: other WGSL has the same name",
  });
});

test("preparePlan() refuses what the device cannot run before WebGPU sees it", async (gpu) => {
  const plan = saxpyPlan({}, { workgroupBytes: 2 ** 20 });
  using buffers = saxpyBuffers(gpu, plan);
  await assert.rejects(
    preparePlan(gpu, plan, buffers),
    (error: unknown) =>
      error instanceof UnsupportedError && error.message.startsWith(
        "Cannot run test_saxpy: needs 1048576 bytes of workgroup memory, the device's",
      ),
  );
  assert.equal(pipelinesOf(gpu).size, 0);
});
