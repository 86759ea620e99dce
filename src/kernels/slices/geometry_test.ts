import assert from "#assert";
import { paddedChannels, type SliceGeometry, tapCount, tileCount } from "./geometry.ts";

const outer = {
  size: 56,
  sourceStride: 56,
  padding: 1,
  places: 56,
  targetStride: 56,
  taps: 3,
  stride: 1,
  dilation: 1,
};
const tiled = {
  size: 56,
  sourceStride: 1,
  padding: 1,
  places: 56,
  targetStride: 1,
  n: 6,
  r: 3,
  chunks: 1,
  first: 0,
  tiles: 9,
};
const geometry: SliceGeometry = {
  batch: 2,
  sourceBatchStride: 1,
  targetBatchStride: 1,
  batchInner: false,
  channelsInner: false,
  channels: 20,
  sourceChannelStride: 1,
  targets: 7,
  targetChannelStride: 1,
  outer: [outer],
  tiled: [tiled],
};

Deno.test("tileCount() has a tile for every image, outer place and run of places", () => {
  assert.equal(tileCount(geometry), 2 * 56 * 9);
  assert.equal(tileCount({ ...geometry, outer: [], tiled: [tiled, tiled] }), 2 * 9 * 9);
  assert.equal(tileCount({ ...geometry, batch: 0 }), 0);
});

Deno.test("tapCount() has outer taps and pieces of tiled ones", () => {
  assert.equal(tapCount(geometry), 3);
  assert.equal(tapCount({ outer: [outer], tiled: [{ ...tiled, chunks: 2 }] }), 6);
  assert.equal(tapCount({ outer: [], tiled: [tiled, tiled] }), 1);
});

Deno.test("paddedChannels() fills whole steps", () => {
  assert.equal(paddedChannels(20, 8), 24);
  assert.equal(paddedChannels(0, 8), 0);
});
