import type { DeviceLimits } from "../plan.ts";
import { isRefusal, manyChunks, MOST_CHUNKS, type Planned, refusal } from "../refusal.ts";

/** A run of images that is transformed and multiplied at once; chunks share their workspace. */
export interface Chunk {
  readonly first: number;
  readonly images: number;
}

/** What chunks are cut by. */
interface ChunkNeeds {
  readonly batch: number;
  /** Images of a chunk are a multiple of this, which divides the batch. */
  readonly multiple: number;
  /** Bytes of the buffer of so many images. */
  bytes(images: number): number;
  /** Workspace beside it. */
  readonly fixedBytes: number;
  /** Most bytes of the buffer. */
  readonly maxBufferBytes: number;
  /** Most bytes of workspace in all. */
  readonly maxWorkspaceBytes?: number | undefined;
}

/**
 * The fewest chunks of the batch, as even as they can be, whose buffer stays below the limits. One empty chunk
 * for an empty batch. Refused if the user's limit, or the device's, is too small for the least chunk, or makes too many.
 */
export function batchChunks(algorithm: string, needs: ChunkNeeds): Planned<Chunk[]> {
  const { batch, multiple, bytes, fixedBytes, maxBufferBytes } = needs;
  const { maxWorkspaceBytes = Infinity } = needs;
  const fits = (images: number) =>
    bytes(images) <= maxBufferBytes && fixedBytes + bytes(images) <= maxWorkspaceBytes;
  const most = Math.max(1, batch / multiple);
  let low = 0;
  let high = most;
  // The most that fits: bytes grow with the images.
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle * multiple)) low = middle;
    else high = middle - 1;
  }
  if (low === 0) {
    const least = bytes(multiple);
    const images = multiple === 1 ? "one image" : `${multiple} images`;
    return least > maxBufferBytes
      ? refusal(
        "limit",
        `${algorithm} takes a buffer of ${least} bytes for ${images}, ` +
          `the device's limit is ${maxBufferBytes}`,
      )
      : refusal(
        "workspace",
        `${algorithm} takes at least ${fixedBytes + least} bytes of workspace, ` +
          `at most ${maxWorkspaceBytes} are allowed`,
      );
  }
  const count = Math.ceil(most / low);
  if (count > MOST_CHUNKS) return manyChunks(algorithm, count);
  const units = Math.ceil(most / count);
  return Array.from({ length: Math.ceil(most / units) }, (_, index) => {
    const first = index * units * multiple;
    return { first, images: Math.min(units * multiple, batch - first) };
  });
}

/** What is made of four images a vector; of single ones where chunks of four exceed a limit. */
export function fourElseOne<T>(
  interleave: 1 | 4,
  make: (interleave: 1 | 4) => Planned<T>,
): Planned<T> {
  const made = make(interleave);
  return interleave === 4 && isRefusal(made) ? make(1) : made;
}

/**
 * Most bytes of a chunk's buffer: what one binding holds, since kernels reach the parts of larger buffers slowly;
 * where the least chunk exceeds it, all that a buffer may have.
 */
export function chunkBufferBytes(limits: DeviceLimits, least: number): number {
  const binding = Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize);
  return least <= binding ? binding : limits.maxBufferSize;
}
