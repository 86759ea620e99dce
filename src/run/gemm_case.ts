import type { Balance } from "../algorithms/balance.ts";
import { modelOf } from "../algorithms/device/h200.ts";
import type { DeviceModel } from "../algorithms/device/model.ts";
import type { GemmRequest } from "../algorithms/gemm/plan.ts";
import type { GpuDevice } from "../gpu/device.ts";
import type { MainLoopVariant } from "../kernels/main_loop_variant.ts";
import { gemmFlops, type GemmProblem } from "../problem/gemm_problem.ts";
import { printGemm } from "../problem/gemm_suite.ts";
import type { GemmArithmetic } from "../problem/gemm_arithmetic.ts";

/** How a product is planned: choices in place of the planner's. */
export interface GemmChoice {
  /** A tile policy, or `auto`. */
  readonly policy: string;
  readonly splits?: number;
  readonly balance?: Balance;
  /** Optimisations of the main loop that are not as tuned. */
  readonly variant?: MainLoopVariant;
  /** What the device reaches, in place of what is known of it. */
  readonly device?: DeviceModel;
}

/** The request that plans a product for a device. */
export function gemmRequest(
  gpu: GpuDevice,
  problem: GemmProblem,
  { dtype, accumulate }: GemmArithmetic,
  { policy, splits, balance, variant, device }: GemmChoice,
): GemmRequest {
  return {
    problem,
    dtype,
    ...(accumulate === "f32" ? {} : { accumulate }),
    ...(policy === "auto" ? {} : { policy }),
    ...(splits === undefined ? {} : { splits }),
    ...(balance === undefined ? {} : { balance }),
    ...(variant === undefined ? {} : { variant }),
    limits: gpu.limits,
    device: modelOf(gpu.workgroupsInFlight, device),
  };
}

/** What a product puts into its `CaseSetup`. */
export function gemmSetup(problem: GemmProblem, { dtype, accumulate }: GemmArithmetic) {
  const epilogue = printEpilogue(problem);
  return {
    problem: printGemm(problem),
    op: "gemm",
    flops: gemmFlops(problem),
    dtype,
    ...(accumulate === "f32" ? {} : { accumulate }),
    layout: problem.transpose,
    ...(epilogue === "" ? {} : { epilogue }),
  };
}

/** What follows the sum, in order; empty where nothing does. */
export function printEpilogue(problem: GemmProblem): string {
  const { alpha, beta, bias, activation, residual } = problem;
  return [
    ...(alpha === 1 ? [] : [`alpha ${alpha}`]),
    ...(beta === 0 ? [] : [`beta ${beta}`]),
    ...(bias === "none" ? [] : [`${bias} bias`]),
    ...(activation === "none" ? [] : [activation]),
    ...(residual ? ["residual"] : []),
  ].join(", ");
}
