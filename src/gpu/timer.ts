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
