import { DEFAULT_LIMITS } from "../src/algorithms/plan.ts";

/** The limits of an NVIDIA H200 under Deno, for plans of what ran there. */
export const H200_LIMITS = {
  ...DEFAULT_LIMITS,
  maxComputeWorkgroupStorageSize: 49_152,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxStorageBufferBindingSize: 2_147_483_644,
  maxBufferSize: 4_292_870_144,
  maxStorageBuffersPerShaderStage: 524_288,
};
