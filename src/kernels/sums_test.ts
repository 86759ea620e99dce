import assert from "#assert";
import { splitLanes, splitSum } from "./sums.ts";

Deno.test("splitLanes() has several threads sum a vector where vectors are few and splits many", () => {
  assert.equal(splitLanes(1 << 20, 512), 1);
  assert.equal(splitLanes(10, 4), 1);
  // Four loads a thread at once.
  assert.equal(splitLanes(10, 5), 2);
  assert.equal(splitLanes(10, 48), 16);
  assert.equal(splitLanes(10, 4096), 32);
  assert.equal(splitLanes(1 << 13, 512), 4);
});

Deno.test("splitSum() has a thread for each vector and lane, and memory for their sums", () => {
  for (const [vectors, splits] of [[1, 2], [216, 384], [6272, 48], [100_000, 3]] as const) {
    const { values: { lanes, across }, workgroups, bytes } = splitSum(vectors, splits, "f32", 4);
    assert.equal(lanes * across, 256);
    assert.ok(workgroups * across >= vectors);
    // Sums and what they lost.
    assert.equal(bytes, lanes === 1 ? 0 : 2 * 256 * 16);
  }
  assert.equal(splitSum(10, 48, "i32", 1).bytes, 256 * 4);
});
