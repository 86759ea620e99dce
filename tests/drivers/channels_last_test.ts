/** Implicit GEMM of nchw whose images are written once with channels innermost, on the driver at hand, against the reference. */
import assert from "#assert";
import fc from "fast-check";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import { openDevice } from "../../src/gpu/device.ts";
import type { GpuDevice } from "../../src/gpu/gpu_device.ts";
import { type ConvProblem, convProblem, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { ACTIVATIONS, NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { randomAxes, randomSizes, sizeModes } from "../random_axes.ts";
import { backend, full, openMatrixUnits } from "./driver.ts";

const problems = randomSizes({
  axes: randomAxes({ more: 7, stride: 3 }),
  batch: fc.integer({ min: 1, max: 5 }),
  groups: fc.constantFrom(1, 1, 2),
  groupIn: fc.integer({ min: 1, max: 12 }),
  groupOut: fc.integer({ min: 1, max: 20 }),
});

/** Holds a request against the reference, and says how many passes rewrote images. */
async function check(gpu: GpuDevice, problem: ConvProblem, more: Partial<PlanRequest>) {
  const { plan } = await checkedResult(
    gpu,
    convRequest(gpu, problem, { algorithm: "implicit-gemm", layout: "nchw", ...more }),
  );
  const rewritten =
    plan.buffers.filter(({ name }) =>
      name.endsWith("with channels last") && !name.startsWith("filter")
    ).length;
  return { plan, rewritten };
}

Deno.test("random problems of nchw whose images are rewritten agree with the reference", async () => {
  using gpu = await openDevice({ backend });
  await fc.assert(
    fc.asyncProperty(
      problems,
      fc.constantFrom(...OPERATIONS),
      fc.constantFrom(...ACTIVATIONS),
      fc.constantFrom(1, 3),
      fc.boolean(),
      sizeModes,
      async (init, op, activation, splits, packedFilter, sizes) => {
        const { plan, rewritten } = await check(gpu, convProblem({ ...init, op }), {
          epilogue: op === "fwd" ? { bias: true, activation } : NO_EPILOGUE,
          policy: "tiny",
          variant: { channelsLast: true, ...(packedFilter ? { packedFilter } : {}) },
          ...{ splits, sizes },
        });
        if (plan.passes.length === 0) return;
        assert.equal(rewritten, op === "bwd-filter" ? 2 : 1, plan.kernel);
        assert.match(plan.kernel, op === "bwd-filter" ? /_nhwc_\dd_/ : /_nhwc_to_nchw_\dd_/);
      },
    ),
    { numRuns: full ? 400 : 60, seed: 20261123 },
  );
});

Deno.test("images of f16 are rewritten for matrix units", async () => {
  using gpu = await openMatrixUnits();
  if (gpu === undefined) return;
  const { matrixUnits } = gpu;
  const shape = {
    batch: 8,
    inChannels: 16,
    outChannels: 40,
    inputSize: [9, 7],
    filterSize: [3, 3],
    paddingBegin: [1, 1],
  };
  for (const op of OPERATIONS) {
    for (const stride of [1, 2]) {
      const problem = convProblem({ ...shape, op, stride: [stride, stride] });
      for (const groups of [1, 2]) {
        const { plan, rewritten } = await check(gpu, { ...problem, groups }, {
          dtype: "f16",
          sizes: "constant",
          policy: "matrix-small",
          variant: { channelsLast: true },
          ...(matrixUnits && { matrixUnits }),
        });
        assert.equal(rewritten, op === "bwd-filter" ? 2 : 1);
        assert.match(plan.kernel, /_mma\d+x\d+x\d+_.*_nhwc_/);
      }
    }
  }
});
