import { nsPerTick } from "./calibrate.ts";
import assert from "#assert";
import { deno, NO_DRIVER } from "../../tests/cli.ts";
import { DeviceError, UnsupportedError } from "../errors.ts";
import { createBuffer } from "./buffers.ts";
import { calibrate } from "./calibrate.ts";
import { openDevice } from "./device.ts";

Deno.test("openDevice() gives the adapter's limits, not WebGPU's least ones", async () => {
  using gpu = await openDevice();
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

Deno.test("An error of the device is thrown once, by the next check", async () => {
  using gpu = await openDevice();
  const told = new Promise((done) => gpu.device.addEventListener("uncapturederror", done));
  gpu.device.createBuffer({ size: 2 ** 52, usage: 0x80 });
  await told;
  assert.throws(
    () => gpu.check("Cannot test"),
    (error: unknown) => error instanceof DeviceError && error.message.startsWith("Cannot test: "),
  );
  gpu.check("Cannot test");
});

Deno.test("A tick of the test driver is a nanosecond", async () => {
  using gpu = await openDevice();
  const measured = await calibrate(gpu);
  assert.ok(Math.abs(measured - 1) < 0.05, `${measured} ns a tick`);
  assert.equal(await nsPerTick(gpu), 1);
});
