/** The GPU that peers are given, and what times their calls. */
import type { Peer } from "./peer.ts";

/** WebGPU's limit; a pass takes two. */
const QUERIES = 4096;

let device: GPUDevice;
let querySet: GPUQuerySet;
/** Queries that passes have taken; 0 while nothing is timed. */
let used = 0;
/** Errors that nothing caught. */
export const faults: string[] = [];

/** Makes a WebGPU `navigator.gpu`, and has compute passes of the last device timed that it makes. */
export function lend(gpu: GPU): void {
  const requestAdapter = gpu.requestAdapter.bind(gpu);
  gpu.requestAdapter = async (options) => {
    const adapter = (await requestAdapter(options))!;
    const requestDevice = adapter.requestDevice.bind(adapter);
    adapter.requestDevice = async (descriptor = {}) => {
      // TensorFlow.js has a list within its list.
      const features = [...descriptor.requiredFeatures ?? [], "timestamp-query" as const].flat();
      device = await requestDevice({ ...descriptor, requiredFeatures: [...new Set(features)] });
      querySet = device.createQuerySet({ type: "timestamp", count: QUERIES });
      observe();
      return device;
    };
    return adapter;
  };
  Object.defineProperty(navigator, "gpu", { value: gpu });
}

function observe(): void {
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
      const at = used;
      if (at === 0 || (used += 2) > QUERIES) return begin(pass);
      const writes = { beginningOfPassWriteIndex: at, endOfPassWriteIndex: at + 1 };
      return begin({ ...pass, timestampWrites: { querySet, ...writes } });
    };
    return encoder;
  };
}

/**
 * Nanoseconds of calls by the wall, from an idle queue to an idle queue, less a wait for nothing. After `most` calls the queue is
 * waited for: a library may hold the buffers of a call until then.
 */
export async function timeByWall(
  { finish }: Peer,
  call: () => unknown,
  count: number,
  most: number,
) {
  const idle = finish ?? (() => device.queue.onSubmittedWorkDone());
  let all = 0;
  for (let left = count; left > 0; left -= most) {
    await idle();
    const start = performance.now();
    await idle();
    const begin = performance.now();
    for (let i = Math.min(left, most); i > 0; i--) await call();
    await idle();
    all += 1e6 * Math.max(0, performance.now() - begin - (begin - start));
  }
  return { all, passes: all };
}

/** Ticks of calls between two passes on the device's queue, and of their passes alone. */
export async function timeByGpu({ flush }: Peer, call: () => unknown, count: number) {
  const mark = (at: object, last?: (encoder: GPUCommandEncoder) => void) => {
    flush?.();
    used = 0;
    const encoder = device.createCommandEncoder();
    encoder.beginComputePass({ timestampWrites: { querySet, ...at } }).end();
    last?.(encoder);
    device.queue.submit([encoder.finish()]);
  };
  mark({ beginningOfPassWriteIndex: 0 });
  used = 2;
  for (let i = 0; i < count; i++) await call();
  flush?.();
  const [taken, size] = [used, 8 * Math.min(used, QUERIES)];
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
