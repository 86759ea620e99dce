import { DeviceError } from "../errors.ts";
import type { GpuDevice } from "./device.ts";
import { PassTimer } from "./timer.ts";

/** wgpu vendors whose tick is known to be a nanosecond: Mesa's software drivers. */
const NANOSECOND_VENDORS = new Set(["65541"]);
/** Adapters of which it was measured. */
const NANOSECOND_ADAPTERS = /^NVIDIA H[12]00\b/;

/** Distances in ms between the two looks at both clocks; the second where the first gives no round 1. */
const DISTANCES = [100, 1000];

/** Tries at each end; the one that waited least counts. */
const TRIES = 3;

const measured = new WeakMap<GpuDevice, Promise<number>>();

/**
 * Nanoseconds per timestamp tick. Deno hands out raw ticks and hides their length, so it is measured against the clock once
 * a device, at the first call (about 0.2 s), unless it is known; 1 for Dawn, which converts.
 *
 * @throws {DeviceError} if the device has no timestamps, or they do not advance
 */
export function nsPerTick(gpu: GpuDevice): Promise<number> {
  let known = measured.get(gpu);
  if (known === undefined) {
    known = gpu.exclusive(() => measureNsPerTick(gpu)).catch((error) => {
      // An error of other work that surfaced here is no reason not to try again.
      measured.delete(gpu);
      throw error;
    });
    measured.set(gpu, known);
  }
  return known;
}

async function measureNsPerTick(gpu: GpuDevice): Promise<number> {
  if (!gpu.timestamps) {
    throw new DeviceError("Cannot calibrate: the device has no timestamps");
  }
  // WebGPU wants nanoseconds; only Deno hands out raw ticks.
  const { backend, vendor, adapter } = gpu.info;
  const known = NANOSECOND_VENDORS.has(vendor) || NANOSECOND_ADAPTERS.test(adapter);
  if (backend !== "wgpu" || known) return 1;
  return await calibrate(gpu);
}

/** Measures the tick against the CPU's clock, whatever is known of the device. */
export async function calibrate(gpu: GpuDevice): Promise<number> {
  await look(gpu);
  let nsPerTick = NaN;
  for (const distance of DISTANCES) {
    const from = await look(gpu);
    await new Promise((done) => setTimeout(done, distance));
    const to = await look(gpu);
    const ticks = Number(to.ticks - from.ticks);
    if (ticks <= 0) {
      throw new DeviceError("Cannot calibrate: the device's timestamps do not advance");
    }
    nsPerTick = (to.ms - from.ms) * 1e6 / ticks;
    if (Math.abs(nsPerTick - 1) <= 0.01) return 1;
  }
  return nsPerTick;
}

/** Both clocks at one moment. */
async function look(gpu: GpuDevice): Promise<{ ms: number; ticks: bigint }> {
  const timer = PassTimer.of(gpu);
  let best = { ms: 0, ticks: 0n };
  let shortest = Infinity;
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const encoder = gpu.device.createCommandEncoder();
    timer.beginPass(encoder, 0).end();
    timer.resolve(encoder, 1);
    const ms = performance.now();
    gpu.device.queue.submit([encoder.finish()]);
    const ticks = (await timer.read(1, "Cannot calibrate"))[0] ?? 0n;
    const waited = performance.now() - ms;
    if (waited < shortest) {
      shortest = waited;
      best = { ms, ticks };
    }
  }
  return best;
}
