/** What tests of fused Winograd share. */
import type { PlanRequest } from "../../src/algorithms/request.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import type { ConvProblem } from "../../src/problem/conv_problem.ts";
import { convRequest } from "../checked_plan.ts";
import { loadGoldenCases } from "../golden.ts";

export const ALGORITHMS = ["winograd1d", "winograd2d"] as const;
export const OPS = ["fwd", "bwd-data"] as const;
/** Fits every device with 64 slices, and compiles fast. */
export const SMALLEST = "8x8x4_4x4";
/** Stride and dilation 1. */
export const cases = loadGoldenCases().filter(({ problems: { fwd: { stride, dilation } } }) =>
  [...stride, ...dilation].every((value) => value === 1)
);

/** A request of `winograd1d` with the smallest tiles, where `more` says nothing else. */
export function requestFor(
  gpu: GpuDevice,
  problem: ConvProblem,
  more: Partial<PlanRequest>,
): PlanRequest {
  return convRequest(gpu, problem, {
    algorithm: "winograd1d",
    ...more,
    schedule: { policy: SMALLEST, ...more.schedule },
  });
}
