import { convRequest } from "../../checked_plan.ts";
import { planConv } from "../../../src/algorithms/planner.ts";
import type { Kernel } from "../../../src/kernels/kernel.ts";
import { convProblem } from "../../../src/problem/conv_problem.ts";
import { LAYOUTS } from "../../../src/tensor/layout.ts";
import { WGSL_LIMITS as limits } from "./limits.ts";

/** im2col and im2win of every layout and rank, interleaved or not, in chunks of the batch, with every variant. */
export function windowKernels(): Kernel[] {
  const kernels: Kernel[] = [];
  const variants = [
    { prefetch: false },
    { doubleBuffer: true },
  ];
  for (const algorithm of ["im2col", "im2win", "im2win-fused"] as const) {
    for (const layout of LAYOUTS) {
      for (const inputSize of [[9], [9, 7], [5, 6, 7]]) {
        for (const [batch, channels] of [[8, 6], [6, 32]] as const) {
          const problem = convProblem({
            batch,
            inChannels: channels,
            outChannels: 10,
            groups: 2,
            inputSize,
            filterSize: inputSize.map(() => 3),
            paddingBegin: inputSize.map(() => 1),
            stride: inputSize.map(() => 2),
          });
          const request = convRequest({ limits }, problem, {
            layout,
            epilogue: { bias: true, activation: "silu" },
            algorithm,
            schedule: { policy: "tiny", splits: 1 },
            sizes: batch === 8 ? "uniform" : "constant",
          });
          const whole = planConv(request);
          const plans = [
            whole,
            planConv({ ...request, schedule: { ...request.schedule, splits: 2 } }),
          ];
          if (algorithm !== "im2win-fused") {
            plans.push(planConv({ ...request, maxWorkspaceBytes: whole.workspaceBytes - 4 }));
          }
          plans.push(planConv({ ...request, dtype: "bf16" }));
          for (const halfTile of [false, true]) {
            plans.push(
              planConv({ ...request, dtype: "f16", schedule: { ...request.schedule, halfTile } }),
            );
          }
          if (inputSize.length === 2) {
            plans.push(
              ...variants.map((variant) =>
                planConv({ ...request, schedule: { ...request.schedule, ...variant } })
              ),
            );
          }
          for (const { kernel } of plans.flatMap(({ passes }) => passes)) kernels.push(kernel);
        }
      }
    }
  }
  return kernels;
}
