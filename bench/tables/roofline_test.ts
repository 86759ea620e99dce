import assert from "#assert";
import type { Case } from "./read.ts";
import { floorOf, floorTime } from "./roofline.ts";

/** 2 images of 8x8, 4 channels to 16, 3x3 and padded: inputs of 512, filters of 576, results of 2048 elements. */
const PROBLEM = 'mb2ic4ih8oc16oh8kh3ph1n"x"';
const TENSORS = 4 * (512 + 576 + 2048);

function caseOf(op: Case["op"], kernel: string): Case {
  return {
    kind: "case",
    provider: "wgconv",
    problem: PROBLEM,
    op,
    dtype: "f32",
    kernel,
    gflops: 1,
    multiplications: 67e6,
    time_ms: { median: 1 },
  };
}

Deno.test("floorOf() counts a multiplication as two flops, and every tensor once", () => {
  const floor = floorOf(caseOf("fwd", "implicit_gemm_fwd_f32_64x128x16_nchw"));
  assert.equal(floor.arithmetic, 2);
  assert.ok(Math.abs(floor.memory - TENSORS / 4.3e6) < 1e-12);
  assert.equal(floorTime(floor), 2);
});

Deno.test("floorOf() counts the transformed tensors of non-fused Winograd twice", () => {
  // F(4x4,3x3): 36 points, 2 x 2 tiles an image; 8 tiles of 4 and 16 channels, and the filters.
  const forward = floorOf(caseOf("fwd", "winograd2d_nonfused_fwd_f32_m4x4r3x3_64x128x16_nchw"));
  const transformed = 4 * 36 * (8 * (4 + 16) + 4 * 16);
  assert.ok(Math.abs(forward.memory - (TENSORS + 2 * transformed) / 4.3e6) < 1e-12);
  // F(3x3,4x4) of backward-filter: tiles of 4 x 4 lie on the results' gradient, as many.
  const filter = floorOf(
    caseOf("bwd-filter", "winograd2d_nonfused_bwd_filter_f32_m3x3r4x4_64x64x16_nhwc"),
  );
  assert.equal(filter.memory, forward.memory);
});
