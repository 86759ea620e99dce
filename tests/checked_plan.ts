import assert from "#assert";
import type { Plan } from "../src/algorithms/plan.ts";
import { planConv } from "../src/algorithms/planner.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { convResult, convSubject } from "../src/run/conv_subject.ts";
import { fillOperands } from "../src/run/operands.ts";
import { checkResult } from "../src/run/projected.ts";
import { runPlan } from "../src/run/run_plan.ts";
import type { HostOperands } from "../src/run/subject.ts";
import type { GpuDevice } from "../src/gpu/device.ts";

/** Seeded operands of a request, as they lie in memory. */
export function operandsFor(request: PlanRequest): HostOperands {
  return fillOperands(convSubject(request), "uniform11", 5);
}

/** Plans and runs a request once, and holds the whole result against FP64. */
export async function checkedResult(
  gpu: GpuDevice,
  request: PlanRequest,
  operands: HostOperands,
): Promise<{ plan: Plan; result: Float32Array<ArrayBuffer> }> {
  const { problem } = request;
  const plan = planConv(request);
  const { result } = await runPlan(gpu, plan, operands, convResult(problem), 2);
  const checked = await checkResult({
    subject: convSubject(request),
    operands,
    mode: "full",
    seed: 1,
    result,
    arithmetic: plan.arithmetic,
  });
  assert.equal(checked.verdict, "pass", `${plan.kernel}: ${checked.message}`);
  return { plan, result };
}
