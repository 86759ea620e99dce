import assert from "#assert";
import type { Plan } from "../src/algorithms/plan.ts";
import { planConv } from "../src/algorithms/planner.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { checkResult } from "../src/run/check.ts";
import { convResult, runPlan } from "../src/run/gpu_case.ts";
import { fillOperand, type HostOperands } from "../src/run/operands.ts";
import type { GpuDevice } from "../src/gpu/device.ts";
import { operandTensors } from "../src/problem/conv_problem.ts";

/** Seeded operands of a request, as they lie in memory. */
export function operandsFor({ problem, layout, filterLayout }: PlanRequest): HostOperands {
  return Object.fromEntries(
    operandTensors(problem.op).map((which) => [
      which,
      fillOperand(problem, which, { layout, filterLayout }, "uniform11", 5),
    ]),
  );
}

/** Plans and runs a request once, and holds the whole result against FP64. */
export async function checkedResult(
  gpu: GpuDevice,
  request: PlanRequest,
  operands: HostOperands,
): Promise<{ plan: Plan; result: Float32Array<ArrayBuffer> }> {
  const { problem } = request;
  const plan = planConv(request);
  const once = { samples: 1, fillMs: 0 };
  const { result } = await runPlan(gpu, plan, operands, convResult(problem), once);
  const checked = await checkResult({
    ...request,
    operands,
    mode: "full",
    seed: 1,
    result,
    arithmetic: plan.arithmetic,
  });
  assert.equal(checked.verdict, "pass", `${plan.kernel}: ${checked.message}`);
  return { plan, result };
}
