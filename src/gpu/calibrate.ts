import { DeviceError } from "../errors.ts";
import type { GpuDevice } from "./device.ts";
import { PassTimer } from "./timer.ts";

/** wgpu vendors whose tick is known to be a nanosecond: Mesa's software drivers. */
const NANOSECOND_VENDORS = new Set(["65541"]);

/** Distances in ms between the two looks at both clocks; the second where the first gives no round 1. */
const DISTANCES = [100, 1000];

/** Tries at each end; the one that waited least counts. */
const TRIES = 3;

/**
 * Length of a timestamp tick in nanoseconds. A measurement within 1 % of 1 is taken as 1.
 *
 * @throws {DeviceError} where the device has no timestamps, or they stand still
 */
export async function measureNsPerTick(gpu: GpuDevice): Promise<number> {
  if (!gpu.timestamps) {
    throw new DeviceError("Cannot calibrate: the device has no timestamps");
  }
  // WebGPU wants nanoseconds; only Deno hands out raw ticks.
  if (gpu.info.backend !== "wgpu" || NANOSECOND_VENDORS.has(gpu.info.vendor)) return 1;
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
