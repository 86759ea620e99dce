import { softwareDevice } from "../../src/algorithms/device/software.ts";
import { planGemm } from "../../src/algorithms/gemm/plan.ts";
import { longestLoops, MOST_ITERATIONS } from "../../src/algorithms/passes.ts";
import { DEFAULT_LIMITS, type Pass, type Plan } from "../../src/algorithms/plan.ts";
import { planConv } from "../../src/algorithms/planner.ts";
import { algorithmNames } from "../../src/algorithms/registry.ts";
import { UnsupportedError } from "../../src/errors.ts";
import { convProblem, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { PLAIN_ACTIVATIONS } from "../../src/problem/activations.ts";
import { type GemmDType, gemmProblem } from "../../src/problem/gemm_problem.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import assert from "#assert";
import { request } from "../plan_request.ts";

/** Lavapipe's, of two cores. */
const LIMITS = {
  ...DEFAULT_LIMITS,
  maxComputeWorkgroupStorageSize: 32_768,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxStorageBufferBindingSize: 2 ** 31 - 4,
  maxBufferSize: 2 ** 31 - 4,
};
const SOFTWARE = { limits: LIMITS, device: softwareDevice(4) };

/** The plan, or nothing where it is refused: for its loops, or as one that is not supported. */
function planned(make: () => Plan): Plan | undefined {
  try {
    return make();
  } catch (error) {
    if (error instanceof UnsupportedError || error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Trip counts of the loops that a kernel's text has, as far as it says them; they are baked in. */
function tripCounts({ kernel: { wgsl } }: Pass): number[] {
  const counts = (pattern: RegExp) =>
    [...wgsl.matchAll(pattern)].map((match) => Math.min(...match.slice(1).map(Number)));
  return [
    ...counts(/min\(first(?:_step)? \+ (\d+)u, (\d+)u\)/g),
    ...counts(/let end_step = (\d+)u;/g),
    ...counts(/for \(var (?:split|tap\d|k) = 0u; \w+ < (\d+)u; \w+\+\+/g),
  ];
}

/** Holds a software device's plan to the limit, and what its passes say to what their text says. */
function holdPlan(plan: Plan, what: string): void {
  for (const pass of plan.passes) {
    const { iterations = 0 } = pass;
    assert(iterations <= MOST_ITERATIONS, `${what}: ${pass.kernel.name}: ${iterations}`);
    const loops = /\b(for|while|loop) *[({]/.test(pass.kernel.wgsl);
    assert(iterations > 0 || !loops, `${what}: ${pass.kernel.name}`);
    for (const count of tripCounts(pass)) {
      assert(count <= iterations, `${what}: ${pass.kernel.name}: ${count} of ${iterations}`);
    }
  }
}

// A long sum of each kind: channels, taps, places, images; and sizes that no loop is long for.
const SHAPES = [
  { batch: 1, inChannels: 1_000_000, outChannels: 4, inputSize: [1, 1], filterSize: [1, 1] },
  { batch: 1, inChannels: 4, outChannels: 1_000_000, inputSize: [1, 1], filterSize: [1, 1] },
  { batch: 1, inChannels: 1, outChannels: 1, inputSize: [400, 400], filterSize: [300, 300] },
  { batch: 1, inChannels: 2, outChannels: 2, inputSize: [1500, 1500], filterSize: [3, 3] },
  { batch: 1, inChannels: 1, outChannels: 2, inputSize: [2_000_000], filterSize: [3] },
  { batch: 70_000, inChannels: 3, outChannels: 2, inputSize: [6, 6], filterSize: [3, 3] },
  { batch: 2, inChannels: 24, outChannels: 12, inputSize: [17, 19], filterSize: [5, 3] },
];

Deno.test("plans of every algorithm keep a software device's loops short, or are refused", () => {
  let kept = 0;
  let refused = 0;
  for (const shape of SHAPES) {
    for (const op of OPERATIONS) {
      for (const layout of LAYOUTS) {
        for (const algorithm of [...algorithmNames(), "auto"] as const) {
          for (const splits of [undefined, 1, 3]) {
            const asked = request(convProblem({ ...shape, op }), {
              ...{ layout, algorithm, ...SOFTWARE },
              ...(splits ? { schedule: { splits } } : {}),
            });
            const plan = planned(() => planConv(asked));
            const what = `${algorithm} ${op} ${layout} ${JSON.stringify(shape)} ${splits}`;
            if (plan !== undefined) holdPlan(plan, what);
            // What the planner is free to choose works.
            else assert(algorithm !== "auto" || splits !== undefined, what);
            if (plan === undefined) refused++;
            else kept++;
          }
        }
      }
    }
  }
  assert(kept > 300 && refused > 100, `${kept} kept, ${refused} refused`);
});

Deno.test("plans of products keep a software device's loops short, or are refused", () => {
  const dtypes: readonly GemmDType[] = ["f32", "f16", "i8", "f64"];
  for (const dtype of dtypes) {
    for (const k of [100, 1_000_000, 20_000_000]) {
      for (const activation of dtype === "i8" ? ["none", "relu"] as const : PLAIN_ACTIVATIONS) {
        for (const splits of [undefined, 1, 2, 500]) {
          for (const variant of [undefined, { unroll: false }]) {
            const problem = gemmProblem({ m: 8, n: 8, k, activation });
            const plan = planned(() =>
              planGemm({
                problem,
                dtype,
                ...SOFTWARE,
                schedule: { ...(splits ? { splits } : {}), ...(variant ? { ...variant } : {}) },
              })
            );
            const what = `${dtype} ${k} ${activation} ${splits} ${JSON.stringify(variant)}`;
            if (plan !== undefined) holdPlan(plan, what);
            else assert(k > 100_000 && splits !== undefined && splits < 500, what);
          }
        }
      }
    }
  }
});

Deno.test("splits that leave loops too long are refused on software devices, not on others", () => {
  const problem = gemmProblem({ m: 8, n: 8, k: 1_000_000 });
  const request = { problem, dtype: "f32", schedule: { policy: "tiny", splits: 1 } } as const;
  assert.throws(() => planGemm({ ...request, ...SOFTWARE }), {
    name: "UnsupportedError",
    message:
      /^Cannot plan: gemm_f32_\w+ loops 125001 times, a software device may stop after 65000; /,
  });
  const deep = gemmProblem({ m: 8, n: 8, k: 20_000_000 });
  const plan = planGemm({ ...request, problem: deep, limits: LIMITS });
  assert(longestLoops(plan) > MOST_ITERATIONS);
});
