import { DEFAULT_LIMITS } from "../src/algorithms/plan.ts";
import type { MatrixUnits } from "../src/kernels/matrix_units.ts";

/** The limits of an NVIDIA H200 under Deno, for plans of what ran there. */
export const H200_LIMITS = {
  ...DEFAULT_LIMITS,
  maxComputeWorkgroupStorageSize: 49_152,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxStorageBufferBindingSize: 2_147_483_644,
  maxBufferSize: 4_292_870_144,
  maxStorageBuffersPerShaderStage: 524_288,
};

/** What Dawn offers of an H200's tensor cores. */
export const H200_UNITS: MatrixUnits = {
  lanes: 32,
  cutsOff: true,
  units: [
    { component: "f16", result: "f32", m: 16, n: 16, k: 16 },
    { component: "f16", result: "f32", m: 16, n: 8, k: 16 },
    { component: "f16", result: "f32", m: 16, n: 8, k: 8 },
    { component: "i8", result: "i32", m: 16, n: 16, k: 32 },
    { component: "i8", result: "i32", m: 16, n: 8, k: 32 },
  ],
};
