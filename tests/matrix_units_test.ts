import assert from "#assert";
import { planGemm } from "../src/algorithms/gemm/plan.ts";
import { readMatrixUnits } from "../src/gpu/adapter.ts";
import { matrixPolicies } from "../src/kernels/matrix_policies.ts";
import { MATRIX_FEATURES, SUBGROUP_SIZE_FEATURE } from "../src/kernels/matrix_units.ts";
import { gemmProblem } from "../src/problem/gemm_problem.ts";
import { limits } from "./matrix_kernels.ts";
import { assertWithin, usesUnits } from "./support/matrix_ends.ts";

const TYPES = [
  { component: "f16", result: "f32", dtype: "f16" },
  { component: "i8", result: "i32", dtype: "i8" },
] as const;
const SIZES = [8, 16, 32];

Deno.test("units of every shape and subgroup make whole tiles within workgroup memory, or none", () => {
  let planned = 0;
  for (const { component, result, dtype } of TYPES) {
    for (
      const [m, n, k] of SIZES.flatMap((m) => SIZES.flatMap((n) => SIZES.map((k) => [m, n, k])))
    ) {
      for (const lanes of [8, 16, 32, 64]) {
        const unit = { component, result, m: m!, n: n!, k: k!, fixesSubgroups: true };
        for (const { rows, columns, threadColumns, matrix } of matrixPolicies(unit, lanes)) {
          const counts = [rows, columns, threadColumns, ...matrix!.matrices, ...matrix!.stage];
          assert.ok(counts.every((count) => Number.isInteger(count) && count > 0), `${counts}`);
        }
        const problem = gemmProblem({ m: 512, n: 512, k: 512 });
        const plan = planGemm({ problem, dtype, limits, matrixUnits: { lanes, units: [unit] } });
        for (const { kernel } of plan.passes.filter(({ kernel }) => usesUnits(kernel))) {
          planned++;
          assert.match(kernel.wgsl, new RegExp(`@subgroup_size\\(${lanes}\\)`));
          assert.ok(kernel.features.includes(SUBGROUP_SIZE_FEATURE));
          assert.equal(kernel.workgroupSize[0] % lanes, 0);
          assertWithin(kernel, lanes);
        }
      }
    }
  }
  assert.ok(planned > 60, `${planned}`);
});

/** What an adapter of Dawn's says. */
function adapter(subgroupMinSize: number, subgroupMaxSize: number) {
  const subgroupMatrixConfigs = [
    { componentType: "f16", resultComponentType: "f32", M: 8, N: 16, K: 16 },
  ];
  return { info: { vendor: "intel", subgroupMinSize, subgroupMaxSize, subgroupMatrixConfigs } } as
    & Pick<GPUAdapter, "info">
    & object;
}

Deno.test("subgroups of several sizes multiply where kernels may fix the least", () => {
  const provider = { matrixFeatures: MATRIX_FEATURES };
  const granted = [...MATRIX_FEATURES, "shader-f16"];
  const unit = { component: "f16", result: "f32", m: 8, n: 16, k: 16 };
  assert.equal(readMatrixUnits(adapter(16, 32), provider, granted), undefined);
  assert.deepEqual(
    readMatrixUnits(adapter(16, 32), provider, [...granted, SUBGROUP_SIZE_FEATURE]),
    { lanes: 16, units: [{ ...unit, fixesSubgroups: true }] },
  );
  assert.deepEqual(
    readMatrixUnits(adapter(32, 32), provider, [...granted, SUBGROUP_SIZE_FEATURE]),
    { lanes: 32, units: [unit] },
  );
});
