import assert from "#assert";
import { softwareDevice } from "../src/algorithms/device/software.ts";
import { tryPlanGemm } from "../src/algorithms/gemm/plan.ts";
import { DEFAULT_LIMITS } from "../src/algorithms/plan.ts";
import { tryPlanConv } from "../src/algorithms/planner.ts";
import { isRefusal } from "../src/algorithms/refusal.ts";
import { algorithmNames } from "../src/algorithms/registry.ts";
import { isInputError } from "../src/errors.ts";
import { type ConvProblem, convProblem, OPERATIONS } from "../src/problem/conv_problem.ts";
import { GEMM_DTYPES, gemmProblem } from "../src/problem/gemm_problem.ts";
import { randomStream } from "../src/reference/sample.ts";
import { LAYOUTS } from "../src/tensor/layout.ts";
import { request } from "./plan_request.ts";

/** A device whose buffers hold more than kernels count. */
const ROOMY = {
  ...DEFAULT_LIMITS,
  maxComputeWorkgroupStorageSize: 49_152,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxStorageBufferBindingSize: 2 ** 31 - 4,
  maxBufferSize: 2 ** 40,
};

Deno.test("what is too large for a device, or for kernels, is refused, and no fault of the program", () => {
  const random = randomStream(5);
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)]!;
  /** Up to `max`, small numbers as often as large ones. */
  const size = (max: number) => Math.floor(Math.exp(random() * Math.log(max + 1)));
  const draw = (): ConvProblem => {
    const rank = pick([1, 2, 2, 3]);
    const groups = pick([1, 1, size(64)]);
    const each = (max: number) => Array.from({ length: rank }, () => size(max));
    return convProblem({
      op: pick(OPERATIONS),
      batch: size(pick([8, 512, 100_000])),
      inChannels: groups * size(pick([8, 600, 70_000])),
      outChannels: groups * size(pick([8, 600, 70_000])),
      groups,
      inputSize: each(pick([20, 300, 100_000])),
      filterSize: each(pick([3, 7, 40])),
      stride: each(4),
      dilation: each(3),
      paddingBegin: each(4),
    });
  };
  const counts = { plans: 0, refused: 0 };
  for (let tries = 0; counts.plans + counts.refused < 600 && tries < 10_000; tries++) {
    const limits = pick([ROOMY, ROOMY, DEFAULT_LIMITS]);
    const sizes = pick(["constant", "uniform"] as const);
    let problem: ConvProblem;
    try {
      problem = draw();
    } catch (error) {
      if (!isInputError(error)) throw error;
      continue;
    }
    const layout = pick(LAYOUTS);
    const plans = [
      tryPlanConv(request(problem, {
        ...{ layout, algorithm: pick([...algorithmNames(), "auto"]), limits, sizes },
        ...(random() < 0.2 ? { device: softwareDevice(4) } : {}),
        ...(random() < 0.2 ? { maxWorkspaceBytes: size(1e10) } : {}),
        schedule: { ...(random() < 0.1 ? { splits: 1 + size(600) } : {}) },
      })),
      tryPlanGemm({
        problem: gemmProblem({ m: size(1e6), n: size(1e6), k: size(1e6), batch: size(20) }),
        dtype: pick(GEMM_DTYPES),
        limits,
        sizes,
      }),
    ];
    for (const plan of plans) counts[isRefusal(plan) ? "refused" : "plans"]++;
  }
  assert.ok(counts.plans > 100 && counts.refused > 100, JSON.stringify(counts));
});
