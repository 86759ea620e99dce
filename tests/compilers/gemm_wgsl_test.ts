/** Products of every dtype and variant of the main loop pass both compilers; wgsl_test.ts and wgsl_dawn_test.ts have f32's own. */
import assert from "#assert";
import { openValidator } from "../support/validate.ts";
import { coverPairs } from "./kernels/cover.ts";
import { softwareDevice } from "../../src/algorithms/device/software.ts";
import type { GemmRequest } from "../../src/algorithms/gemm/operands.ts";
import { planGemm } from "../../src/algorithms/gemm/plan.ts";
import { DEFAULT_LIMITS } from "../../src/algorithms/plan.ts";
import { BACKENDS } from "../../src/gpu/provider.ts";
import type { Kernel } from "../../src/kernels/kernel.ts";
import { TUNED_VARIANT, VARIANT_TRAITS } from "../../src/kernels/variant.ts";
import { TILE_POLICIES } from "../../src/kernels/policy.ts";
import { PLAIN_ACTIVATIONS } from "../../src/problem/activations.ts";
import { type GemmProblem, gemmProblem, TRANSPOSES } from "../../src/problem/gemm_problem.ts";

const limits = { ...DEFAULT_LIMITS, maxComputeWorkgroupStorageSize: 65_536 };

const ARITHMETIC: readonly Pick<GemmRequest, "dtype" | "accumulate" | "schedule">[] = [
  { dtype: "f16" },
  { dtype: "bf16" },
  { dtype: "f16", accumulate: "f16" },
  { dtype: "f16", schedule: { halfTile: true } },
  { dtype: "i8" },
  { dtype: "f64" },
];

function kernels(): Kernel[] {
  const found = new Map<string, Kernel>();
  const add = (init: Partial<GemmProblem> & { size: number }, more: Partial<GemmRequest>) => {
    const { size, ...rest } = init;
    const problem = gemmProblem({ m: size, n: size, k: size, ...rest });
    const plan = planGemm({
      problem,
      dtype: "f32",
      limits,
      ...more,
      schedule: { policy: "tiny", ...more.schedule },
    });
    for (const { kernel } of plan.passes) found.set(kernel.name, kernel);
  };
  for (const arithmetic of ARITHMETIC) {
    for (const transpose of TRANSPOSES) {
      for (const size of [33, 64, 2049]) {
        for (const splits of [1, 2]) {
          add({ size, transpose }, { ...arithmetic, schedule: { ...arithmetic.schedule, splits } });
          const factors = { alpha: 3, beta: -2, residual: true };
          add({ size, transpose, ...factors, bias: "row", activation: "relu" }, {
            ...arithmetic,
            schedule: { ...arithmetic.schedule, splits },
            sizes: "uniform",
          });
        }
      }
    }
    for (const { name } of TILE_POLICIES) {
      add({ size: 64 }, { ...arithmetic, schedule: { ...arithmetic.schedule, policy: name } });
    }
    const parts = {
      ...limits,
      maxStorageBufferBindingSize: 1024,
      maxStorageBuffersPerShaderStage: 96,
    };
    add({ size: 64 }, { ...arithmetic, limits: parts });
  }
  for (const arithmetic of [{ dtype: "f32" } as const, ...ARITHMETIC]) {
    for (const sizes of ["constant", "uniform"] as const) {
      for (const size of [165, 168]) {
        add({ size, residual: true, bias: "column" }, {
          ...arithmetic,
          schedule: { ...arithmetic.schedule, balance: "stream-k" },
          device: softwareDevice(4),
          sizes,
        });
      }
    }
  }
  for (const activation of PLAIN_ACTIVATIONS) {
    for (const bias of ["row", "column"] as const) {
      add({ size: 33, activation, bias }, { dtype: "f64", schedule: { splits: 1 } });
    }
  }
  for (const key of Object.values(VARIANT_TRAITS)) {
    const variant = { [key]: !TUNED_VARIANT[key] };
    for (const size of [33, 64]) {
      for (const arithmetic of [{ dtype: "f32" } as const, ...ARITHMETIC]) {
        add({ size }, { ...arithmetic, schedule: { ...arithmetic.schedule, ...variant } });
      }
    }
  }
  for (const [m, n] of [[1, 64], [33, 1], [4, 36]] as const) {
    for (const transpose of TRANSPOSES) {
      const gemv = { dtype: "f64", schedule: { policy: "gemv", splits: 2 } } as const;
      add({ size: 36, m, n, transpose, activation: "silu", bias: "row" }, gemv);
    }
  }
  for (
    const balance of [{}, { schedule: { balance: "stream-k" }, device: softwareDevice(4) }] as const
  ) {
    add({ size: 168 }, { dtype: "f32", ...balance, schedule: { raster: 3, ...balance.schedule } });
  }
  return coverPairs([...found.values()]);
}

for (const backend of BACKENDS) {
  Deno.test(`products of every dtype and variant are valid WGSL to ${backend}`, async () => {
    using validator = await openValidator(backend);
    // Tint has no f64.
    const all = kernels()
      .filter(({ features }) => backend === "wgpu" || !features.includes("shader-f64"));
    assert.ok(all.length > 100, `${all.length} kernels`);
    for (const kernel of all) {
      const messages = await validator.validate(kernel);
      const errors = messages.filter(({ type }) => type === "error");
      assert.deepEqual(errors, [], kernel.name);
    }
  });
}
