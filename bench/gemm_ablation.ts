/**
 * What each optimisation of the main loop is worth, one at a time, on the GPU at hand:
 *   deno run -A bench/gemm_ablation.ts SIZE [TRANSPOSES] [POLICY] [SAMPLES]
 *   deno run -A bench/gemm_ablation.ts SIZE dtypes [POLICY] [SAMPLES]
 * SIZE like 8192x8192x8192. The second form times the tuned kernel of every dtype and sum, and f16 tiles.
 * Candidates take turns, a sample of each after the other; medians. Results are not checked here
 * (tests/drivers/gemm_main.ts does that).
 */
import { modelOf } from "../src/algorithms/device/h200.ts";
import { planGemm } from "../src/algorithms/gemm/plan.ts";
import type { GemmRequest } from "../src/algorithms/gemm/request.ts";
import { upload } from "../src/gpu/buffers.ts";
import { openDevice } from "../src/gpu/device.ts";
import { createPlanBuffers, execute, preparePlan } from "../src/gpu/execute.ts";
import { TUNED_VARIANT, VARIANT_TRAITS } from "../src/kernels/main_loop_variant.ts";
import { gemmFlops, gemmProblem, TRANSPOSES } from "../src/problem/gemm_problem.ts";
import { fillTensor } from "../src/tensor/fill.ts";

const [size = "", ways = "nn", policy = "auto", samples = "9"] = Deno.args;
const [m = 0, n = 0, k = 0] = size.split("x").map(Number);
using gpu = await openDevice({ optionalFeatures: ["shader-f16", "shader-f64"] });
console.log(gpu.info.adapter);

type Choice = Pick<GemmRequest, "dtype" | "accumulate" | "variant">;

const VARIANTS: readonly Choice[] = [
  { dtype: "f32" },
  ...Object.values(VARIANT_TRAITS).filter((key) => key !== "halfTile")
    .map((key): Choice => ({ dtype: "f32", variant: { [key]: !TUNED_VARIANT[key] } })),
];
const DTYPES: readonly Choice[] = [
  { dtype: "f32" },
  ...(gpu.features.has("shader-f16")
    ? [
      // Said, as the planner chooses it for thin products.
      { dtype: "f16", variant: { halfTile: false } },
      { dtype: "f16", variant: { halfTile: true } },
      { dtype: "f16", accumulate: "f16" },
    ] as const
    : []),
  { dtype: "i8" },
  ...(gpu.features.has("shader-f64") ? [{ dtype: "f64" }] as const : []),
];

const choices = ways === "dtypes" ? DTYPES : VARIANTS;
for (const transpose of TRANSPOSES) {
  const wanted = ways === "dtypes" ? ["nn"] : ways.split(",");
  if (wanted.includes(transpose)) await compare(gemmProblem({ m, n, k, transpose }));
}

async function compare(problem: ReturnType<typeof gemmProblem>) {
  using resources = new DisposableStack();
  const rivals = [];
  for (const choice of choices) {
    try {
      rivals.push(await prepare(problem, choice, resources));
    } catch (error) {
      console.log(`${JSON.stringify(choice)}: ${(error as Error).message}`);
    }
  }
  for (let sample = 0; sample < Number(samples); sample++) {
    for (const rival of rivals) {
      const repeats = Math.max(1, Math.ceil(20e6 / rival.ns));
      const timed = await execute(gpu, rival.prepared, { samples: 1, repeats, warmup: repeats });
      rival.times.push(timed.samplesNs[0]!);
    }
  }
  console.log(`\n| ${size} ${problem.transpose} | TFLOP/s | of the first |`);
  console.log("| ------ | ------: | -----------: |");
  const median = (times: number[]) => times.toSorted((a, b) => a - b)[times.length >> 1]!;
  const first = median(rivals[0]!.times);
  for (const { plan, times } of rivals) {
    const time = median(times);
    const rate = (gemmFlops(problem) / time / 1e3).toPrecision(3);
    console.log(`| \`${plan.kernel}\` | ${rate} | ${(first / time).toFixed(3)} |`);
  }
}

async function prepare(
  problem: ReturnType<typeof gemmProblem>,
  choice: Choice,
  resources: DisposableStack,
) {
  const plan = planGemm({
    problem,
    ...choice,
    ...(policy === "auto" ? {} : { policy }),
    limits: gpu.limits,
    device: modelOf(gpu.workgroupsInFlight),
  });
  const buffers = resources.use(createPlanBuffers(gpu, plan));
  const made = choice.dtype === "i8" ? "int8" : "uniform11";
  const chunk = fillTensor(choice.dtype, [1 << 22], made, 1).data as Float32Array<ArrayBuffer>;
  for (const [place, { role, bytes }] of plan.buffers.entries()) {
    if (role === "workspace" || role === "output") continue;
    for (let at = 0; at < bytes; at += chunk.byteLength) {
      const count = Math.min(chunk.length, (bytes - at) / chunk.BYTES_PER_ELEMENT);
      upload(gpu, buffers.buffers[place]!, at, chunk.subarray(0, count));
    }
  }
  const prepared = resources.use(await preparePlan(gpu, plan, buffers));
  const once = await execute(gpu, prepared, { samples: 1, repeats: 1, warmup: 1 });
  return { plan, prepared, ns: once.samplesNs[0]!, times: [] as number[] };
}
