/** Products on matrix units of every shape that NVIDIA's GPUs have are valid to Dawn's compiler. */
import assert from "#assert";
import { softwareDevice } from "../src/algorithms/device/h200.ts";
import { type GemmRequest, planGemm } from "../src/algorithms/gemm/plan.ts";
import { DEFAULT_LIMITS } from "../src/algorithms/plan.ts";
import { openValidator } from "../src/gpu/validate.ts";
import type { Kernel } from "../src/kernels/kernel.ts";
import { MATRIX_POLICY_NAMES } from "../src/kernels/matrix_policies.ts";
import { MATRIX_FEATURES, type MatrixUnit } from "../src/kernels/matrix_units.ts";
import { gemmProblem, TRANSPOSES } from "../src/problem/gemm_problem.ts";

/** WebGPU's on an H200. */
const limits = {
  ...DEFAULT_LIMITS,
  maxComputeWorkgroupStorageSize: 49_152,
  maxComputeInvocationsPerWorkgroup: 1024,
};

const unit = (types: "f16 f32" | "i8 i32", shape: string): MatrixUnit => {
  const [component, result] = types.split(" ") as [MatrixUnit["component"], MatrixUnit["result"]];
  const [m, n, k] = shape.split("x").map(Number) as [number, number, number];
  return { component, result, m, n, k };
};

/** Units of an H200 with the threads of their subgroups. */
const UNITS: readonly (readonly [MatrixUnit, number])[] = [
  [unit("f16 f32", "16x16x16"), 32],
  [unit("f16 f32", "16x8x16"), 32],
  [unit("f16 f32", "16x8x8"), 32],
  [unit("i8 i32", "16x16x32"), 32],
  [unit("i8 i32", "16x8x32"), 32],
];

function kernels([unit, lanes]: (typeof UNITS)[number]): Kernel[] {
  const found = new Map<string, Kernel>();
  const dtype = unit.component;
  const matrixUnits = { lanes, units: [unit] };
  const add = (size: number, more: Partial<GemmRequest>, rest = {}) => {
    const problem = gemmProblem({ m: size, n: size, k: size, ...rest });
    const request = { policy: "matrix-small", ...more };
    const plan = planGemm({ problem, dtype, limits, matrixUnits, ...request });
    for (const { kernel } of plan.passes) {
      assert.ok(kernel.workgroupBytes <= 49_152, `${kernel.name} takes ${kernel.workgroupBytes}`);
      found.set(kernel.name, kernel);
    }
  };
  for (const policy of MATRIX_POLICY_NAMES) {
    for (const transpose of TRANSPOSES) {
      for (const size of [33, 64, 2049, 2064]) add(size, { policy }, { transpose });
    }
    add(8192, { policy, splits: 2 });
    add(8192, { policy, balance: "none" });
  }
  const epilogue = { alpha: 3, beta: -2, residual: true, bias: "row", activation: "relu" } as const;
  for (const sizes of ["constant", "uniform"] as const) {
    add(640, { sizes, splits: 2 }, epilogue);
    add(640, { sizes, balance: "stream-k", device: softwareDevice(4) }, epilogue);
    for (const variant of [{ doubleBuffer: true }, { prefetch: false }, { vectorLoads: false }]) {
      add(640, { sizes, variant }, epilogue);
    }
  }
  return [...found.values()];
}

Deno.test("products on matrix units of every shape are valid WGSL to dawn", async () => {
  using validator = await openValidator("dawn");
  for (const one of UNITS) {
    const [, lanes] = one;
    const all = kernels(one);
    const own = all.filter(({ features }) => features.includes(MATRIX_FEATURES[1]!));
    assert.ok(own.length > 30, `${own.length} kernels`);
    for (const kernel of all) {
      const messages = await validator.validate(kernel);
      assert.deepEqual(messages.filter(({ type }) => type === "error"), [], kernel.name);
    }
    for (const { workgroupSize } of own) assert.equal(workgroupSize[0] % lanes, 0);
  }
});
