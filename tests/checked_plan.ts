import assert from "#assert";
import type { Plan } from "../src/algorithms/plan.ts";
import { planConv } from "../src/algorithms/planner.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { accumulationLength, type ConvProblem } from "../src/problem/conv_problem.ts";
import { convSubject } from "../src/run/conv_subject.ts";
import { fillOperands } from "../src/run/operands.ts";
import { checkResult } from "../src/run/case_checks.ts";
import { runPlan } from "../src/run/executor.ts";
import type { HostData, HostOperands } from "../src/run/subject.ts";
import type { GpuDevice } from "../src/gpu/device.ts";
import { elementCount } from "../src/tensor/tensor.ts";
import { request as requestFor } from "./plan_request.ts";

/** A request for a device, of f32 and nchw, whose sizes are in a uniform, where `choice` says nothing else. */
export function convRequest(
  { limits }: Pick<GpuDevice, "limits">,
  problem: ConvProblem,
  choice: Partial<PlanRequest> & Pick<PlanRequest, "algorithm">,
): PlanRequest {
  return requestFor(problem, { limits, sizes: "uniform", ...choice });
}

/** Seeded operands of a request, as they lie in memory. */
export function operandsFor(request: PlanRequest): HostOperands {
  return fillOperands(convSubject(request), "uniform11", 5);
}

/** Plans and runs a request, and holds the whole result against FP64. */
export async function checkedResult(
  gpu: GpuDevice,
  request: PlanRequest,
  operands?: HostOperands,
): Promise<{ plan: Plan; result: Float32Array<ArrayBuffer> }> {
  const plan = planConv(request);
  return { plan, result: await checkedPlan(gpu, plan, request, operands) };
}

/** Runs a plan of a request twice, and holds the whole result against FP64. */
export async function checkedPlan(
  gpu: GpuDevice,
  plan: Plan,
  request: PlanRequest,
  operands: HostOperands = operandsFor(request),
): Promise<Float32Array<ArrayBuffer>> {
  const subject = convSubject(request);
  const ran = await runPlan(gpu, plan, operands, subject.result, 2);
  const result = ran.result as HostData;
  // The gate wants something to check.
  if (accumulationLength(request.problem) * elementCount(subject.result.shape) > 0) {
    const { arithmetic } = plan;
    const job = { subject, operands, mode: "full", seed: 1, result, arithmetic } as const;
    const { verdict, message } = await checkResult(job);
    assert.equal(verdict, "pass", `${plan.kernel} ${request.layout}: ${message}`);
  }
  return result as Float32Array<ArrayBuffer>;
}
