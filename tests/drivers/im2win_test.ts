/** im2win, fused and not, and im2col on the driver at hand: golden cases, random problems, chunks, ablations. */
import assert from "#assert";
import fc from "fast-check";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import type { KernelVariant } from "../../src/kernels/variant.ts";
import {
  type ConvProblem,
  convProblem,
  type ConvProblemInit,
  OPERATIONS,
} from "../../src/problem/conv_problem.ts";
import { type Layout, LAYOUTS } from "../../src/tensor/layout.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { loadGoldenCases } from "../golden.ts";
import { agrees } from "../golden_conv.ts";
import { randomAxes, sizeModes, spatialSizes } from "../random_axes.ts";
import { full, test } from "./driver.ts";

const golden = loadGoldenCases();
const FEW = ["stride2_3x3", "groups_4", "dilated_2", "odd_channels"];

/** What brings windows together first, forward. */
const ALGORITHMS = ["im2col", "im2win", "im2win-fused"] as const;

for (const algorithm of ALGORITHMS) {
  test(`${algorithm} agrees with PyTorch in every layout`, async (gpu) => {
    for (const layout of LAYOUTS) {
      const all = full || layout === "nchw";
      const cases = all ? golden : golden.filter(({ name }) => FEW.includes(name));
      assert.ok(cases.length >= FEW.length);
      for (const one of cases) {
        await agrees(gpu, one, { op: "fwd", algorithm, layout, policy: "tiny" });
      }
    }
  });
}

/** Runs a problem and holds it against the reference. */
async function convolve(
  gpu: GpuDevice,
  problem: ConvProblem,
  choice: Partial<PlanRequest> & Pick<PlanRequest, "algorithm">,
) {
  return await checkedResult(
    gpu,
    convRequest(gpu, problem, { ...choice, schedule: { policy: "tiny", ...choice.schedule } }),
  );
}

/** Problems whose filter fits; most batches divide into fours. */
const problems = fc.record({
  axes: randomAxes({ more: 7, stride: 4 }),
  batch: fc.constantFrom(1, 3, 4, 8),
  groups: fc.constantFrom(1, 1, 2, 3),
  groupIn: fc.constantFrom(1, 2, 3, 4, 8, 14, 16),
  groupOut: fc.integer({ min: 1, max: 9 }),
}).map(({ axes, batch, groups, groupIn, groupOut }): ConvProblemInit => ({
  batch,
  groups,
  inChannels: groups * groupIn,
  outChannels: groups * groupOut,
  ...spatialSizes(axes),
}));

test("random problems agree with the reference, split or not", async (gpu) => {
  await fc.assert(
    fc.asyncProperty(
      problems,
      fc.constantFrom(...ALGORITHMS),
      fc.constantFrom(...LAYOUTS),
      fc.constantFrom(1, 2),
      sizeModes,
      async (init, algorithm, layout, splits, sizes) => {
        await convolve(gpu, convProblem(init), { algorithm, layout, schedule: { splits }, sizes });
      },
    ),
    { numRuns: full ? 600 : 50, seed: 20261120 },
  );
});

const SMALL: ConvProblemInit = {
  batch: 12,
  inChannels: 6,
  outChannels: 8,
  groups: 2,
  inputSize: [9, 7],
  filterSize: [3, 2],
  stride: [2, 1],
  paddingBegin: [1, 1],
  dilation: [1, 2],
};

test("chunks of the batch give what the whole gives, to the bit", async (gpu) => {
  for (const algorithm of ["im2col", "im2win"] as const) {
    for (const layout of LAYOUTS) {
      for (
        const sizes of ["uniform", ...(layout === "nchw" ? ["constant" as const] : [])] as const
      ) {
        const problem = convProblem(SMALL);
        const choice = { algorithm, layout, sizes, schedule: { splits: 1 } };
        const whole = await convolve(gpu, problem, choice);
        const maxWorkspaceBytes = whole.plan.workspaceBytes - 1000;
        const parts = await convolve(gpu, problem, { ...choice, maxWorkspaceBytes });
        const what = `${algorithm} ${layout}`;
        assert.ok(parts.plan.workspaceBytes <= maxWorkspaceBytes, what);
        assert.ok(parts.plan.passes.some(({ kernel }) => /_chunk/.test(kernel.name)), what);
        assert.deepEqual(parts.result, whole.result, what);
      }
    }
  }
});

test("bias and activation follow the sum, in chunks too", async (gpu) => {
  const epilogue = { bias: true, activation: "leaky-relu" } as const;
  for (const algorithm of ALGORITHMS) {
    for (const layout of LAYOUTS) {
      const { plan } = await convolve(gpu, convProblem(SMALL), { algorithm, layout, epilogue });
      if (algorithm === "im2win-fused") continue;
      const maxWorkspaceBytes = plan.workspaceBytes - 1000;
      await convolve(gpu, convProblem(SMALL), { algorithm, layout, epilogue, maxWorkspaceBytes });
    }
  }
});

const VARIANTS: readonly KernelVariant[] = [
  { prefetch: false },
  { doubleBuffer: true },
];

test("the main loop without one of its techniques gives the same", async (gpu) => {
  const runs = [
    ...ALGORITHMS.map((algorithm) => ({ algorithm, op: "fwd" as const })),
    ...OPERATIONS.map((op) => ({ algorithm: "implicit-gemm" as const, op })),
  ];
  for (const { algorithm, op } of full ? runs : runs.filter(({ op }) => op === "fwd")) {
    for (const variant of VARIANTS) {
      const problem = convProblem({ ...SMALL, op });
      const { plan } = await convolve(gpu, problem, { algorithm, schedule: { ...variant } });
      assert.match(plan.kernel, /_(no_micro_kernel|no_vector_load|no_prefetch|double_buffer)$/);
    }
  }
});

test("every policy is dealt out, the one of 96 rows too", async (gpu) => {
  // SwiftShader takes gigabytes to compile what the larger ones unroll.
  const large = !/swiftshader/i.test(gpu.info.adapter);
  const policies = [
    "small",
    ...(large ? ["broad"] : []),
    ...(full && large ? ["wide", "tall"] : []),
  ];
  const problem = convProblem({ ...SMALL, groups: 1, outChannels: 100 });
  for (const policy of policies) {
    for (const algorithm of [...ALGORITHMS, "implicit-gemm"] as const) {
      await convolve(gpu, problem, { algorithm, schedule: { policy } });
    }
  }
});

test("without channels or images nothing is copied", async (gpu) => {
  for (const algorithm of ALGORITHMS) {
    for (const layout of ["nchw", "nhwc"] satisfies Layout[]) {
      const none = convProblem({ ...SMALL, inChannels: 0 });
      const { result } = await convolve(gpu, none, { algorithm, layout });
      assert.ok(result.every((value) => value === 0));
      const empty = convProblem({ ...SMALL, batch: 0 });
      await convolve(gpu, empty, { algorithm, layout });
    }
  }
});
