import assert from "#assert";
import { tileFloors } from "./floors.ts";

/** Two images of two channels and 256 places. Of a channel one place in four is 0. */
const shape = [2, 2, 16, 16];
const sizes = [1, 100, 10, 1000];
const magnitudes = Float64Array.from(
  { length: 1024 },
  (_, i) => i % 4 === 0 ? 0 : sizes[Math.floor(i / 256)]!,
);
const tile = [4, 4];

Deno.test("tileFloors() are roots of mean squares, of an image's channel each", () => {
  const floors = tileFloors({ shape, magnitudes }, { tile });
  sizes.forEach((size, slice) => {
    assert.equal(floors(256 * slice), floors(256 * slice + 255));
    assert.ok(Math.abs(floors(256 * slice) / (size * Math.sqrt(0.75)) - 1) < 1e-12);
  });
});

Deno.test("tileFloors() of a sample know images and channels that it has few outputs of", () => {
  // All of image 0, of image 1's channels two outputs each.
  const indices = Float64Array.from([...Array(512).keys(), 513, 514, 769, 770]);
  const sampled = { shape, indices, magnitudes: indices.map((i) => magnitudes[i]!) };
  const floors = tileFloors(sampled, { tile });
  assert.equal(floors(0), tileFloors({ shape, magnitudes }, { tile })(0));
  const ratio = floors(768) / floors(512);
  assert.ok(ratio > 50 && ratio < 200, `${ratio}`);
  // A sample without an output of an image says nothing of it.
  const first = { shape, indices: indices.slice(0, 512), magnitudes: magnitudes.slice(0, 512) };
  assert.equal(tileFloors(first, { tile })(600), 0);
});

Deno.test("tileFloors() of plain sums are 0", () => {
  assert.equal(tileFloors({ shape, magnitudes }, { tile: [1, 1] })(5), 0);
});
