import { DeviceError, UnsupportedError } from "../errors.ts";
import { BUFFER_USAGE, MAP_READ } from "./constants.ts";
import type { GpuDevice } from "./device.ts";

/** Larger `writeBuffer` calls are slower and hold a second copy of the data. */
const UPLOAD_PIECE = 4 << 20;

/** Each wait for the device costs Deno 10 ms, so a download fetches this much at a time ... */
const STAGING_BYTES = 32 << 20;
/** ... and waits for one part while it copies another. */
const STAGINGS = 2;

/** `getMappedRange` copies in Deno, so a mapped buffer is read in pieces of this size, whose memory is soon used again. */
const READ_PIECE = 1 << 20;

/** Takes one piece of a download; `offset` counts from the download's first byte. */
export type PieceReader = (piece: Uint8Array, offset: number) => void | Promise<void>;

/**
 * Makes a storage buffer of at least `bytes` bytes, rounded up to a multiple of 4, of zeros. The device
 * says later whether it had the memory: the next `preparePlan`, `execute` or `download` then throws an
 * {@linkcode UnsupportedError} with this buffer's label.
 *
 * @throws {UnsupportedError} over the device's `maxBufferSize`
 * @throws {DeviceError} when the device is closed or lost
 */
export function createBuffer(gpu: GpuDevice, bytes: number, label: string): GPUBuffer {
  const usage = BUFFER_USAGE.storage | BUFFER_USAGE.copySource | BUFFER_USAGE.copyDestination;
  return allocate(gpu, bytes, label, usage);
}

/** As {@linkcode createBuffer}, for any use. */
export function allocate(gpu: GpuDevice, bytes: number, label: string, usage: number): GPUBuffer {
  gpu.check(`Cannot allocate ${label}`);
  if (!Number.isSafeInteger(bytes) || bytes < 0) {
    throw new RangeError(`Cannot allocate ${label}: ${bytes} is no number of bytes`);
  }
  const size = Math.max(4, roundUp4(bytes));
  const limit = gpu.limits.maxBufferSize;
  if (size > limit) {
    throw new UnsupportedError(
      `Cannot allocate ${label}: needs ${size} bytes, the device's maxBufferSize is ${limit}`,
    );
  }
  return gpu.watch(
    "out-of-memory",
    () => gpu.device.createBuffer({ label, size, usage }),
    () =>
      new UnsupportedError(
        `Cannot allocate ${label}: needs ${size} bytes, the device is out of memory`,
      ),
  );
}

/**
 * Copies `data` into `buffer` from `byteOffset` (a multiple of 4) on. Where the data's bytes are no
 * multiple of 4, up to three zeros follow them.
 *
 * @throws {RangeError} where the data does not fit
 */
export function upload(
  gpu: GpuDevice,
  buffer: GPUBuffer,
  byteOffset: number,
  data: ArrayBufferView,
): void {
  gpu.check("Cannot upload");
  // Deno ends the process on a bad range, so it is checked here.
  checkRange("upload", buffer, byteOffset, data.byteLength);
  const queue = gpu.device.queue;
  // Of Dawn as an addon nothing says so.
  const takesShared = gpu.provider.name !== "dawn";
  for (let start = 0; start < data.byteLength; start += UPLOAD_PIECE) {
    const length = Math.min(UPLOAD_PIECE, data.byteLength - start);
    queue.writeBuffer(buffer, byteOffset + start, pieceOf(data, start, length, takesShared));
    // Starts the copy and frees the piece's staging memory.
    queue.submit([]);
  }
}

/**
 * Fills `buffer` with copies of `pattern`, on the device.
 *
 * @throws {DeviceError} when the device is closed or lost
 */
export function fillBuffer(gpu: GpuDevice, buffer: GPUBuffer, pattern: GPUBuffer): void {
  gpu.check("Cannot fill a buffer");
  const encoder = gpu.device.createCommandEncoder();
  for (let at = 0; at < buffer.size; at += pattern.size) {
    const size = Math.min(pattern.size, buffer.size - at);
    encoder.copyBufferToBuffer(pattern, 0, buffer, at, size);
  }
  gpu.device.queue.submit([encoder.finish()]);
}

/**
 * Copies `bytes` bytes of `buffer` from `byteOffset` (a multiple of 4) on to `into`: an array of at least
 * that length, or a function that gets them piece by piece, in order. Pieces are valid during the call only.
 *
 * @throws {RangeError} where the range exceeds the buffer or the array
 * @throws {DeviceError} on errors of the device, this or earlier work's
 */
