import { DeviceError } from "../errors.ts";
import { mapForReading } from "./buffers.ts";
import { BUFFER_USAGE } from "./constants.ts";
import type { GpuDevice } from "./device.ts";

/** Passes one timer can time between two reads. */
export const TIMED_PASSES = 256;

/** Made at first use; a device that is destroyed frees what its timer has. */
const timers = new WeakMap<GpuDevice, PassTimer>();

/**
 * A query set with the buffers that bring its ticks to the CPU. A device has one (query sets cannot be
 * freed in Deno), so its users take turns through `GpuDevice.exclusive`.
 */
export class PassTimer {
  readonly #gpu: GpuDevice;
  readonly #querySet: GPUQuerySet;
  readonly #resolved: GPUBuffer;
  readonly #staging: GPUBuffer;

  constructor(gpu: GpuDevice) {
    const count = 2 * TIMED_PASSES;
    const size = 8 * count;
    this.#gpu = gpu;
    this.#querySet = gpu.device.createQuerySet({ type: "timestamp", count });
    this.#resolved = gpu.device.createBuffer({
      label: "timestamps",
      size,
      usage: BUFFER_USAGE.queryResolve | BUFFER_USAGE.copySource,
    });
    this.#staging = gpu.device.createBuffer({
      label: "timestamps to read",
      size,
      usage: BUFFER_USAGE.mapRead | BUFFER_USAGE.copyDestination,
    });
  }

  /** The device's timer. */
  static of(gpu: GpuDevice): PassTimer {
    let timer = timers.get(gpu);
    if (timer === undefined) timers.set(gpu, timer = new PassTimer(gpu));
    return timer;
  }

  /** Begins the compute pass whose time is the `index`th of the next read. */
  beginPass(encoder: GPUCommandEncoder, index: number): GPUComputePassEncoder {
    return encoder.beginComputePass({
      timestampWrites: {
        querySet: this.#querySet,
        beginningOfPassWriteIndex: 2 * index,
        endOfPassWriteIndex: 2 * index + 1,
      },
    });
  }

  /** Ends the last encoder that `read` is to cover. */
  resolve(encoder: GPUCommandEncoder, passes: number): void {
    encoder.resolveQuerySet(this.#querySet, 0, 2 * passes, this.#resolved, 0);
    encoder.copyBufferToBuffer(this.#resolved, 0, this.#staging, 0, 16 * passes);
  }

  /** Waits for all submitted work; gives the begin and end of each pass in ticks. */
  async read(passes: number, doing: string): Promise<BigUint64Array> {
    await mapForReading(this.#gpu, this.#staging, doing);
    const ticks = new BigUint64Array(this.#staging.getMappedRange(0, 16 * passes)).slice();
    this.#staging.unmap();
    return ticks;
  }
}

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
