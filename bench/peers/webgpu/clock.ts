/** The GPU that peers are given, and what times their calls. */
import type { Peer } from "./peer.ts";

/** WebGPU's limit; a pass takes two. */
const QUERIES = 4096;

/** A device whose compute passes can be timed. */
export interface Lent {
  readonly device: GPUDevice;
  readonly querySet: GPUQuerySet;
  /** Queries that passes have taken; 0 while nothing is timed. */
  used: number;
}

let last: Lent;
/** Errors that nothing caught. */
export const faults: string[] = [];

/** The last device that was made. */
export const lastLent = (): Lent => last;

/** Makes a WebGPU `navigator.gpu`, whose devices can be timed. */
export function lend(gpu: GPU): void {
  const requestAdapter = gpu.requestAdapter.bind(gpu);
  gpu.requestAdapter = async (options) => {
    const adapter = (await requestAdapter(options))!;
    const requestDevice = adapter.requestDevice.bind(adapter);
    adapter.requestDevice = async (descriptor = {}) => {
      // TensorFlow.js has a list within its list.
      const features = [...descriptor.requiredFeatures ?? [], "timestamp-query" as const].flat();
      const device = await requestDevice({
        ...descriptor,
        requiredFeatures: [...new Set(features)],
      });
      const querySet = device.createQuerySet({ type: "timestamp", count: QUERIES });
      last = { device, querySet, used: 0 };
      observe(last);
      return device;
    };
    return adapter;
  };
  Object.defineProperty(navigator, "gpu", { value: gpu });
}

function observe(lent: Lent): void {
  const { device, querySet } = lent;
  device.addEventListener("uncapturederror", (event) => {
    faults.push((event as GPUUncapturedErrorEvent).error.message);
  });
  const write = device.queue.writeBuffer.bind(device.queue);
  device.queue.writeBuffer = (buffer, at, data, from = 0, size) => {
    if (!(data instanceof Uint8Array)) return write(buffer, at, data, from, size);
    // Dawn's addon crashes on what lies in the memory of WebAssembly.
    write(buffer, at, data.slice(from, size && from + size));
  };
  const createEncoder = device.createCommandEncoder.bind(device);
  device.createCommandEncoder = (options) => {
    const encoder = createEncoder(options);
    const begin = encoder.beginComputePass.bind(encoder);
    encoder.beginComputePass = (pass) => {
      const at = lent.used;
      if (at === 0 || (lent.used += 2) > QUERIES) return begin(pass);
      const writes = { beginningOfPassWriteIndex: at, endOfPassWriteIndex: at + 1 };
      return begin({ ...pass, timestampWrites: { querySet, ...writes } });
    };
    return encoder;
  };
}

/** Calls and their peer. After `most` calls the queue is waited for: a library may hold the buffers of a call until then. */
interface Calls {
  readonly peer: Peer;
  readonly lent: Lent;
  readonly call: () => unknown;
  readonly most: number;
}

/** What calls take, and their compute passes alone. */
interface Taken {
  all: number;
  passes: number;
}

/** Times `count` calls, at most so many at once as may be. */
export async function timeCalls(
  batch: (calls: Calls, count: number) => Promise<Taken>,
  calls: Calls,
  count: number,
): Promise<Taken> {
  const sum = { all: 0, passes: 0 };
  for (let left = count; left > 0; left -= calls.most) {
    const { all, passes } = await batch(calls, Math.min(left, calls.most));
    sum.all += all;
    sum.passes += passes;
  }
  return sum;
}

/** Nanoseconds of calls by the wall, from an idle queue to an idle queue, less a wait for nothing. */
export async function byWall({ peer, lent, call }: Calls, count: number): Promise<Taken> {
  const idle = peer.finish ?? (() => lent.device.queue.onSubmittedWorkDone());
  await idle();
  const start = performance.now();
  await idle();
  const begin = performance.now();
  for (let i = 0; i < count; i++) await call();
  await idle();
  const all = 1e6 * Math.max(0, performance.now() - begin - (begin - start));
  return { all, passes: all };
}

/** Ticks of calls between two passes on the device's queue, and of their passes alone. */
export async function byGpu({ peer, lent, call }: Calls, count: number): Promise<Taken> {
  const { device, querySet } = lent;
  const { flush } = peer;
  const mark = (at: object, last?: (encoder: GPUCommandEncoder) => void) => {
    flush?.();
    lent.used = 0;
    const encoder = device.createCommandEncoder();
    encoder.beginComputePass({ timestampWrites: { querySet, ...at } }).end();
    last?.(encoder);
    device.queue.submit([encoder.finish()]);
  };
  mark({ beginningOfPassWriteIndex: 0 });
  lent.used = 2;
  for (let i = 0; i < count; i++) await call();
  flush?.();
  const taken = lent.used;
  const size = 8 * Math.min(taken, QUERIES);
  const { QUERY_RESOLVE, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
  const resolved = device.createBuffer({ size, usage: QUERY_RESOLVE | COPY_SRC });
  const staging = device.createBuffer({ size, usage: COPY_DST | MAP_READ });
  mark({ endOfPassWriteIndex: 1 }, (encoder) => {
    encoder.resolveQuerySet(querySet, 0, size / 8, resolved, 0);
    encoder.copyBufferToBuffer(resolved, 0, staging, 0, size);
  });
  await staging.mapAsync(GPUMapMode.READ);
  const ticks = new BigUint64Array(staging.getMappedRange().slice(0));
  [resolved, staging].forEach((buffer) => buffer.destroy());
  const [all, ...passes] = [...ticks.keys()].filter((at) => at % 2 === 0)
    .map((at) => Number(ticks[at + 1]! - ticks[at]!));
  // Of more passes than there are queries the first ones stand for all.
  const scale = (taken - 2) / (2 * passes.length);
  const sum = scale * passes.reduce((sum, ticks) => sum + ticks, 0);
  return { all: all!, passes: Math.min(all!, sum) };
}
