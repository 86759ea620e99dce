/**
 * Times f32 products under every tile policy on the GPU at hand:
 *   deno run -A bench/gemm_policies.ts SIZES TRANSPOSES POLICIES SPLITS [SAMPLES]
 * SIZES like 4096x4096x4096,512x512x512; the others comma lists, policy and split may be `auto`. TFLOP/s.
 */
import { planGemm } from "../src/algorithms/gemm/plan.ts";
import { upload } from "../src/gpu/buffers.ts";
import { openDevice } from "../src/gpu/device.ts";
import { createPlanBuffers, execute, preparePlan } from "../src/gpu/execute.ts";
import { gemmFlops, gemmProblem, TRANSPOSES } from "../src/problem/gemm_problem.ts";
import { fillTensor } from "../src/tensor/fill.ts";

const [sizes = "", transposes = "nn", policies = "auto", splits = "auto", samples = "5"] =
  Deno.args;
using gpu = await openDevice();
console.log(gpu.info.adapter);
for (const size of sizes.split(",")) {
  const [m = 0, n = 0, k = 0] = size.split("x").map(Number);
  for (const transpose of TRANSPOSES.filter((one) => transposes.split(",").includes(one))) {
    const problem = gemmProblem({ m, n, k, transpose });
    const line = [];
    for (const policy of policies.split(",")) {
      for (const split of splits.split(",")) {
        line.push(await rate(problem, policy, split));
      }
    }
    console.log(`${size} ${transpose}: ${line.join("  ")}`);
  }
}

async function rate(problem: ReturnType<typeof gemmProblem>, policy: string, split: string) {
  const plan = planGemm({
    problem,
    dtype: "f32",
    ...(policy === "auto" ? {} : { policy }),
    ...(split === "auto" ? {} : { splits: Number(split) }),
    limits: gpu.limits,
  });
  using buffers = createPlanBuffers(gpu, plan);
  const chunk = fillTensor("f32", [1 << 22], "uniform11", 1).data;
  plan.buffers.forEach(({ role, bytes }, place) => {
    if (role === "workspace" || role === "output") return;
    for (let at = 0; at < bytes; at += chunk.byteLength) {
      const count = Math.min(chunk.length, (bytes - at) / 4);
      upload(gpu, buffers.buffers[place]!, at, chunk.subarray(0, count));
    }
  });
  using prepared = await preparePlan(gpu, plan, buffers);
  const first = await execute(gpu, prepared, { samples: 1, repeats: 1, warmup: 1 });
  const ns = first.samplesNs[0]!;
  const repeats = Math.max(1, Math.ceil(5e6 / ns));
  const warmup = Math.ceil(250e6 / ns);
  const timed = await execute(gpu, prepared, { samples: Number(samples), repeats, warmup });
  const median = timed.samplesNs.toSorted((a, b) => a - b)[timed.samplesNs.length >> 1]!;
  const used = /policy (\w+).*?(?:split in (\d+)|no split)/.exec(plan.notes[0] ?? "");
  return `${used?.[1]}/${used?.[2] ?? 1} ${(gemmFlops(problem) / median / 1e3).toFixed(1)}`;
}
