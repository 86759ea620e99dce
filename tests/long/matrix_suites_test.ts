/**
 * Of every problem of `bench/suites`, as it is planned for an H200: where each matrix ends that subgroups load or store. Kernels hold
 * all other indices themselves (`src/kernels/bounded.ts`).
 */
import assert from "#assert";
import { H200_LIMITS } from "../../bench/h200_limits.ts";
import { H200_UNITS } from "../../bench/h200_limits.ts";
import type { Plan } from "../../src/algorithms/plan.ts";
import { tryPlanGemm } from "../../src/algorithms/gemm/plan.ts";
import { tryPlanConv } from "../../src/algorithms/planner.ts";
import { isRefusal, type Planned } from "../../src/algorithms/refusal.ts";
import { parseSuite } from "../../src/bench/suite.ts";
import { OPERATIONS } from "../../src/problem/conv_problem.ts";
import { type GemmProblem, TRANSPOSES } from "../../src/problem/gemm_problem.ts";
import { parseGemmSuite } from "../../src/problem/gemm_suite.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { assertWithin, usesUnits } from "../support/matrix_ends.ts";
import { request } from "../plan_request.ts";

const SUITES = new URL("../../bench/suites/", import.meta.url);

const suites = [...Deno.readDirSync(SUITES)].map(({ name }) => name).sort();
const textOf = (name: string) => Deno.readTextFileSync(new URL(name, SUITES));
const isProducts = (name: string) => name.startsWith("gemm");
const products = suites.filter(isProducts).flatMap((name) => parseGemmSuite(textOf(name), name));
const onProduct = (product: GemmProblem) => void products.push(product);
const problems = suites.filter((name) => !isProducts(name))
  .flatMap((name) => parseSuite(textOf(name), name, "fwd", undefined, { onProduct }))
  .map(({ run: _, ...problem }) => problem);

/** What multiplies on matrix units, in which layouts, and how many of the suites' plans do at least. */
const CONVOLUTIONS = [
  ["f16", LAYOUTS, 1600, { dtype: "f16", algorithm: "implicit-gemm" }],
  ["f16 to f32", LAYOUTS, 1600, { dtype: "f16", outDtype: "f32", algorithm: "implicit-gemm" }],
  ["f16 by windows built on the way", LAYOUTS, 500, { dtype: "f16", algorithm: "im2win-fused" }],
  ["f16 by WinRS", ["nhwc"], 80, {
    dtype: "f16",
    algorithm: "winrs",
    schedule: { halfTile: true },
    maxBoundRatio: Infinity,
  }],
  ["int8", ["nhwc"], 150, { dtype: "i8", algorithm: "implicit-gemm" }],
  ["f32 in halves by implicit GEMM", ["nhwc", "nchw"], 600, {
    dtype: "f32",
    math: "f16x3",
    algorithm: "implicit-gemm",
  }],
  ["f32 in halves by Winograd", LAYOUTS, 1200, {
    dtype: "f32",
    math: "f16x3",
    algorithm: "winograd2d-nonfused",
  }],
] as const;

/** Counts plans on matrix units, whose matrices it holds within their arrays. */
function holdMatrices() {
  const seen = new Set<string>();
  let [plans, largest] = [0, 0];
  return {
    hold(planned: Planned<Plan>) {
      if (isRefusal(planned)) return;
      const own = planned.passes.map(({ kernel }) => kernel).filter(usesUnits);
      if (own.length > 0) plans++;
      for (const kernel of own) {
        if (seen.has(kernel.wgsl)) continue;
        seen.add(kernel.wgsl);
        largest = Math.max(largest, assertWithin(kernel, H200_UNITS.lanes));
      }
    },
    /** That so many did, and one to the last of its array. */
    assertSeen(least: number) {
      assert.ok(plans >= least, `${plans} plans of ${least} multiply on matrix units`);
      assert.ok(largest > 0.98, `${largest}`);
    },
  };
}

const device = { limits: H200_LIMITS, matrixUnits: H200_UNITS };

for (const [name, layouts, least, asked] of CONVOLUTIONS) {
  Deno.test(`matrices of the suites' convolutions in ${name} lie within workgroup memory`, () => {
    const { hold, assertSeen } = holdMatrices();
    for (const problem of problems) {
      for (const op of OPERATIONS) {
        for (const layout of layouts) {
          hold(tryPlanConv(request({ ...problem, op }, { ...device, ...asked, layout })));
        }
      }
    }
    assertSeen(least);
  });
}

Deno.test("matrices of the suites' products lie within workgroup memory", () => {
  for (
    const asked of [
      { dtype: "f16" },
      { dtype: "f16", outDtype: "f32" },
      { dtype: "i8" },
      { dtype: "f32", math: "f16x3" },
    ] as const
  ) {
    const { hold, assertSeen } = holdMatrices();
    for (const problem of products) {
      for (const transpose of TRANSPOSES) {
        hold(tryPlanGemm({ ...device, ...asked, problem: { ...problem, transpose } }));
      }
    }
    assertSeen(4 * 17);
  }
});
