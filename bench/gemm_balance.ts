/**
 * Times f32 products without a split, with split-K, with stream-K and as the planner chooses, interleaved:
 *   deno bundle bench/gemm_balance.ts -o .gpu/gemm_balance.js
 *   deno run -A --no-config --no-remote --no-npm .gpu/gemm_balance.js bench/suites/gemm.txt [SAMPLES] [MS]
 * The policy is the planner's for each balance. MS is what a sample of one balance takes. TFLOP/s, medians; a
 * balance that comes to the plan of another has its figure. `predicted` is stream-K's gain over the better of the other two.
 */
import { modelOf } from "../src/algorithms/device/h200.ts";
import { expectPlanned } from "../src/algorithms/refusal.ts";
import { balanceOf } from "../src/algorithms/cut.ts";
import type { Balance } from "../src/algorithms/balance.ts";
import { cutGemm } from "../src/algorithms/gemm/cut.ts";
import { planGemm } from "../src/algorithms/gemm/plan.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import { upload } from "../src/gpu/buffers.ts";
import { openDevice } from "../src/gpu/device.ts";
import { createPlanBuffers, execute, type PreparedPlan, preparePlan } from "../src/gpu/execute.ts";
import { gemmFlops, type GemmProblem } from "../src/problem/gemm_problem.ts";
import { parseGemmSuite, printGemm } from "../src/problem/gemm_suite.ts";
import { fillTensor } from "../src/tensor/fill.ts";

const BALANCES = ["none", "split-k", "stream-k", "auto"] as const;
const [path = "bench/suites/gemm.txt", samples = "9", sampleMs = "20"] = Deno.args;
const CHUNK = fillTensor("f32", [1 << 22], "uniform11", 1).data;
using gpu = await openDevice();
console.log(gpu.info.adapter, `${gpu.workgroupsInFlight} workgroups in flight`);
console.log(
  `| product | ${BALANCES.join(" | ")} | auto is | predicted | measured | stream-K's plan |`,
);
console.log(`| --- |${" ---: |".repeat(BALANCES.length)} --- | ---: | ---: | --- |`);
for (const problem of parseGemmSuite(Deno.readTextFileSync(path), path)) await compare(problem);

async function compare(problem: GemmProblem) {
  const request = (balance: Balance) => ({
    problem,
    dtype: "f32" as const,
    balance,
    limits: gpu.limits,
    device: modelOf(gpu.workgroupsInFlight),
  });
  using resources = new DisposableStack();
  let shared: Record<string, GPUBuffer> | undefined;
  const rivals = new Map<string, { prepared: PreparedPlan; ns: number[]; estimateNs: number }>();
  const keys: Partial<Record<Balance, string>> = {};
  for (const balance of BALANCES) {
    const plan = planGemm(request(balance));
    const key = plan.passes.map(({ kernel, grid }) => `${kernel.name} ${grid}`).join();
    keys[balance] = key;
    if (rivals.has(key)) continue;
    const buffers = resources.use(createPlanBuffers(gpu, plan, shared));
    if (shared === undefined) {
      fill(plan, buffers.buffers);
      shared = { a: buffers.get("a"), b: buffers.get("b"), output: buffers.get("output") };
    }
    const prepared = resources.use(await preparePlan(gpu, plan, buffers));
    rivals.set(key, { prepared, ns: [], estimateNs: 0 });
  }
  for (const rival of rivals.values()) {
    const first = await execute(gpu, rival.prepared, { warmup: 1 });
    const warmup = Math.ceil(50e6 / Math.max(1000, first.samplesNs[0]!));
    const second = await execute(gpu, rival.prepared, { warmup });
    rival.estimateNs = Math.max(1000, second.samplesNs[0]!);
  }
  for (let sample = 0; sample < Number(samples); sample++) {
    for (const { prepared, ns, estimateNs } of rivals.values()) {
      const repeats = Math.max(1, Math.ceil(Number(sampleMs) * 1e6 / estimateNs));
      // The first fills the clocks, the others the pipeline.
      const warmup = Math.ceil((sample === 0 ? 200e6 : 2e6) / estimateNs);
      const { samplesNs } = await execute(gpu, prepared, { repeats, warmup, estimateNs });
      ns.push(...samplesNs);
    }
  }
  const rate = (balance: Balance) => {
    const sorted = rivals.get(keys[balance]!)!.ns.toSorted((one, other) => one - other);
    return gemmFlops(problem) / sorted[sorted.length >> 1]! / 1e3;
  };
  const cost = (balance: Balance) => expectPlanned(cutGemm(request(balance))).cost;
  const percent = (ratio: number) => `${ratio >= 1 ? "+" : ""}${(100 * (ratio - 1)).toFixed(1)} %`;
  const chosen = expectPlanned(cutGemm(request("stream-k")));
  console.log(`| ${
    [
      printGemm(problem),
      ...BALANCES.map((balance) => rate(balance).toFixed(1)),
      balanceOf(expectPlanned(cutGemm(request("auto")))),
      percent(Math.min(cost("none"), cost("split-k")) / cost("stream-k")),
      percent(rate("stream-k") / Math.max(rate("none"), rate("split-k"))),
      chosen.head === undefined
        ? `${chosen.policy.name}, no whole wave: all in ${chosen.splits}`
        : `${chosen.policy.name}, ${chosen.head} whole, the rest in ${chosen.splits}`,
    ].join(" | ")
  } |`);
}

/** Fills the operands with one seeded chunk over and over: made once a product. */
function fill(plan: Plan, buffers: readonly GPUBuffer[]) {
  plan.buffers.forEach(({ role, bytes }, place) => {
    if (role !== "a" && role !== "b") return;
    for (let at = 0; at < bytes; at += CHUNK.byteLength) {
      upload(gpu, buffers[place]!, at, CHUNK.subarray(0, (bytes - at) / 4));
    }
  });
}
