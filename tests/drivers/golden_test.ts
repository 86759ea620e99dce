/**
 * The golden cases on the driver at hand: nchw whole and three cases of the other layouts, or with
 * WGCONV_TEST_MATRIX=full (`deno task test:drivers`) all of them. WGCONV_TEST_BACKEND=dawn runs them through Dawn.
 */
import assert from "#assert";
import { OPERATIONS } from "../../src/problem/conv_problem.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { goldenCase, loadGoldenCases } from "../golden.ts";
import { agrees, type GoldenRun } from "../golden_conv.ts";
import { full, test } from "./driver.ts";

const cases = loadGoldenCases();
/** A stride that leaves a remainder, groups, and channels that divide nothing. */
const FEW = ["stride2_3x3", "groups_4", "odd_channels"];

const MATRIX = (["direct", "implicit-gemm"] as const).flatMap((algorithm) =>
  OPERATIONS.flatMap((op) =>
    LAYOUTS.map((layout): GoldenRun => ({
      op,
      algorithm,
      layout,
      ...(algorithm === "direct" ? {} : { policy: "tiny" }),
    }))
  )
);

for (const run of MATRIX) {
  const { op, algorithm, layout } = run;
  const chosen = full || layout === "nchw" ? cases : cases.filter(({ name }) => FEW.includes(name));
  test(`${algorithm} ${op} ${layout} agrees with PyTorch on ${chosen.length} cases`, async (gpu) => {
    assert.ok(chosen.length >= 3);
    for (const golden of chosen) {
      await agrees(gpu, golden, run);
    }
  });
}

test("every policy agrees with PyTorch where nothing divides its tiles", async (gpu) => {
  // SwiftShader takes gigabytes to compile what the larger ones unroll.
  const all = full && !/swiftshader/i.test(gpu.info.adapter);
  const policies = all ? ["small", "wide", "tall", "large", "huge"] : ["small"];
  const golden = goldenCase("pointwise");
  for (const policy of policies) {
    for (const op of OPERATIONS) {
      const run: GoldenRun = { op, algorithm: "implicit-gemm", layout: "nhwc", policy };
      await agrees(gpu, golden, run);
    }
  }
});

test("tensors larger than one binding are read and written in parts", async (gpu) => {
  const golden = goldenCase("stride2_3x3");
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      const limits = { maxStorageBufferBindingSize: 12_288 };
      const run: GoldenRun = {
        op,
        algorithm: "implicit-gemm",
        layout,
        policy: "tiny",
        splits: 1,
        limits,
      };
      assert.match(await agrees(gpu, golden, run), /_parts/);
    }
  }
});

test("baked sizes compute what sizes from a uniform compute", async (gpu) => {
  for (const name of FEW) {
    const golden = goldenCase(name);
    for (const op of OPERATIONS) {
      const run: GoldenRun = {
        op,
        algorithm: "implicit-gemm",
        layout: "nchw",
        policy: "tiny",
        sizes: "constant",
      };
      await agrees(gpu, golden, run);
    }
  }
});
