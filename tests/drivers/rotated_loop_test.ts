/** Loops that end within the products of a step, on the driver at hand: the same bits as of those that end with a step. */
import assert from "#assert";
import { softwareDevice } from "../../src/algorithms/device/software.ts";
import { planGemm } from "../../src/algorithms/gemm/plan.ts";
import { DEFAULT_LIMITS, type Plan } from "../../src/algorithms/plan.ts";
import { planConv } from "../../src/algorithms/planner.ts";
import { convProblem } from "../../src/problem/conv_problem.ts";
import { gemmProblem } from "../../src/problem/gemm_problem.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { multiply } from "../gemm_matrix.ts";
import { ONE_WORKGROUP } from "../support/one_workgroup.ts";
import { FEW_WORKGROUPS } from "../support/few_workgroups.ts";
import { test } from "./driver.ts";

const sizes = "constant";
const STREAMED = {
  schedule: { splits: undefined, balance: "stream-k" },
  device: softwareDevice(4),
} as const;
const variant = { rotatedLoop: false };

/** How many loops of a plan's kernels end before their last step. */
function rotatedLoops({ passes }: Plan): number {
  const ends = /step < end_step - 1u;|for \(var step = (first|part)_step \+ 1u;/g;
  return passes.map(({ kernel }) => kernel.wgsl.match(ends)?.length ?? 0)
    .reduce((all, count) => all + count, 0);
}

test("products are the same in rotated loops: whole, split, whole and split in one text", async (gpu) => {
  for (
    const [problem, cut, loops] of [
      [{ m: 40, n: 36, k: 260, batch: 2, bias: "row" }, { schedule: { splits: 1 } }, 1],
      [{ m: 33, n: 35, k: 261, transpose: "nt" }, { schedule: { splits: 2 } }, 1],
      [{ m: 165, n: 70, k: 130, transpose: "tn" }, STREAMED, 1],
      // Seven rows of sixteen; the last split has one step, or none.
      [{ m: 65, n: 66, k: 140 }, { schedule: { splits: 1, policy: "small" } }, 1],
      [{ m: 9, n: 10, k: 656 }, { schedule: { splits: 10 } }, 1],
      [{ m: 9, n: 10, k: 648 }, { schedule: { splits: 10 } }, 1],
    ] as const
  ) {
    const rotated = await multiply(gpu, problem, { ...cut, sizes });
    assert.equal(rotatedLoops(rotated.plan), loops, rotated.plan.kernel);
    assert.equal(rotated.checked?.verdict, "pass", rotated.checked?.message);
    const whole = await multiply(gpu, problem, {
      ...cut,
      sizes,
      schedule: { ...cut.schedule, ...variant },
    });
    assert.match(whole.plan.kernel, /_no_rotated_loop/);
    assert.equal(rotatedLoops(whole.plan), 0, whole.plan.kernel);
    assert.deepEqual(rotated.result, whole.result, rotated.plan.kernel);
  }
});

Deno.test("short loops, those whose text knows no sizes, and those with two tiles are not rotated", () => {
  for (
    const [k, choice] of [
      [40, {}],
      [261, { sizes: "uniform" }],
      [261, { schedule: { doubleBuffer: true } }],
      [261, { schedule: { unroll: false } }],
      // The last step is a text of its own.
      [73, {}],
      [261, { dtype: "f16", accumulate: "f16" }],
    ] as const
  ) {
    const plan = planGemm({
      problem: gemmProblem({ m: 33, n: 35, k }),
      dtype: "f32",
      sizes,
      limits: DEFAULT_LIMITS,
      ...choice,
      schedule: { policy: "tiny", splits: 1, ...choice.schedule },
    });
    assert.equal(rotatedLoops(plan), 0, plan.kernel);
  }
});

test("convolutions are the same in rotated loops, fused ones too", async (gpu) => {
  for (
    const [algorithm, op, layout, size, choice, loops] of [
      ["implicit-gemm", "fwd", "nhwc", 3, { schedule: { splits: 1 } }, 1],
      ["implicit-gemm", "bwd-data", "nchw", 3, {
        schedule: { balance: "stream-k" },
        device: ONE_WORKGROUP,
      }, 1],
      ["implicit-gemm", "bwd-filter", "chwn", 3, { schedule: { splits: 1 } }, 1],
      ["im2col", "fwd", "nchw", 3, { schedule: { splits: 1 } }, 1],
      ["winograd2d-nonfused", "fwd", "nhwc", 3, { schedule: { splits: 1 } }, 1],
      ["winograd2d", "fwd", "nhwc", 3, { tile: "F(2x2,3x3)" }, 1],
      ["winograd1d", "fwd", "nhwc", 3, { tile: "F(4,3)", schedule: { splits: 1 } }, 1],
      // Whole blocks, and those behind them.
      [
        "winograd1d",
        "fwd",
        "nhwc",
        3,
        { tile: "F(4,3)", schedule: { policy: "8x8x8_4x4" }, device: FEW_WORKGROUPS },
        1,
      ],
      ["winrs", "bwd-filter", "nhwc", 5, { schedule: { splits: 1 }, pair: "a16n5r12" }, 1],
      [
        "winrs",
        "bwd-filter",
        "nhwc",
        5,
        { schedule: { splits: 1, flush: 16 }, pair: "a16n5r12" },
        1,
      ],
      ["winrs", "bwd-filter", "nhwc", 3, { schedule: { splits: 1 }, pair: "a8n3r6" }, 1],
      ["winrs", "bwd-filter", "nchw", 3, { schedule: { splits: 1 }, pair: "a4n3r2xa4n3r2" }, 1],
      ["winrs", "bwd-filter", "chwn", 2, { schedule: { splits: 1 }, pair: "a4n2r3xa4n2r3" }, 1],
      ["winrs", "bwd-filter", "nhwc", 3, { schedule: { splits: 1 }, pair: "a4n3r2xa8n3r6" }, 2],
      // What a place takes leaves no registers.
      ["implicit-gemm", "bwd-filter", "nchw", 3, { schedule: { splits: 1 } }, 0],
      ["winograd2d", "bwd-data", "nchw", 3, { tile: "F(2x2,3x3)" }, 0],
      ["winograd1d", "fwd", "nhwc", 3, { tile: "F(6,3)", schedule: { splits: 1 } }, 0],
      ["winograd1d", "fwd", "nhwc", 3, { tile: "F(4,3)", schedule: { splits: 2 } }, 0],
      ["winograd1d", "bwd-data", "nchw", 3, { tile: "F(4,3)", schedule: { splits: 1 } }, 0],
      ["winrs", "bwd-filter", "nhwc", 3, { schedule: { splits: 1, flush: 16 }, pair: "a8n3r6" }, 0],
      ["winrs", "bwd-filter", "chwn", 5, { schedule: { splits: 1 }, pair: "a16n5r12" }, 0],
    ] as const
  ) {
    const problem = convProblem({
      op,
      batch: 9,
      inChannels: 70,
      outChannels: 20,
      inputSize: [9, 14],
      filterSize: [size, size],
      paddingBegin: [1, 2],
      paddingEnd: [2, 1],
    });
    const request = convRequest(gpu, problem, { algorithm, layout, sizes, ...choice });
    if (loops === 0) {
      assert.equal(rotatedLoops(planConv(request)), 0, algorithm);
      continue;
    }
    const rotated = await checkedResult(gpu, request);
    assert.equal(rotatedLoops(rotated.plan), loops, rotated.plan.kernel);
    // Winograd in passes has no variants.
    if (algorithm === "winograd2d-nonfused") continue;
    const whole = await checkedResult(gpu, {
      ...request,
      schedule: { ...request.schedule, ...variant },
    });
    assert.equal(rotatedLoops(whole.plan), 0, whole.plan.kernel);
    assert.deepEqual(rotated.result, whole.result, rotated.plan.kernel);
  }
});
