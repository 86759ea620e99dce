import assert from "#assert";
import { UnsupportedError } from "../errors.ts";
import { createBuffer, download, upload } from "./buffers.ts";
import { test } from "../../tests/drivers/driver.ts";

test("upload() and download() bring back bytes of any length at any aligned offset", async (gpu) => {
  const buffer = createBuffer(gpu, 64, "bytes");
  for (const length of [0, 1, 2, 3, 4, 5, 31]) {
    const data = Uint8Array.from({ length }, (_, i) => i + 1);
    upload(gpu, buffer, 8, data);
    const back = new Uint8Array(length);
    await download(gpu, buffer, 8, length, back);
    assert.deepEqual(back, data);
  }
  buffer.destroy();
});

test("upload() takes views at odd addresses and shared memory", async (gpu) => {
  const buffer = createBuffer(gpu, 16, "bytes");
  const shared = new Uint8Array(new SharedArrayBuffer(9), 1, 8);
  shared.set([1, 2, 3, 4, 5, 6, 7, 8]);
  upload(gpu, buffer, 0, shared);
  upload(gpu, buffer, 8, new Uint8Array([0, 9, 10, 11, 12]).subarray(1));
  const back = new Uint8Array(12);
  await download(gpu, buffer, 0, 12, back);
  assert.deepEqual([...back], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  buffer.destroy();
});

test("download() of more than one staging buffer comes in order and piecewise", async (gpu) => {
  const words = (80 << 20) / 4 + 3;
  const data = Uint32Array.from({ length: words }, (_, i) => Math.imul(i, 2654435761));
  const buffer = createBuffer(gpu, data.byteLength, "large");
  upload(gpu, buffer, 0, data);
  let next = 0;
  let largest = 0;
  await download(gpu, buffer, 0, data.byteLength, (piece, offset) => {
    assert.equal(offset, next);
    const got = new Uint32Array(piece.buffer, piece.byteOffset, piece.byteLength / 4);
    const wrong = got.findIndex((word, i) => word !== data[offset / 4 + i]);
    assert.equal(wrong, -1);
    next += piece.byteLength;
    largest = Math.max(largest, piece.byteLength);
  });
  assert.equal(next, data.byteLength);
  assert.equal(largest, 1 << 20);
  buffer.destroy();
});

test("upload() and download() refuse ranges outside the buffer", async (gpu) => {
  const buffer = createBuffer(gpu, 16, "small");
  assert.throws(() => upload(gpu, buffer, 12, new Uint8Array(5)), {
    name: "RangeError",
    message: /^Cannot upload: 5 bytes at offset 12 exceed .* of 16 bytes$/,
  });
  assert.throws(() => upload(gpu, buffer, 2, new Uint8Array(4)), RangeError);
  await assert.rejects(download(gpu, buffer, 0, 20, new Uint8Array(20)), RangeError);
  await assert.rejects(download(gpu, buffer, 0, 16, new Uint8Array(15)), {
    message: "Cannot download: 16 bytes do not fit an array of 15",
  });
  buffer.destroy();
});

test("createBuffer() refuses more than maxBufferSize", (gpu) => {
  const limit = gpu.limits.maxBufferSize;
  assert.throws(
    () => createBuffer(gpu, limit + 8, "the input"),
    (error: unknown) =>
      error instanceof UnsupportedError &&
      /^Cannot allocate the input: needs \d+ bytes, the device's maxBufferSize is \d+$/
        .test(error.message),
  );
  assert.throws(() => createBuffer(gpu, -4, "x"), RangeError);
  assert.throws(() => createBuffer(gpu, NaN, "x"), RangeError);
});

test("A failed allocation is an UnsupportedError of the next operation", async (gpu) => {
  // Software drivers hand out memory they do not have, so the device's verdict is replaced.
  const outOfMemory = new GPUOutOfMemoryError("Not enough memory left.");
  Object.defineProperty(gpu.device, "popErrorScope", {
    value: () => Promise.resolve(outOfMemory),
    configurable: true,
  });
  const buffer = createBuffer(gpu, 1024, "the filter");
  await assert.rejects(
    download(gpu, buffer, 0, 4, new Uint8Array(4)),
    (error: unknown) =>
      error instanceof UnsupportedError &&
      error.message === "Cannot allocate the filter: needs 1024 bytes, the device is out of memory",
  );
  buffer.destroy();
});
