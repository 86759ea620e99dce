/** Convolutions of f16 tensors on the driver at hand, where it has them, against the FP64 reference. */
import assert from "#assert";
import fc from "fast-check";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { randomAxes, randomSizes, sizeModes } from "../random_axes.ts";
import { backend, full } from "./driver.ts";
import { unsupported } from "../../src/algorithms/cost/auto.ts";
import { type AlgorithmName, DEFAULT_LIMITS } from "../../src/algorithms/plan.ts";
import { supportedAlgorithms } from "../../src/algorithms/planner.ts";
import { expectPlanned } from "../../src/algorithms/refusal.ts";
import { algorithmNames, algorithmOf } from "../../src/algorithms/registry.ts";
import { openDevice } from "../../src/gpu/device.ts";
import { convProblem, FLOAT_DTYPES, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { ACTIVATIONS } from "../../src/problem/activations.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { convSubject } from "../../src/run/conv_subject.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { featuresOf } from "../../src/run/subject.ts";

/** Algorithms that the main loop's options do not reach. */
const OWN_LOOPS: readonly AlgorithmName[] = ["direct", "winograd1d", "winograd2d", "winrs"];

/** Those whose kernels take seconds to compile as planned: most have a small tile here. */
const FUSED: readonly AlgorithmName[] = ["winograd1d", "winograd2d", "winrs"];

const problems = randomSizes({
  // Winograd's axes have stride and dilation 1.
  axes: fc.oneof(
    randomAxes({ more: 7, stride: 3 }),
    randomAxes({ more: 7, stride: 1, dilation: 1 }),
  ),
  batch: fc.integer({ min: 1, max: 4 }),
  groups: fc.constantFrom(1, 1, 2),
  groupIn: fc.integer({ min: 1, max: 9 }),
  groupOut: fc.integer({ min: 1, max: 9 }),
});

Deno.test("random problems of f16 agree with the reference within the bound of their results", async () => {
  using gpu = await openDevice({ backend, optionalFeatures: ["shader-f16"] });
  if (!gpu.features.has("shader-f16")) return;
  const ran = new Set<AlgorithmName>();
  await fc.assert(
    fc.asyncProperty(
      problems,
      fc.constantFrom(...OPERATIONS),
      fc.constantFrom(...LAYOUTS),
      fc.constantFrom(...algorithmNames().filter((name) => name !== "depthwise")),
      fc.constantFrom(...FLOAT_DTYPES),
      fc.constantFrom(...ACTIVATIONS),
      fc.constantFrom(1, 2),
      fc.boolean(),
      sizeModes,
      async (
        init,
        op,
        layout,
        algorithm,
        outDtype,
        activation,
        splits,
        halfTile,
        sizes,
      ) => {
        const epilogue = op === "fwd" ? { bias: true, activation } : NO_EPILOGUE;
        const request = convRequest(gpu, convProblem({ ...init, op }), {
          algorithm,
          layout,
          epilogue,
          dtype: "f16",
          outDtype,
          sizes,
          ...(!OWN_LOOPS.includes(algorithm)
            ? { policy: "tiny", splits }
            : sizes === "uniform" && FUSED.includes(algorithm)
            ? { policy: "16x16x4_4x4" }
            : {}),
          ...(algorithm.startsWith("im") ? { variant: { halfTile } } : {}),
        });
        if (unsupported(algorithmOf(algorithm)!, request) !== undefined) return;
        await checkedResult(gpu, request);
        ran.add(algorithm);
      },
    ),
    { numRuns: full ? 1200 : 250, seed: 20261122 },
  );
  assert.equal(ran.size, algorithmNames().length - 1, [...ran].join());
});

Deno.test("every algorithm takes f16, and asks for what it needs", () => {
  const layouts = { layout: "nhwc", filterLayout: "krsc" } as const;
  const planned = new Set<AlgorithmName>();
  for (const op of OPERATIONS) {
    const problem = convProblem({
      op,
      batch: 2,
      groups: 2,
      inChannels: 8,
      outChannels: 8,
      inputSize: [9, 9],
      filterSize: [3, 3],
    });
    for (const outDtype of FLOAT_DTYPES) {
      const request = { problem, ...layouts, dtype: "f16", outDtype } as const;
      const subject = convSubject(request);
      assert.deepEqual(featuresOf(subject), ["shader-f16"]);
      const asked = { algorithm: "auto", epilogue: NO_EPILOGUE, limits: DEFAULT_LIMITS } as const;
      for (const { name: algorithm, reason } of supportedAlgorithms({ ...request, ...asked })) {
        if (reason !== undefined) {
          assert.match(reason, /^it |^windows/, algorithm);
          continue;
        }
        const plan = expectPlanned(subject.planner.plan({ algorithm, limits: DEFAULT_LIMITS }));
        assert.ok(plan.passes.some(({ kernel }) => kernel.features?.includes("shader-f16")));
        planned.add(algorithm);
      }
    }
  }
  assert.equal(planned.size, algorithmNames().length, [...planned].join());
});
