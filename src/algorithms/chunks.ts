import { UnsupportedError } from "../errors.ts";
import type { DeviceLimits } from "./plan.ts";

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
 * for an empty batch.
 *
 * @throws {RangeError} if the user's limit is too small for the least chunk, or makes too many of them.
 * @throws {UnsupportedError} if the device's is.
 */
export function batchChunks(needs: ChunkNeeds): Chunk[] {
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
  if (low === 0) throw tooSmall(needs);
  const count = Math.ceil(most / low);
  refuseManyChunks(needs.algorithm, count);
  const units = Math.ceil(most / count);
  return Array.from({ length: Math.ceil(most / units) }, (_, index) => {
    const first = index * units * multiple;
    return { first, images: Math.min(units * multiple, batch - first) };
  });
}

/** More chunks than this take seconds to plan, and longer to run than their products. */
export const MOST_CHUNKS = 1024;

/** @throws {RangeError} for more chunks than are planned. */
export function refuseManyChunks(algorithm: string, chunks: number): void {
  if (chunks <= MOST_CHUNKS) return;
  throw new RangeError(
    `Cannot plan: ${algorithm} takes ${chunks} chunks of the batch to keep within the workspace, ` +
      `at most ${MOST_CHUNKS} are planned`,
  );
}

/** Cause of the refusals of a least chunk. */
const TOO_LARGE = "the least chunk exceeds a limit";

/** What is made of four images a vector; of single ones where chunks of four exceed a limit. */
export function fourElseOne<T>(interleave: 1 | 4, make: (interleave: 1 | 4) => T): T {
  if (interleave === 1) return make(1);
  try {
    return make(4);
  } catch (error) {
    if (!(error instanceof Error) || error.cause !== TOO_LARGE) throw error;
    return make(1);
  }
}

function chunkFits(needs: ChunkNeeds, images: number): boolean {
  const bytes = needs.bytes(images);
  const workspace = needs.fixedBytes + bytes.reduce((sum, one) => sum + one, 0);
  return Math.max(...bytes) <= needs.maxBufferBytes &&
    workspace <= (needs.maxWorkspaceBytes ?? Infinity);
}

function tooSmall(needs: ChunkNeeds): Error {
  const bytes = needs.bytes(needs.multiple);
  const largest = Math.max(...bytes);
  const images = needs.multiple === 1 ? "one image" : `${needs.multiple} images`;
  if (largest > needs.maxBufferBytes) {
    return new UnsupportedError(
      `Cannot plan: ${needs.algorithm} takes a buffer of ${largest} bytes for ${images}, ` +
        `the device's limit is ${needs.maxBufferBytes}`,
      { cause: TOO_LARGE },
    );
  }
  const least = needs.fixedBytes + bytes.reduce((sum, one) => sum + one, 0);
  return new RangeError(
    `Cannot plan: ${needs.algorithm} takes at least ${least} bytes of workspace, ` +
      `at most ${needs.maxWorkspaceBytes} are allowed`,
    { cause: TOO_LARGE },
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
