import assert from "#assert";
import { DEFAULT_LIMITS } from "../algorithms/plan.ts";
import type { MatrixUnits } from "../kernels/matrix_units.ts";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { gemmRivals } from "./search_gemm.ts";

const limits = {
  ...DEFAULT_LIMITS,
  maxComputeWorkgroupStorageSize: 49_152,
  maxComputeInvocationsPerWorkgroup: 1024,
};
const planning = { algorithm: "auto", limits } as const;
const f32 = { dtype: "f32", accumulate: "f32" } as const;
const matrixUnits: MatrixUnits = {
  lanes: 32,
  cutsOff: true,
  units: [{ component: "f16", result: "f32", m: 16, n: 16, k: 16 }],
};

function chosen(rivals: ReturnType<typeof gemmRivals>): string[] {
  return rivals.filter(({ chosen }) => chosen).map(({ policy }) => policy);
}

Deno.test("rivals of few rows or columns are gemv in several splits, and every policy", () => {
  const rivals = gemmRivals(planning, gemmProblem({ m: 2, n: 512, k: 4096 }), f32);
  assert.equal(rivals[0]!.policy, "gemv");
  assert.deepEqual(chosen(rivals), ["gemv"]);
  const splits = rivals.filter(({ policy }) => policy === "gemv").map(({ cut }) => cut.splits);
  assert.ok(splits.length > 1 && splits.includes(1), `${splits}`);
  for (const policy of ["tiny", "sliver", "small"]) {
    assert.ok(rivals.some((one) => one.policy === policy), policy);
  }
  assert.ok(rivals.every(({ predicted }) => predicted > 0));
  // The planner's choice is predicted to take least, within what narrower tiles and splits must gain.
  const least = Math.min(...rivals.map(({ predicted }) => predicted));
  assert.ok(rivals[0]!.predicted < 1.06 * least);
});

Deno.test("rivals of many rows and columns have no gemv, and the planner's cut comes first", () => {
  const rivals = gemmRivals(planning, gemmProblem({ m: 1024, n: 1024, k: 1024 }), f32);
  assert.ok(rivals.every(({ policy }) => policy !== "gemv"));
  assert.deepEqual(chosen(rivals), [rivals[0]!.policy]);
});

Deno.test("what is multiplied in halves has gemv of f32 as a rival", () => {
  const problem = gemmProblem({ m: 16, n: 65_536, k: 512 });
  const rivals = gemmRivals({ ...planning, matrixUnits }, problem, f32);
  assert.ok(rivals.some(({ policy }) => policy === "gemv"));
  assert.equal(chosen(rivals).length, 1);
});
