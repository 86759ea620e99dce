import assert from "#assert";
import { mainLoopBytes } from "./main_loop.ts";
import { findPolicy, policyThreads, policyTile, TILE_POLICIES } from "./policy.ts";

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
  const worst = mainLoopBytes(findPolicy("small")!, { along: "depth" }, { along: "depth" });
  assert.ok(worst <= 16_384, `${worst}`);
  for (const name of ["tiny", "small", "large"]) {
    const policy = findPolicy(name)!;
    assert.ok(policyThreads(policy) <= 256);
    assert.ok(mainLoopBytes(policy, { along: "depth" }, { along: "depth" }) <= 16_384, name);
  }
  assert.equal(policyTile(findPolicy("huge")!), "128x128x16");
  assert.equal(findPolicy("enormous"), undefined);
});
