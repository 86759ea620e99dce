import assert from "#assert";
import { productBytes } from "./product_kernel.ts";
import { findPolicy, parseTilePolicy, policyThreads, policyTile, TILE_POLICIES } from "./policy.ts";

Deno.test("every policy's threads fill whole warps of its tile", () => {
  for (const policy of TILE_POLICIES) {
    const [warpRows, warpColumns] = policy.warp;
    assert.equal(warpRows * warpColumns, 32);
    assert.equal((policy.rows / policy.threadRows) % warpRows, 0, policy.name);
    assert.equal((policy.columns / policy.threadColumns) % warpColumns, 0, policy.name);
    assert.equal(policyThreads(policy) % 32, 0);
  }
});

Deno.test("the smaller policies fit what every WebGPU device has, however operands lie", () => {
  const worst = productBytes(findPolicy("small")!, { along: "depth" }, { along: "depth" });
  assert.ok(worst <= 16_384, `${worst}`);
  for (const name of ["tiny", "small", "large"]) {
    const policy = findPolicy(name)!;
    assert.ok(policyThreads(policy) <= 256);
    assert.ok(productBytes(policy, { along: "depth" }, { along: "depth" }) <= 16_384, name);
  }
  assert.equal(policyTile(findPolicy("huge")!), "128x128x16");
  assert.equal(findPolicy("enormous"), undefined);
});

Deno.test("parseTilePolicy() reads tiles, those with names as what they are, and refuses what kernels cannot use", () => {
  const free = parseTilePolicy("128x32x8_8x4")!;
  assert.deepEqual(free, {
    name: "128x32x8_8x4",
    rows: 128,
    columns: 32,
    depth: 8,
    threadRows: 8,
    threadColumns: 4,
    warp: [4, 8],
  });
  assert.equal(policyTile(free), "128x32x8_8x4");
  for (const policy of TILE_POLICIES) {
    const { threadRows, threadColumns } = policy;
    assert.equal(parseTilePolicy(`${policyTile(policy)}_${threadRows}x${threadColumns}`), policy);
  }
  assert.equal(parseTilePolicy("64x128x16"), findPolicy("wide"));
  assert.equal(policyThreads(parseTilePolicy("64x16x4_4x4")!), 64);
  for (
    const text of [
      "128x32",
      "128x32x6_8x4",
      "128x32x0_8x4",
      "128x30x8_8x4",
      "128x32x8_8x6",
      "128x32x8_0x4",
      "16x16x8_8x8",
      "0x32x8_8x4",
      "1024x1024x4_128x32",
      "128x32x8_8x4d",
      "-128x32x8",
    ]
  ) assert.equal(parseTilePolicy(text), undefined, text);
});
