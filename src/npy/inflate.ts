import { Inflate } from "../deps/fflate.ts";
import { InputSyntaxError } from "../errors.ts";
import type { ByteSource } from "./bytes.ts";

/** Deflate makes at most this many bytes of one. */
export const MAX_INFLATION = 1032;

/** Bytes inflated at once: bounds what one step can make to 32 MiB. */
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
  const ready: Uint8Array<ArrayBuffer>[] = [];
  const stream = new Inflate((data) => ready.push(new Uint8Array(data)));
  const piece = new Uint8Array(Math.min(PIECE, packed.size));
  let made = 0;
  for (let offset = 0; offset < packed.size; offset += piece.length) {
    const count = await packed.read(piece, offset);
    try {
      // A copy, because the stream keeps what it has not used.
      stream.push(piece.slice(0, count), offset + count >= packed.size);
    } catch (error) {
      throw new InputSyntaxError(
        `Cannot read ${path}: byte ${made} of the inflated data: expected deflated data, found ${
          error instanceof Error ? error.message : error
        }`,
      );
    }
    for (const data of ready) {
      made += data.length;
      if (made > size) {
        throw new InputSyntaxError(
          `Cannot read ${path}: expected ${size} inflated bytes, found more`,
        );
      }
      yield data;
    }
    ready.length = 0;
  }
  if (made < size) {
    throw new InputSyntaxError(
      `Cannot read ${path}: expected ${size} inflated bytes, found ${made}`,
    );
  }
}
