import assert from "#assert";
import { deflateRawSync } from "node:zlib";
import type { ByteSource } from "./bytes.ts";
import { inflatedBytes } from "./zip.ts";

const DATA = Uint8Array.from({ length: 200_000 }, (_, i) => (i * i) >> 7);
const PACKED = deflateRawSync(DATA);

/** Deflated data of which a read brings at most some bytes, and nothing behind `end`. */
function slowSource(most: number, end = PACKED.length): ByteSource {
  return {
    size: PACKED.length,
    read(into, offset) {
      const part = PACKED.subarray(offset, Math.min(offset + Math.min(most, into.length), end));
      into.set(part);
      return Promise.resolve(part.length);
    },
    close: () => {},
  };
}

Deno.test("inflatedBytes() takes reads that bring less than was asked for", async () => {
  for (const most of [7, 1000, PACKED.length]) {
    const bytes = inflatedBytes(slowSource(most), DATA.length, "x.npz");
    const into = new Uint8Array(DATA.length);
    assert.equal(await bytes.read(into, 0), DATA.length);
    assert.deepEqual(into, DATA);
    const part = new Uint8Array(100);
    assert.equal(await bytes.read(part, 500), 100);
    assert.deepEqual(part, DATA.slice(500, 600));
  }
});

Deno.test("inflatedBytes() refuses data that ends early, and waits for no more", async () => {
  const bytes = inflatedBytes(slowSource(1000, 5000), DATA.length, "x.npz");
  await assert.rejects(bytes.read(new Uint8Array(DATA.length), 0), {
    name: "SyntaxError",
    message: /^Cannot read x\.npz: /,
  });
});
