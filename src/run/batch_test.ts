import assert from "#assert";
import type { Operation } from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import type { Layout } from "../tensor/layout.ts";
import { batchedSubject, cutBatch } from "./batch.ts";

const GIB = 2 ** 30;

function batched(descriptor: string, op: Operation = "fwd", layout: Layout = "nchw") {
  const problem = parseDescriptor(descriptor, op);
  return batchedSubject({ problem, layout, filterLayout: "kcrs" });
}

/** One image has 4 MiB, its result 2 MiB. */
const LARGE = "mb1000ic4ih512oc2kh3ph1";

Deno.test("cutBatch() leaves whole what fits into a GiB and the device's buffers", () => {
  const subject = batched("mb100ic4ih512oc2kh3ph1");
  assert.equal(cutBatch({ subject, maxBufferBytes: GIB }), undefined);
  assert.equal(cutBatch({ subject, maxBufferBytes: GIB, images: 100 }), undefined);
  // X of 400 MiB exceeds a buffer.
  assert.deepEqual(cutBatch({ subject, maxBufferBytes: GIB / 4 }), { images: 8, chunks: 13 });
  assert.equal(cutBatch({ subject: batched("mb0ic4ih9oc2kh3"), maxBufferBytes: 4 }), undefined);
});

Deno.test("cutBatch() takes chunks of 64 MiB, as even as they can be, or as many images as are asked for", () => {
  const subject = batched(LARGE);
  assert.deepEqual(cutBatch({ subject, maxBufferBytes: GIB }), { images: 8, chunks: 125 });
  assert.deepEqual(cutBatch({ subject, maxBufferBytes: GIB, images: 150 }), {
    images: 150,
    chunks: 7,
  });
  // Both operands have a batch, the result has none.
  assert.deepEqual(cutBatch({ subject: batched(LARGE, "bwd-filter"), maxBufferBytes: GIB }), {
    images: 8,
    chunks: 125,
  });
  // Where the batch lies innermost, pieces are as long as they can be.
  const inner = batched("mb1000000ic1ih16oc1kh3ph1", "fwd", "chwn");
  assert.deepEqual(cutBatch({ subject: inner, maxBufferBytes: GIB }), {
    images: 32768,
    chunks: 31,
  });
});

Deno.test("cutBatch() halves what is allowed between three chunks' tensors and workspace", () => {
  const subject = batched(LARGE);
  const cut = cutBatch({ subject, maxBufferBytes: GIB, maxBytes: 144 * 2 ** 20 });
  assert.deepEqual(cut, { images: 4, chunks: 250, maxWorkspaceBytes: 24 * 2 ** 20 });
  assert.throws(() => cutBatch({ subject, maxBufferBytes: GIB, maxBytes: 2 ** 20 }), {
    name: "RangeError",
    message: "Cannot convolve in chunks: one image takes 6291456 bytes, 3 of them and as much " +
      "workspace 37748736, at most 1048576 are allowed",
  });
});

Deno.test("cutBatch() refuses an image, or as many as are asked for, that exceed a buffer", () => {
  const subject = batched(LARGE);
  const maxBufferBytes = 2 ** 21;
  assert.throws(() => cutBatch({ subject, maxBufferBytes }), {
    name: "UnsupportedError",
    message: "Cannot convolve in chunks: one image of the input [1,4,512,512] takes 4194304 " +
      "bytes, the device's largest buffer has 2097152",
  });
  const asked = { subject, maxBufferBytes: 2 ** 23, images: 3 };
  assert.throws(() => cutBatch(asked), { name: "UnsupportedError" });
  assert.deepEqual(cutBatch({ ...asked, images: 2 }), { images: 2, chunks: 500 });
});
