import { InputSyntaxError } from "../errors.ts";
import type { ByteSource } from "./bytes.ts";

/** Deflate makes at most this many bytes of one. */
export const MAX_INFLATION = 1032;

/** Bytes that are read and inflated at once. */
const PIECE = 32 << 10;

/**
 * The `size` bytes that deflated `packed` holds. Reading forward inflates as far as needed and keeps
 * nothing; reading backward starts again.
 */
export function inflatedBytes(packed: ByteSource, size: number, path: string): ByteSource {
  let position = 0;
  let steps = inflate(packed, size, path);
  let current = new Uint8Array(0);
  return {
    size,
    async read(into, offset) {
      if (offset < position) {
        steps = inflate(packed, size, path);
        current = new Uint8Array(0);
        position = 0;
      }
      let count = 0;
      while (true) {
        const part = current.subarray(offset + count - position).subarray(0, into.length - count);
        into.set(part, count);
        count += part.length;
        if (count === into.length) return count;
        position += current.length;
        const { done, value } = await steps.next();
        current = new Uint8Array(0);
        if (done) return count;
        current = value;
      }
    },
    close: () => packed.close(),
  };
}

async function* inflate(
  packed: ByteSource,
  size: number,
  path: string,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  let failure: unknown;
  let at = 0;
  const source = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(pieces) {
      const piece = new Uint8Array(Math.min(PIECE, packed.size - at));
      let count: number;
      try {
        count = await packed.read(piece, at);
      } catch (error) {
        failure = error;
        throw error;
      }
      at += count;
      if (count > 0) pieces.enqueue(piece.subarray(0, count));
      if (count === 0 || at >= packed.size) pieces.close();
    },
  });
  const refused = (text: string) => new InputSyntaxError(`Cannot read ${path}: ${text}`);
  let made = 0;
  const inflated = source.pipeThrough(new DecompressionStream("deflate-raw"))
    [Symbol.asyncIterator]();
  while (true) {
    const { done, value } = await inflated.next().catch((error) => {
      throw failure ?? refused(
        `byte ${made} of the inflated data: expected deflated data, found ${
          error instanceof Error ? error.message : error
        }`,
      );
    });
    if (done) break;
    made += value.length;
    if (made > size) throw refused(`expected ${size} inflated bytes, found more`);
    yield value;
  }
  if (made < size) throw refused(`expected ${size} inflated bytes, found ${made}`);
}