export async function download(
  gpu: GpuDevice,
  buffer: GPUBuffer,
  byteOffset: number,
  bytes: number,
  into: Uint8Array | PieceReader,
): Promise<void> {
  const doing = "Cannot download";
  await gpu.settle(doing);
  checkRange("download", buffer, byteOffset, bytes);
  if (into instanceof Uint8Array && into.byteLength < bytes) {
    throw new RangeError(
      `Cannot download: ${bytes} bytes do not fit an array of ${into.byteLength}`,
    );
  }
  if (bytes === 0) return;
  const take: PieceReader = into instanceof Uint8Array ? (p, at) => into.set(p, at) : into;
  const parts = Array.from({ length: Math.ceil(bytes / STAGING_BYTES) }, (_, part) => {
    const start = part * STAGING_BYTES;
    return { start, length: Math.min(STAGING_BYTES, bytes - start) };
  });
  const usage = BUFFER_USAGE.mapRead | BUFFER_USAGE.copyDestination;
  const stagings = parts.slice(0, STAGINGS).map(({ length }) =>
    allocate(gpu, length, "staging for a download", usage)
  );
  const stagingOf = (part: number) => stagings[part % STAGINGS]!;
  const mapped: Promise<void>[] = [];
  const begin = (part: number) => {
    const one = parts[part];
    if (one === undefined) return;
    const { start, length } = one;
    const encoder = gpu.device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, byteOffset + start, stagingOf(part), 0, roundUp4(length));
    gpu.device.queue.submit([encoder.finish()]);
    mapped[part] = mapForReading(gpu, stagingOf(part), doing);
    // Its failure is told when its turn comes.
    mapped[part].catch(() => {});
  };
  try {
    for (let part = 0; part < STAGINGS; part++) begin(part);
    for (const [part, { start, length }] of parts.entries()) {
      await mapped[part];
      const staging = stagingOf(part);
      for (let at = 0; at < length; at += READ_PIECE) {
        const size = Math.min(READ_PIECE, length - at);
        const piece = staging.getMappedRange(at, roundUp4(size));
        await take(new Uint8Array(piece, 0, size), start + at);
      }
      staging.unmap();
      begin(part + STAGINGS);
    }
  } finally {
    await Promise.allSettled(mapped);
    stagings.forEach((staging) => staging.destroy());
  }
}

/** Maps a `MAP_READ` buffer after all work submitted so far; throws what went wrong in that work. */
export async function mapForReading(
  gpu: GpuDevice,
  buffer: GPUBuffer,
  doing: string,
): Promise<void> {
  try {
    await buffer.mapAsync(MAP_READ);
  } catch (cause) {
    await gpu.settle(doing);
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new DeviceError(`${doing}: ${reason}`, { cause });
  }
  try {
    await gpu.settle(doing);
  } catch (error) {
    // The buffer must be free for the next caller, who may go on after this error.
    buffer.unmap();
    throw error;
  }
}

function checkRange(verb: string, buffer: GPUBuffer, byteOffset: number, bytes: number): void {
  const name = buffer.label ? `buffer ${buffer.label}` : "the buffer";
  if (!Number.isSafeInteger(byteOffset) || byteOffset < 0 || byteOffset % 4 !== 0) {
    throw new RangeError(`Cannot ${verb}: offset ${byteOffset} is no multiple of 4`);
  }
  if (byteOffset + roundUp4(bytes) > buffer.size) {
    throw new RangeError(
      `Cannot ${verb}: ${bytes} bytes at offset ${byteOffset} exceed ${name} of ${buffer.size} bytes`,
    );
  }
}

/** Bytes `start` to `start + length` of a view, padded with zeros to a multiple of 4; a copy where it has to be one. */
function pieceOf(
  data: ArrayBufferView,
  start: number,
  length: number,
  takesShared: boolean,
): Uint8Array<ArrayBuffer> {
  const { buffer } = data;
  const offset = data.byteOffset + start;
  if ((takesShared || buffer instanceof ArrayBuffer) && length % 4 === 0) {
    // Both kinds of memory are used alike, which the types do not know.
    return new Uint8Array(buffer as ArrayBuffer, offset, length);
  }
  const piece = new Uint8Array(roundUp4(length));
  piece.set(new Uint8Array(buffer, offset, length));
  return piece;
}

function roundUp4(bytes: number): number {
  return Math.ceil(bytes / 4) * 4;
}
