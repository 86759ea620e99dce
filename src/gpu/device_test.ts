import { nsPerTick } from "./calibrate.ts";
import assert from "#assert";
import { deno, NO_DRIVER } from "../../tests/cli.ts";
import { DeviceError, UnsupportedError } from "../errors.ts";
import { convolve } from "../convolve.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { readLimits } from "./adapter.ts";
import { openBrowserDevice } from "./browser.ts";
import { createBuffer } from "./buffers.ts";
import { calibrate } from "./calibrate.ts";
import { openDevice } from "./device.ts";
import { test } from "../../tests/drivers/driver.ts";

test("openDevice() gives the adapter's limits, not WebGPU's least ones", async (gpu) => {
  const adapter = await gpu.provider.gpu.requestAdapter();
  assert.equal(gpu.limits.maxBufferSize, adapter?.limits.maxBufferSize);
  assert.equal(
    gpu.limits.maxComputeWorkgroupStorageSize,
    adapter?.limits.maxComputeWorkgroupStorageSize,
  );
  assert.equal(gpu.info.backend, "wgpu");
  assert.notEqual(gpu.info.adapter, "");
});

Deno.test("openDevice() takes optional features and leaves those the adapter has not", async () => {
  using gpu = await openDevice({ optionalFeatures: ["subgroups", "no-such-feature"] });
  assert.ok(gpu.features.has("subgroups"));
  assert.ok(!gpu.features.has("no-such-feature"));
  assert.equal(gpu.timestamps, gpu.features.has("timestamp-query"));
});

Deno.test("openDevice() names the required features that are missing", async () => {
  await assert.rejects(
    openDevice({ features: ["timestamp-query", "no-such-feature"] }),
    (error: unknown) =>
      error instanceof UnsupportedError &&
      /^Cannot open the device: .* has no no-such-feature$/.test(error.message),
  );
});

Deno.test("openDevice() says what to install where there is no driver", async () => {
  const code = `
    const { openDevice } = await import(${JSON.stringify(import.meta.resolve("./device.ts"))});
    await openDevice().catch((error) => console.log(error.name + ": " + error.message));`;
  const { stdout } = await deno(["eval", code], { env: NO_DRIVER });
  assert.match(
    stdout,
    /^UnsupportedError: Cannot open a GPU: no Vulkan driver.*mesa-vulkan-drivers/,
  );
});

Deno.test("A closed device refuses work with a DeviceError", async () => {
  const gpu = await openDevice();
  gpu.close();
  gpu.close();
  assert.throws(
    () => createBuffer(gpu, 16, "x"),
    (error: unknown) =>
      error instanceof DeviceError && error.message === "Cannot allocate x: the device is closed",
  );
});

Deno.test("A device that is lost refuses work with a DeviceError", async () => {
  const gpu = await openDevice();
  gpu.device.destroy();
  await gpu.device.lost;
  assert.throws(
    () => gpu.check("Cannot execute"),
    (error: unknown) =>
      error instanceof DeviceError && /: the device was lost: /.test(error.message),
  );
  gpu.close();
});

test("An error of the device is thrown once, by the next check", async (gpu) => {
  const told = new Promise((done) => gpu.device.addEventListener("uncapturederror", done));
  gpu.device.createBuffer({ size: 2 ** 52, usage: 0x80 });
  await told;
  assert.throws(
    () => gpu.check("Cannot test"),
    (error: unknown) => error instanceof DeviceError && error.message.startsWith("Cannot test: "),
  );
  gpu.check("Cannot test");
});

test("A tick of the test driver is a nanosecond", async (gpu) => {
  const measured = await calibrate(gpu);
  assert.ok(Math.abs(measured - 1) < 0.05, `${measured} ns a tick`);
  assert.equal(await nsPerTick(gpu), 1);
});

/** A device that an application opens for itself. */
async function ownDevice(requiredFeatures: string[] = []): Promise<GPUDevice> {
  const adapter = await navigator.gpu.requestAdapter();
  return await adapter!.requestDevice({ requiredFeatures: requiredFeatures as GPUFeatureName[] });
}

Deno.test("openDevice() computes on an application's own device, and leaves it alive", async () => {
  const device = await ownDevice(["shader-f16"]);
  const gpu = await openDevice({ device, features: ["shader-f16"] });
  assert.equal(gpu.device, device);
  assert.equal(gpu.limits.maxBufferSize, device.limits.maxBufferSize);
  assert.ok(gpu.info.adapter !== "" && gpu.features.has("shader-f16"));
  const done = await convolve(gpu, parseDescriptor("mb1ic1ih4oc1kh1"), {
    input: new Float32Array(16).fill(3),
    filter: Float32Array.of(2),
  });
  assert.deepEqual([...done.result], new Array(16).fill(6));
  gpu.close();
  assert.throws(() => createBuffer(gpu, 16, "x"), /the device is closed/);

  // Work and errors of the application are its own again.
  const heard = Promise.withResolvers<string>();
  device.addEventListener("uncapturederror", (event) => {
    event.preventDefault();
    heard.resolve((event as GPUUncapturedErrorEvent).error.message);
  });
  const buffer = device.createBuffer({ size: 16, usage: GPUBufferUsage.COPY_DST });
  device.queue.writeBuffer(buffer, 0, new Uint8Array(16));
  device.createBuffer({ size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.STORAGE });
  assert.notEqual(await heard.promise, "");
  device.destroy();
});

Deno.test("openDevice() says why it cannot compute on an application's own device", async () => {
  const device = await ownDevice();
  const small = {
    createComputePipelineAsync() {},
    features: device.features,
    limits: { ...readLimits(device.limits), maxBufferSize: 1024 },
  };
  const refused: [object, RegExp][] = [
    [{ device, features: ["shader-f16"] }, /^Unsupported.*: it was made without shader-f16, ask/],
    [{ device: small }, /^Unsupported.*: its maxBufferSize is 1024, at least 268435456 is needed$/],
    [{ device: {} }, /^TypeError: Cannot open the device: it is an object of Object, expected a/],
    [{ device: null }, /^TypeError: Cannot open the device: it is null, expected a GPUDevice$/],
    [{ device, adapter: "0" }, /^TypeError: .* given, so that there is no adapter to choose$/],
    [{ device, request: {} }, /^TypeError: .* given, so that request has no adapter to choose$/],
  ];
  for (const [options, message] of refused) await assert.rejects(openDevice(options), message);
  device.destroy();
  using gpu = await openDevice({ device });
  await device.lost;
  assert.throws(() => createBuffer(gpu, 16, "x"), /^DeviceError: .* the device was lost/);
});

Deno.test("openBrowserDevice() computes on a page's own device", async () => {
  const device = await ownDevice();
  const gpu = await openBrowserDevice({ device });
  assert.equal(gpu.info.backend, "browser");
  gpu.close();
  assert.ok(device.createBuffer({ size: 16, usage: GPUBufferUsage.COPY_DST }).size === 16);
  device.destroy();
});
