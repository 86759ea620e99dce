/** Fused Winograd on the driver at hand: golden cases by tile, layout, policy and sizes. */
import assert from "#assert";
import { openDevice } from "../../src/gpu/device.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { goldenCase } from "../golden.ts";
import { agrees, type GoldenRun } from "../golden_conv.ts";
import { backend, full, test } from "./driver.ts";
import { ALGORITHMS, cases, OPS, SMALLEST } from "./winograd_fused.ts";

/** Groups, channels that divide nothing, padding beyond the filter. */
const FEW = ["groups_4", "odd_channels", "wide_pad"];
/** Each filter size is a kernel of its own, which takes seconds to compile on a CPU. */
const MANY = cases.filter(({ name }) => !/^filter_([4678]x|7x1)/.test(name));

for (const algorithm of ALGORITHMS) {
  for (const op of OPS) {
    for (const layout of LAYOUTS) {
      const chosen = full ? cases : layout === "nchw" && op === "fwd" ? MANY : FEW.map(goldenCase);
      test(`${algorithm} ${op} ${layout} agrees with PyTorch on ${chosen.length} cases`, async (gpu) => {
        for (const golden of chosen) {
          const run: GoldenRun = { op, algorithm, layout, policy: SMALLEST };
          const kernel = await agrees(gpu, golden, run);
          assert.match(kernel, new RegExp(`^${algorithm}_.*_8x8x4_4x4_${layout}_`));
        }
      });
    }
  }
}

/** Tiles that end in a remainder, overlap the edge, cut the filter into pieces, and are as long as can be. */
const TILES = {
  winograd1d: [
    ["odd_channels", "F(2,3)"],
    ["odd_channels", "F(3,2)"],
    ["filter_9x9", "F(6,3)"],
    ["filter_4x4", "F(3,4)"],
    ["filter_7x1", "F(1,1)"],
    ["filter_1x7", "F(10,7)"],
  ],
  winograd2d: [
    ["groups_4", "F(4x4,3x3)"],
    ["odd_channels", "F(4x2,3x2)"],
    ["filter_4x4", "F(2x2,2x2)"],
    ["filter_1x7", "F(1x2,1x7)"],
    ["pointwise", "F(1x1,1x1)"],
    ["filter_5x5", "F(4x4,5x5)"],
  ],
} as const;

for (const algorithm of ALGORITHMS) {
  test(`${algorithm} agrees with PyTorch with every tile`, async (gpu) => {
    // The larger ones take seconds to compile on a CPU.
    const tiles = TILES[algorithm].slice(0, full ? undefined : 4);
    for (const [index, [name, tile]] of tiles.entries()) {
      for (const op of full ? OPS : [OPS[index % 2]!]) {
        for (const layout of full ? LAYOUTS : [LAYOUTS[index % 3]!]) {
          await agrees(gpu, goldenCase(name), { op, algorithm, layout, tile, policy: SMALLEST });
        }
      }
    }
  });
}

test("policies, sums in parts, baked sizes and bindings in parts agree with PyTorch", async (gpu) => {
  const all: readonly (Partial<GoldenRun> & Pick<GoldenRun, "algorithm">)[] = [
    { algorithm: "winograd1d", sizes: "constant", policy: "32x16x8_4x4", tile: "F(2,3)" },
    { algorithm: "winograd2d", policy: "16x8x4_4x4", sizes: "constant" },
    { algorithm: "winograd1d", policy: "16x32x4_8x8", tile: "F(2,3)", flush: 8 },
    {
      algorithm: "winograd2d",
      policy: SMALLEST,
      limits: { maxStorageBufferBindingSize: 16_384 },
    },
    { algorithm: "winograd1d", policy: "64x32x8_8x16", tile: "F(2,3)" },
    { algorithm: "winograd2d", policy: "32x32x4_8x8" },
  ];
  const runs = full ? all : all.slice(0, 4);
  for (const [index, run] of runs.entries()) {
    for (const layout of full ? LAYOUTS : [LAYOUTS[index % 3]!]) {
      for (const op of full ? OPS : [OPS[index % 2]!]) {
        // SwiftShader's workgroups are small.
        if (index > 3 && gpu.limits.maxComputeInvocationsPerWorkgroup < 1024) continue;
        const kernel = await agrees(gpu, goldenCase("resnet_conv2_small"), {
          op,
          layout,
          ...run,
        });
        if (run.limits !== undefined) assert.match(kernel, /_parts/);
      }
    }
  }
});

Deno.test("threads that have all slices agree with PyTorch, also where no whole number of them copies a slice", async () => {
  using gpu = await openDevice({ backend, optionalFeatures: ["shader-f16"] });
  const all: readonly (Partial<GoldenRun> & Pick<GoldenRun, "algorithm">)[] = [
    { algorithm: "winograd1d", sizes: "constant", policy: "16x16x3_4x4a", tile: "F(2,3)" },
    { algorithm: "winograd1d", policy: "32x16x2_4x4a", tile: "F(4,3)" },
    { algorithm: "winograd1d", policy: "16x16x4_4x4a", tile: "F(2,3)", flush: 8 },
    {
      algorithm: "winograd1d",
      sizes: "constant",
      policy: "16x16x2_4x4a",
      tile: "F(4,3)",
      splits: 3,
    },
    { algorithm: "winograd2d", policy: "16x16x2_4x4a" },
  ];
  for (const [index, run] of all.entries()) {
    if (run.dtype === "f16" && !gpu.features.has("shader-f16")) continue;
    for (const layout of full ? LAYOUTS : [LAYOUTS[index % 3]!]) {
      for (const op of full ? OPS : [OPS[index % 2]!]) {
        const kernel = await agrees(gpu, goldenCase("odd_channels"), { op, layout, ...run });
        assert.match(kernel, /4x4a/);
      }
    }
  }
});
