/** Implicit GEMM of nchw whose images are written once with channels innermost, on the driver at hand, against the reference. */
import assert from "#assert";
import fc from "fast-check";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import type { GpuDevice } from "../../src/gpu/gpu_device.ts";
import { type ConvProblem, convProblem, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { ACTIVATIONS } from "../../src/problem/activations.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { randomAxes, randomSizes, sizeModes } from "../random_axes.ts";
import { full, test } from "./driver.ts";

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

test("random problems of nchw whose images are rewritten agree with the reference", async (gpu) => {
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
          schedule: {
            policy: "tiny",
            channelsLast: true,
            ...(packedFilter ? { packedFilter } : {}),
            splits,
          },
          ...{ sizes },
        });
        if (plan.passes.length === 0) return;
        assert.equal(rewritten, op === "bwd-filter" ? 2 : 1, plan.kernel);
        assert.match(plan.kernel, op === "bwd-filter" ? /_nhwc_\dd_/ : /_nhwc_to_nchw_\dd_/);
      },
    ),
    { numRuns: full ? 400 : 60, seed: 20261123 },
  );
});

test.units("images of f16 are rewritten for matrix units", async (gpu) => {
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
          schedule: { policy: "matrix-small", channelsLast: true },
          ...(matrixUnits && { matrixUnits }),
        });
        assert.equal(rewritten, op === "bwd-filter" ? 2 : 1);
        assert.match(plan.kernel, /_mma\d+x\d+x\d+_.*_nhwc_/);
      }
    }
  }
});

test.units("few and odd channels of f16 are padded for matrix units, or take the last axis's taps", async (gpu) => {
  const { matrixUnits } = gpu;
  const notes = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      randomSizes({
        axes: randomAxes({ more: 9, stride: 3 }),
        batch: fc.integer({ min: 1, max: 3 }),
        groups: fc.constant(1),
        groupIn: fc.constantFrom(1, 3, 12, 16, 21),
        groupOut: fc.constantFrom(3, 16, 21),
      }),
      fc.constantFrom(...OPERATIONS),
      fc.constantFrom<["nhwc" | "nchw", "krsc" | "kcrs"]>(
        ["nhwc", "krsc"],
        ["nhwc", "kcrs"],
        ["nchw", "kcrs"],
        ["nchw", "krsc"],
      ),
      fc.constantFrom(1, 3),
      sizeModes,
      async (init, op, [layout, filterLayout], splits, sizes) => {
        const problem = convProblem({ ...init, op });
        const { plan } = await check(gpu, problem, {
          dtype: "f16",
          schedule: { policy: "matrix-small", channelsLast: true, splits },
          epilogue: op === "fwd" ? { bias: true, activation: "relu" } : NO_EPILOGUE,
          ...{ layout, filterLayout, sizes },
          ...(matrixUnits && { matrixUnits }),
        });
        if (plan.passes.length === 0) return;
        const images = (op === "bwd-data" ? [] : [problem.inChannels]).concat(
          op === "fwd" ? [] : [problem.outChannels],
        );
        const odd = images.some((channels) => channels % 8 !== 0);
        const note = plan.notes.find((one) => one.includes("written once")) ?? "";
        assert.equal(note !== "", odd || layout === "nchw", plan.kernel);
        notes.add(`${op} ${/taps among|padded to|$/.exec(note)![0]}`);
        if (odd) assert.match(note, /taps among|padded to/);
      },
    ),
    { numRuns: full ? 300 : 60, seed: 20261124 },
  );
  for (
    const one of [
      "fwd taps among",
      "fwd padded to",
      "bwd-data padded to",
      "bwd-filter taps among",
      "bwd-filter padded to",
    ]
  ) {
    assert.ok(notes.has(one), one);
  }
});
