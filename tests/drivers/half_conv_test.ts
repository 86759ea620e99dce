/** Convolutions of f16 tensors on the driver at hand, where it has them, against the FP64 reference. */
import assert from "#assert";
import fc from "fast-check";
import type { AlgorithmName } from "../../src/algorithms/names.ts";
import { supportedAlgorithms } from "../../src/algorithms/planner.ts";
import { expectPlanned } from "../../src/algorithms/refusal.ts";
import { openDevice } from "../../src/gpu/device.ts";
import { CONV_DTYPES, convProblem, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { ACTIVATIONS, NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { DEFAULT_LIMITS } from "../../src/algorithms/plan.ts";
import { convSubject } from "../../src/run/conv_subject.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { randomAxes, sizeModes, spatialSizes } from "../random_axes.ts";

const backend = Deno.env.get("WGCONV_TEST_BACKEND") === "dawn" ? "dawn" : "wgpu";
const full = Deno.env.get("WGCONV_TEST_MATRIX") === "full";

/** Algorithms that take f16. */
const HALF = ["direct", "implicit-gemm", "im2col"] as const;

const problems = fc.record({
  axes: randomAxes({ more: 7, stride: 3 }),
  batch: fc.integer({ min: 1, max: 4 }),
  groups: fc.constantFrom(1, 1, 2),
  groupIn: fc.integer({ min: 1, max: 9 }),
  groupOut: fc.integer({ min: 1, max: 9 }),
}).map(({ axes, batch, groups, groupIn, groupOut }) => ({
  batch,
  groups,
  inChannels: groups * groupIn,
  outChannels: groups * groupOut,
  ...spatialSizes(axes),
}));

Deno.test("random problems of f16 agree with the reference within the bound of their results", async () => {
  using gpu = await openDevice({ backend, optionalFeatures: ["shader-f16"] });
  if (!gpu.features.has("shader-f16")) return;
  await fc.assert(
    fc.asyncProperty(
      problems,
      fc.constantFrom(...OPERATIONS),
      fc.constantFrom(...LAYOUTS),
      fc.constantFrom<AlgorithmName>(...HALF),
      fc.constantFrom(...CONV_DTYPES),
      fc.constantFrom(...ACTIVATIONS),
      fc.constantFrom(1, 2),
      fc.boolean(),
      sizeModes,
      async (init, op, layout, algorithm, outDtype, activation, splits, halfTile, sizes) => {
        const epilogue = op === "fwd" ? { bias: true, activation } : NO_EPILOGUE;
        const request = convRequest(gpu, convProblem({ ...init, op }), {
          algorithm,
          layout,
          epilogue,
          dtype: "f16",
          outDtype,
          policy: "tiny",
          sizes,
          ...(algorithm === "direct" ? {} : { splits, variant: { halfTile } }),
        });
        await checkedResult(gpu, request);
      },
    ),
    { numRuns: full ? 600 : 80, seed: 20261122 },
  );
});

Deno.test("algorithms that are of f32 alone say so, and those of f16 ask for what it needs", () => {
  const problem = convProblem({
    op: "fwd",
    batch: 2,
    inChannels: 8,
    outChannels: 8,
    inputSize: [9, 9],
    filterSize: [3, 3],
  });
  const layouts = { layout: "nhwc", filterLayout: "krsc" } as const;
  const named = supportedAlgorithms({
    problem,
    dtype: "f16",
    ...layouts,
    epilogue: NO_EPILOGUE,
    algorithm: "auto",
    limits: DEFAULT_LIMITS,
  });
  for (const { name, reason } of named) {
    if (reason === undefined || name === "winrs") continue;
    assert.match(reason, /^its tensors are f32$|^it /, name);
  }
  for (const algorithm of HALF) {
    assert.ok(named.some(({ name, reason }) => name === algorithm && reason === undefined));
    for (const outDtype of CONV_DTYPES) {
      const subject = convSubject({ problem, ...layouts, dtype: "f16", outDtype });
      const plan = expectPlanned(subject.plan({ algorithm, limits: DEFAULT_LIMITS }));
      assert.ok(plan.passes.some(({ kernel }) => kernel.features?.includes("shader-f16")));
      assert.deepEqual(subject.features, ["shader-f16"]);
    }
  }
});
