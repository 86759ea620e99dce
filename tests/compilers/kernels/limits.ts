import { DEFAULT_LIMITS } from "../../../src/algorithms/plan.ts";

/** Limits that every kernel of the tests fits. */
export const WGSL_LIMITS = { ...DEFAULT_LIMITS, maxComputeWorkgroupStorageSize: 32_768 };
