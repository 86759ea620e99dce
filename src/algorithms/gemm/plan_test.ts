import assert from "#assert";
import type { MatrixUnits } from "../../kernels/matrix_units.ts";
import { gemmProblem } from "../../problem/gemm_problem.ts";
import { DEFAULT_LIMITS } from "../plan.ts";
import type { GemmRequest } from "./operands.ts";
import { planGemm } from "./plan.ts";

const matrixUnits: MatrixUnits = {
  lanes: 32,
  units: [
    { component: "f16", result: "f32", m: 16, n: 16, k: 16 },
    { component: "i8", result: "i32", m: 16, n: 16, k: 32 },
  ],
};

/** Rows of tiles of a band of a planned product, as its kernel's name says. */
function band(
  [m, n, k]: readonly [number, number, number],
  more: Partial<GemmRequest> = {},
): number {
  const problem = gemmProblem({ m, n, k });
  const limits = {
    ...DEFAULT_LIMITS,
    maxComputeWorkgroupStorageSize: 49_152,
    maxComputeInvocationsPerWorkgroup: 1024,
    maxStorageBufferBindingSize: 2 ** 31 - 4,
    maxBufferSize: 2 ** 32,
  };
  const { kernel } = planGemm({ problem, dtype: "f16", limits, matrixUnits, ...more });
  return Number(/_grouped(\d+)$/.exec(kernel)?.[1] ?? 0);
}

Deno.test("large products go over their tiles in bands as high as wide", () => {
  const large = [8192, 8192, 8192] as const;
  assert.equal(band(large, { schedule: { policy: "matrix-ahead-tall" } }), 8);
  assert.equal(band(large, { schedule: { policy: "matrix-ahead-wide" } }), 16);
  assert.equal(band(large, { schedule: { policy: "matrix-square" } }), 16);
  assert.equal(band(large, { schedule: { policy: "matrix-ahead-wide" }, dtype: "i8" }), 16);
  // What is asked for goes first.
  assert.equal(band(large, { schedule: { policy: "matrix-ahead-tall", raster: 0 } }), 0);
  assert.equal(band(large, { schedule: { policy: "matrix-ahead-tall", raster: 4 } }), 4);
  // Few rows or one column of tiles keep their order.
  assert.equal(band([4096, 8192, 512], { schedule: { policy: "matrix-ahead-tall" } }), 0);
  assert.equal(band([50176, 128, 512], { schedule: { policy: "matrix-ahead-tall" } }), 0);
  // So do threads.
  assert.equal(band(large, { dtype: "f32", math: "f32" }), 0);
});

Deno.test("f16 sums are made by threads, and the plan says so where there are matrix units", () => {
  const problem = gemmProblem({ m: 64, n: 64, k: 64 });
  const asked = { problem, dtype: "f16", accumulate: "f16", limits: DEFAULT_LIMITS } as const;
  const said = /sums in f16 are made by threads/;
  const { kernel, notes } = planGemm({ ...asked, matrixUnits });
  assert.doesNotMatch(kernel, /_mma/);
  assert.match(notes.join("\n"), said);
  const others = [asked, { ...asked, matrixUnits, accumulate: "f32" }, {
    ...asked,
    matrixUnits,
    schedule: { matrixUnits: false },
  }] as const;
  for (const one of others) assert.doesNotMatch(planGemm(one).notes.join("\n"), said);
  assert.throws(
    () => planGemm({ ...asked, matrixUnits, schedule: { policy: "matrix-small" } }),
    /policy matrix-small wants matrix units for the types, and there are none/,
  );
});
