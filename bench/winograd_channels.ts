/**
 * How far channels of correct Winograd results stand out where products are few, against the gate's limit:
 *   deno run -A bench/winograd_channels.ts [SEEDS]
 * A line a problem, algorithm and fill: of so many seeds, how many ratios exceed 2, and how many the limit. Runs on the
 * device at hand, a few minutes on lavapipe.
 */
import { planConv } from "../src/algorithms/planner.ts";
import type { AlgorithmName, PlanRequest } from "../src/algorithms/request.ts";
import { checkResult } from "../src/bench/check.ts";
import { convResult, runPlan } from "../src/bench/gpu_case.ts";
import { fillOperand, type HostOperands } from "../src/bench/operands.ts";
import { openDevice } from "../src/gpu/device.ts";
import { accumulationLength, operandTensors, type Operation } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";

interface Run {
  readonly problem: string;
  readonly op: Operation;
  readonly algorithm: AlgorithmName;
  readonly tile?: string;
  readonly policy?: string;
}

const SMALLEST = "8x8x4_4x4";
const winrs = (problem: string): Run => ({
  problem,
  op: "bwd-filter",
  algorithm: "winrs",
  policy: SMALLEST,
});
const nonfused = (problem: string, op: Operation, tile?: string): Run => ({
  problem,
  op,
  algorithm: "winograd2d-nonfused",
  ...(tile === undefined ? {} : { tile }),
});

const RUNS: readonly Run[] = [
  winrs("mb1ic6ih6iw13oc8kh6kw6oh1ow14pw6"),
  winrs("mb2ic6ih6iw13oc8kh6kw6oh1ow14pw6"),
  winrs("mb1ic6ih7oc8kh3ph1"),
  winrs("mb2ic6ih7oc8kh3ph1"),
  nonfused("mb1ic6ih4oc8kh3ph1", "bwd-filter"),
  nonfused("mb4ic6ih4oc8kh3ph1", "bwd-filter"),
  ...[1, 2, 4, 8].flatMap((channels): Run[] => {
    const problem = `mb1ic${channels}ih14oc8kh3ph1`;
    return [
      { problem, op: "fwd", algorithm: "winograd2d" },
      { problem, op: "fwd", algorithm: "winograd1d" },
      nonfused(problem, "fwd", "F(6x6,3x3)"),
      nonfused(problem, "fwd", "F(4x4,3x3)"),
      nonfused(`mb1ic8ih14oc${channels}kh3ph1`, "bwd-data", "F(4x4,3x3)"),
    ];
  }),
];

const seeds = Number(Deno.args[0] ?? 60);
using gpu = await openDevice();
console.log(`${gpu.info.adapter}, ${seeds} seeds`);
for (const { problem: text, op, ...choice } of RUNS) {
  const problem = { ...parseDescriptor(text), op };
  const request: PlanRequest = {
    problem,
    dtype: "f32",
    layout: "nchw",
    filterLayout: "kcrs",
    epilogue: NO_EPILOGUE,
    limits: gpu.limits,
    sizes: "uniform",
    ...choice,
  };
  const plan = planConv(request);
  for (const fill of ["uniform01", "uniform11", "normal"] as const) {
    const ratios: number[] = [];
    let [alarms, limit] = [0, 0];
    for (let seed = 1; seed <= seeds; seed++) {
      const operands: HostOperands = Object.fromEntries(
        operandTensors(op).map((which) => [
          which,
          fillOperand(problem, which, request, fill, seed),
        ]),
      );
      const once = { samples: 1, fillMs: 0 };
      const { result } = await runPlan(gpu, plan, operands, convResult(problem), once);
      const { accuracy } = await checkResult({
        ...request,
        operands,
        mode: "full",
        seed: 1,
        result,
        amplification: plan.amplification,
      });
      const ratio = accuracy.channel_rms_ratio ?? NaN;
      ratios.push(ratio);
      limit = Math.max(limit, accuracy.channel_rms_limit);
      if (!(ratio <= accuracy.channel_rms_limit)) alarms++;
    }
    const most = Math.max(...ratios);
    const above = ratios.filter((ratio) => ratio > 2).length;
    console.log(
      `${text} ${op} ${choice.algorithm} ${choice.tile ?? ""} ${fill} ` +
        `L = ${accumulationLength(problem)}: most ${most.toFixed(2)}, limit ${limit.toFixed(2)}, ` +
        `${above} above 2, ${alarms} alarms`,
    );
  }
}
