/** Convolutions of bf16, and of f16 where the driver at hand has it, against the FP64 reference. */
import assert from "#assert";
import fc from "fast-check";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { randomAxes, randomSizes, sizeModes } from "../random_axes.ts";
import { backend, full } from "./driver.ts";
import { unsupported } from "../../src/algorithms/cost/auto.ts";
import { type AlgorithmName, DEFAULT_LIMITS } from "../../src/algorithms/plan.ts";
import { supportedAlgorithms, tryPlanConv } from "../../src/algorithms/planner.ts";
import { expectPlanned, isRefusal } from "../../src/algorithms/refusal.ts";
import { algorithmNames, algorithmOf } from "../../src/algorithms/registry.ts";
import { openDevice } from "../../src/gpu/device.ts";
import { convProblem, OPERATIONS, resultDtypes } from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { ACTIVATIONS } from "../../src/problem/activations.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { convSubject } from "../../src/run/conv_subject.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { featuresOf } from "../../src/run/subject.ts";

/** Algorithms that the main loop's options do not reach. */
const OWN_LOOPS: readonly AlgorithmName[] = ["direct", "winograd1d", "winograd2d", "winrs"];

/** Those whose kernels take seconds to compile as planned: most have a small tile here. */
const FUSED: readonly AlgorithmName[] = ["winograd1d", "winograd2d", "winrs"];

/** Operands' and results' types. */
const SHORT = [["f16", "f16"], ["f16", "f32"], ["bf16", "bf16"], ["bf16", "f32"]] as const;

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

for (const dtype of ["f16", "bf16"] as const) {
  Deno.test(`random problems of ${dtype} agree with the reference within the bound of their results`, () =>
    checkRandom(dtype));
}

async function checkRandom(dtype: "f16" | "bf16"): Promise<void> {
  using gpu = await openDevice({ backend, optionalFeatures: ["shader-f16"] });
  if (dtype === "f16" && !gpu.features.has("shader-f16")) return;
  const ran = new Set<AlgorithmName>();
  await fc.assert(
    fc.asyncProperty(
      problems,
      fc.constantFrom(...OPERATIONS),
      fc.constantFrom(...LAYOUTS),
      fc.constantFrom(...algorithmNames().filter((name) => name !== "depthwise")),
      fc.constantFrom(...resultDtypes(dtype)),
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
          dtype,
          outDtype,
          sizes,
          schedule: {
            ...(!OWN_LOOPS.includes(algorithm)
              ? { policy: "tiny", splits }
              : sizes === "uniform" && FUSED.includes(algorithm)
              ? { policy: "16x16x4_4x4" }
              : {}),
            ...(algorithm.startsWith("im") && dtype === "f16" ? { halfTile } : {}),
          },
        });
        if (unsupported(algorithmOf(algorithm)!, request) !== undefined) return;
        // SwiftShader has 256 threads a workgroup.
        const planned = tryPlanConv(request);
        if (isRefusal(planned) && planned.kind === "limit") return;
        await checkedResult(gpu, request);
        ran.add(algorithm);
      },
    ),
    { numRuns: full ? 1200 : 250, seed: 20261122 },
  );
  assert.equal(ran.size, algorithmNames().length - 1, [...ran].join());
}

Deno.test("every algorithm takes f16, and asks for what it needs, and bf16, which needs nothing", () => {
  const layouts = { layout: "nhwc", filterLayout: "krsc" } as const;
  const planned = new Set<string>();
  for (const op of OPERATIONS) {
    const problem = parseDescriptor("g2mb2ic8ih9oc8kh3", op);
    for (const [dtype, outDtype] of SHORT) {
      const request = { problem, ...layouts, dtype, outDtype } as const;
      const subject = convSubject(request);
      const features = dtype === "f16" ? ["shader-f16"] : [];
      assert.deepEqual(featuresOf(subject), features);
      const asked = { algorithm: "auto", epilogue: NO_EPILOGUE, limits: DEFAULT_LIMITS } as const;
      for (const { name: algorithm, reason } of supportedAlgorithms({ ...request, ...asked })) {
        if (reason !== undefined) {
          assert.match(reason, /^it |^windows/, algorithm);
          continue;
        }
        const plan = expectPlanned(subject.planner.plan({ algorithm, limits: DEFAULT_LIMITS }));
        const needed = plan.passes.flatMap(({ kernel }) => kernel.features);
        assert.deepEqual([...new Set(needed)], features);
        planned.add(`${algorithm} ${dtype}`);
      }
    }
  }
  assert.equal(planned.size, 2 * algorithmNames().length, [...planned].join());
});
