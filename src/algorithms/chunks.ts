import type { DeviceLimits } from "./plan.ts";
import { isRefusal, type Planned, type Refusal, refusal } from "./refusal.ts";

/** A run of images that is transformed and multiplied at once; chunks share their workspace. */
export interface Chunk {
  /** First image. */
  readonly first: number;
  readonly images: number;
}

/** What chunks are cut by. */
export interface ChunkNeeds {
  /** For messages. */
  readonly algorithm: string;
  readonly batch: number;
  /** Images of a chunk are a multiple of this, which divides the batch. */
  readonly multiple: number;
  /** Bytes of each buffer that a chunk of so many images takes. */
  bytes(images: number): readonly number[];
  /** Workspace beside them. */
  readonly fixedBytes: number;
  /** Most bytes of one buffer. */
  readonly maxBufferBytes: number;
  /** Most bytes of workspace in all. */
  readonly maxWorkspaceBytes?: number | undefined;
}

/**
 * The fewest chunks of the batch, as even as they can be, whose buffers stay below the limits. One empty chunk
 * for an empty batch. Refused if the user's limit, or the device's, is too small for the least chunk, or makes too many.
 */
export function batchChunks(needs: ChunkNeeds): Planned<Chunk[]> {
  const { batch, multiple } = needs;
  const most = Math.max(1, batch / multiple);
  let low = 0;
  let high = most;
  // The most that fits: bytes grow with the images.
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (chunkFits(needs, middle * multiple)) low = middle;
    else high = middle - 1;
  }
  if (low === 0) return tooSmall(needs);
  const count = Math.ceil(most / low);
  if (count > MOST_CHUNKS) return manyChunks(needs.algorithm, count);
  const units = Math.ceil(most / count);
  return Array.from({ length: Math.ceil(most / units) }, (_, index) => {
    const first = index * units * multiple;
    return { first, images: Math.min(units * multiple, batch - first) };
  });
}

/** More chunks than this take seconds to plan, and longer to run than their products. */
export const MOST_CHUNKS = 1024;

/** Refuses more chunks than are planned. */
export function manyChunks(algorithm: string, chunks: number): Refusal {
  return refusal(
    "workspace",
    `${algorithm} takes ${chunks} chunks of the batch to keep within the workspace, ` +
      `at most ${MOST_CHUNKS} are planned`,
  );
}

/** What is made of four images a vector; of single ones where chunks of four exceed a limit. */
export function fourElseOne<T>(
  interleave: 1 | 4,
  make: (interleave: 1 | 4) => Planned<T>,
): Planned<T> {
  const made = make(interleave);
  return interleave === 4 && isRefusal(made) ? make(1) : made;
}

function chunkFits(needs: ChunkNeeds, images: number): boolean {
  const bytes = needs.bytes(images);
  const workspace = needs.fixedBytes + bytes.reduce((sum, one) => sum + one, 0);
  return Math.max(...bytes) <= needs.maxBufferBytes &&
    workspace <= (needs.maxWorkspaceBytes ?? Infinity);
}

function tooSmall(needs: ChunkNeeds): Refusal {
  const bytes = needs.bytes(needs.multiple);
  const largest = Math.max(...bytes);
  const images = needs.multiple === 1 ? "one image" : `${needs.multiple} images`;
  if (largest > needs.maxBufferBytes) {
    return refusal(
      "limit",
      `${needs.algorithm} takes a buffer of ${largest} bytes for ${images}, ` +
        `the device's limit is ${needs.maxBufferBytes}`,
    );
  }
  const least = needs.fixedBytes + bytes.reduce((sum, one) => sum + one, 0);
  return refusal(
    "workspace",
    `${needs.algorithm} takes at least ${least} bytes of workspace, ` +
      `at most ${needs.maxWorkspaceBytes} are allowed`,
  );
}

/**
 * Most bytes of a chunk's buffer: what one binding holds, since kernels reach the parts of larger buffers slowly;
 * where the least chunk exceeds it, all that a buffer may have.
 *
 * @param least Bytes of each buffer of the least chunk.
 */
export function chunkBufferBytes(limits: DeviceLimits, least: readonly number[]): number {
  const binding = Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize);
  return Math.max(...least) <= binding ? binding : limits.maxBufferSize;
}
