/**
 * How much longer `auto` takes on the device at hand than the best algorithm, on 20 small problems: run time without
 * compilation, the best of 3 runs after one that is not timed.
 *   deno run -A bench/software_choices.ts [--only PATTERN] [--jsonl FILE] [--backend dawn]
 * Exit 1 where it is more than 1.3 times as long. For lavapipe and SwiftShader, whose `auto` has a model of their own; choose
 * one with VK_DRIVER_FILES. --jsonl adds what every algorithm took.
 */
import { parseArgs } from "node:util";
import { algorithmNames } from "../src/algorithms/registry.ts";
import { tryPlanConv } from "../src/algorithms/planner.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import { isRefusal } from "../src/algorithms/refusal.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { openDevice } from "../src/gpu/device.ts";
import { BACKENDS } from "../src/gpu/provider.ts";
import { createPlanBuffers, execute, preparePlan } from "../src/gpu/execute.ts";
import { upload } from "../src/gpu/buffers.ts";
import { gpuPlanning } from "../src/run/executor.ts";
import { OPERATIONS, resultTensor } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { filterLayoutFor, LAYOUTS } from "../src/tensor/layout.ts";

const ALLOWED = 1.3;
const RUNS = 3;
const CASES = [
  "fwd nchw mb1ic3ih32oc16kh3ph1",
  "fwd nhwc mb1ic3ih64oc8kh5sh2ph2",
  "fwd nchw mb1ic16ih28oc16kh3ph1",
  "fwd nhwc mb1ic16ih28oc32kh3ph1",
  "fwd nchw mb2ic32ih14oc32kh3ph1",
  "fwd nchw mb1ic64ih28oc64kh1",
  "fwd nhwc mb1ic32ih28oc16kh1sh2",
  "fwd nchw g32mb1ic32ih28oc32kh3ph1",
  "fwd nhwc g4mb1ic32ih14oc32kh3ph1",
  "fwd nchw mb1ic64ih14oc64kh3sh2ph1",
  "fwd nchw mb4ic8iw256oc16kw5pw2",
  "fwd nhwc mb1ic4id8ih8iw8oc8kd3kh3kw3pd1ph1pw1",
  "fwd nchw mb1ic8ih32oc1kh3ph1",
  "bwd-data nchw mb1ic16ih28oc16kh3ph1",
  "bwd-data nhwc mb1ic32ih14oc32kh3ph1",
  "bwd-data nchw mb1ic16ih28oc32kh3sh2ph1",
  "bwd-filter nchw mb2ic16ih28oc16kh3ph1",
  "bwd-filter nhwc mb1ic32ih14oc32kh3ph1",
  "bwd-filter nhwc mb1ic16ih28oc16kh5ph2",
  "bwd-filter nchw mb2ic3ih32oc16kh3ph1",
];

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    jsonl: { type: "string" },
    backend: { type: "string", default: "wgpu" },
  },
});
using gpu = await openDevice({ backend: BACKENDS.find((name) => name === values.backend)! });
console.log(`${gpu.info.adapter}, ${gpu.info.backend}`);
let worst = 0;
for (const text of CASES.filter((one) => new RegExp(values.only).test(one))) {
  const [op, layout, descriptor] = text.split(" ");
  const problem = parseDescriptor(descriptor!, OPERATIONS.find((one) => one === op)!);
  const inLayout = LAYOUTS.find((one) => one === layout)!;
  const request: PlanRequest = {
    problem,
    dtype: "f32",
    layout: inLayout,
    filterLayout: filterLayoutFor(inLayout),
    epilogue: NO_EPILOGUE,
    algorithm: "auto",
    ...gpuPlanning(gpu, {}),
  };
  const result = resultTensor(problem.op);
  const auto = tryPlanConv(request);
  if (isRefusal(auto)) throw new RangeError(auto.text);
  const times = new Map<string, number>();
  for (const algorithm of algorithmNames()) {
    const plan = tryPlanConv({ ...request, algorithm });
    if (!isRefusal(plan)) times.set(algorithm, await bestMs(plan, result));
  }
  const own = times.get(auto.algorithm) !== undefined && sameKernels(auto, request)
    ? times.get(auto.algorithm)!
    : await bestMs(auto, result);
  const [best, bestTime] = [...times].reduce((a, b) => b[1] < a[1] ? b : a);
  const ratio = own / Math.min(own, bestTime);
  worst = Math.max(worst, ratio);
  console.log(
    `${ratio.toFixed(2)}  ${text}: ${auto.algorithm} ${own.toFixed(3)} ms; best ${best} ` +
      `${bestTime.toFixed(3)}`,
  );
  if (values.jsonl !== undefined) {
    const record = { op, layout, problem: descriptor, auto: auto.algorithm, ms: own };
    const line = JSON.stringify({ ...record, times: Object.fromEntries(times) });
    Deno.writeTextFileSync(values.jsonl, `${line}\n`, { append: true });
  }
}
console.log(
  `the worst takes ${worst.toFixed(2)} times as long as the best, ${ALLOWED} are allowed`,
);
if (worst > ALLOWED) Deno.exitCode = 1;

/** Whether the algorithm that `auto` took is planned alike where it is named. */
function sameKernels(auto: Plan, request: PlanRequest): boolean {
  const named = tryPlanConv({ ...request, algorithm: auto.algorithm });
  const names = ({ passes }: Plan) => passes.map(({ kernel }) => kernel.name).join();
  return !isRefusal(named) && names(named) === names(auto);
}

/** Milliseconds of the fastest of the runs after the first. */
async function bestMs(plan: Plan, result: string): Promise<number> {
  using buffers = createPlanBuffers(gpu, plan);
  plan.buffers.forEach((buffer, place) => {
    if (buffer.role === "workspace" || buffer.role === result) return;
    const { data } = fillTensor("f32", [buffer.bytes / 4], "uniform11", 1 + place);
    upload(gpu, buffers.buffers[place]!, 0, data);
  });
  using prepared = await preparePlan(gpu, plan, buffers);
  const { samplesNs } = await execute(gpu, prepared, { samples: RUNS, repeats: 1, warmup: 1 });
  return Math.min(...samplesNs) / 1e6;
}
