/** Convolutions whose tiles beyond whole waves are split (stream-K), on the driver at hand, against the reference. */
import assert from "#assert";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { test } from "./driver.ts";
import { softwareDevice } from "../../src/algorithms/device/software.ts";
import type { AlgorithmName } from "../../src/algorithms/plan.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import { convProblem, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { type Layout, LAYOUTS } from "../../src/tensor/layout.ts";

/** Sizes that fours divide, so that results leave in vectors, and sizes that nothing divides. */
const EVEN = { batch: 4, inChannels: 40, outChannels: 72, inputSize: [8, 12], filterSize: [3, 3] };
const ODD = { batch: 3, inChannels: 34, outChannels: 70, inputSize: [9, 11], filterSize: [3, 2] };
const GROUPS = { ...ODD, groups: 2 };

async function run(
  gpu: GpuDevice,
  algorithm: AlgorithmName,
  init: typeof EVEN & { groups?: number },
  op: typeof OPERATIONS[number],
  layout: Layout,
  sizes: "constant" | "uniform",
) {
  const problem = convProblem({ ...init, op, paddingBegin: [1, 1], paddingEnd: [1, 1] });
  const { plan } = await checkedResult(
    gpu,
    convRequest(gpu, problem, {
      algorithm,
      layout,
      epilogue: op === "fwd" ? { bias: true, activation: "relu" } : NO_EPILOGUE,
      schedule: { policy: "tiny", balance: "stream-k" },
      device: softwareDevice(2),
      sizes,
    }),
  );
  assert.match(plan.kernel, /_streamk(_|$)/);
  assert.match(plan.notes.at(-1)!, /stream-K: [1-9]\d* tiles whole, the depth of [1-9]/);
  return plan;
}

for (const op of OPERATIONS) {
  test(`stream-K of ${op} agrees with the reference in every layout`, async (gpu) => {
    for (const layout of LAYOUTS) {
      for (const init of [EVEN, ODD, GROUPS]) {
        await run(gpu, "implicit-gemm", init, op, layout, "uniform");
      }
    }
    const { passes } = await run(gpu, "implicit-gemm", EVEN, op, "nhwc", "constant");
    const sides = op === "fwd" ? /^reduce_tiles_f32x4rows_.*_bias_relu/ : /^reduce_tiles_f32x4/;
    assert.match(passes.at(-1)!.kernel.name, sides);
  });
}

for (const algorithm of ["im2win", "im2win-fused", "im2col"] as const) {
  test(`stream-K of ${algorithm} agrees with the reference in every layout`, async (gpu) => {
    for (const layout of LAYOUTS) {
      for (const init of [EVEN, ODD, GROUPS]) {
        const { passes } = await run(gpu, algorithm, init, "fwd", layout, "uniform");
        // Four images of the even batch lie in one vector.
        const four = init === EVEN && (algorithm !== "im2col" || layout !== "nhwc");
        assert.equal(/^reduce_tiles_.*_i_/.test(passes.at(-1)!.kernel.name), four, layout);
      }
    }
  });
}
