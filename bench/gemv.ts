/**
 * Times products of few rows or columns on the GPU at hand, as planned, by the main loop, and dealt to threads in other ways:
 *   deno run -A bench/gemv.ts [--backend dawn] [--samples 5] FILE
 * A line of FILE is `1x8192x8192 nn,nt f32` (m x n x k, transposes, dtypes), and behind it, of gemv, `8x32,16x16 1x1,1x2 1,4`: places
 * side by side x threads that share one, places of a thread x blocks of the depth at once, and splits of the depth, all combinations
 * of them. A line is printed for each product, with microseconds, TB/s of the larger operand and kernels, and one for each other way,
 * fastest first. Samples of all ways of a product are taken in turn.
 */
import { parseArgs } from "node:util";
import { planGemm } from "../src/algorithms/gemm/plan.ts";
import { cutGemm } from "../src/algorithms/gemm/cut.ts";
import { gemvProduct, planGemv } from "../src/algorithms/gemm/gemv.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import { expectPlanned } from "../src/algorithms/refusal.ts";
import { openGpu } from "../src/cli/open_gpu.ts";
import { oneOf, someOf } from "../src/cli/values.ts";
import { elementsOf } from "../src/elements/elements.ts";
import { createBuffer, upload } from "../src/gpu/buffers.ts";
import { createPlanBuffers, preparePlan } from "../src/gpu/execute.ts";
import { BACKENDS } from "../src/gpu/provider.ts";
import {
  GEMM_DTYPES,
  type GemmDType,
  gemmProblem,
  TRANSPOSES,
} from "../src/problem/gemm_problem.ts";
import { type Timed, timedPlan, timeRivals } from "../src/run/timing.ts";
import { fillTensor } from "../src/tensor/fill.ts";

const { values: { backend, samples }, positionals: [file = ""] } = parseArgs({
  options: {
    backend: { type: "string", default: "wgpu" },
    samples: { type: "string", default: "5" },
  },
  allowPositionals: true,
});
using gpu = await openGpu({ backend: oneOf(BACKENDS)(backend) }, ["shader-f16"]);
console.log(`${gpu.info.adapter} (${backend})`);
for (const line of Deno.readTextFileSync(file).split("\n")) {
  const [size = "", ways = "", types = "", dealt = "", each = "", parts = ""] = line.trim()
    .split(/\s+/);
  if (types === "" || line.startsWith("#")) continue;
  const [m = 0, n = 0, k = 0] = size.split("x").map(Number);
  for (const transpose of someOf(TRANSPOSES)(ways)) {
    for (const dtype of someOf(GEMM_DTYPES)(types)) {
      const problem = gemmProblem({ m, n, k, transpose });
      const { limits, matrixUnits } = gpu;
      const request = { problem, dtype, limits, ...(matrixUnits && { matrixUnits }) };
      const planned = planGemm(request);
      const { policy: { name } } = expectPlanned(cutGemm(request));
      const plans = [
        { name: planned.kernel, plan: planned },
        { name: "main loop", plan: planGemm({ ...request, policy: name }) },
      ];
      for (const [groups, lanes] of pairs(dealt)) {
        for (const [places, ahead] of pairs(each)) {
          for (const splits of parts.split(",").map(Number)) {
            const threads = { groups, lanes, each: places, ahead };
            const shape = { ...gemvProduct(problem, elementsOf({ dtype })), splits, threads };
            const name = `${groups}x${lanes}_${places}x${ahead}/${splits}`;
            plans.push({ name, plan: expectPlanned(planGemv(request, shape)) });
          }
        }
      }
      const taken = await time(plans.map(({ plan }) => plan), dtype);
      const bytes = Math.max(...planned.buffers.map(({ bytes }) => bytes));
      const [first, loop, ...others] = plans.map(({ name, plan: { kernel } }, i) => {
        const us = taken[i]!;
        return {
          us,
          text: `${us.toFixed(1)} us ${(bytes / us / 1e6).toFixed(2)} TB/s ${name}`,
          kernel,
        };
      });
      console.log(
        `${size} ${transpose} ${dtype}: ${first!.text}, ${loop!.text} ${loop!.kernel}`,
      );
      others.sort((one, other) => one.us - other.us);
      for (const { text } of others) console.log(`  ${text}`);
    }
  }
}

/** Pairs of numbers such as `8x32,16x16`. */
function pairs(text: string): [number, number][] {
  if (text === "") return [];
  return text.split(",").map((pair) => pair.split("x").map(Number) as [number, number]);
}

/** Microseconds of plans of one product on the same random operands. */
async function time(plans: readonly Plan[], dtype: GemmDType): Promise<number[]> {
  using stack = new DisposableStack();
  const chunk = fillTensor(dtype, [1 << 22], dtype === "i8" ? "int8" : "uniform11", 1).data;
  const given = Object.fromEntries(plans[0]!.buffers.flatMap(({ role, bytes, name }) => {
    if (role === "workspace") return [];
    const buffer = createBuffer(gpu, bytes, name);
    stack.defer(() => buffer.destroy());
    for (let at = 0; at < bytes && role !== "output"; at += chunk.byteLength) {
      const count = Math.min(chunk.length, (bytes - at) / chunk.BYTES_PER_ELEMENT);
      upload(gpu, buffer, at, chunk.subarray(0, count));
    }
    return [[role, buffer]];
  }));
  const timed: Timed[] = [];
  for (const plan of plans) {
    const buffers = stack.use(createPlanBuffers(gpu, plan, given));
    timed.push(timedPlan(gpu, [stack.use(await preparePlan(gpu, plan, buffers))]));
  }
  const protocol = {
    samples: Number(samples),
    fillMs: 3,
    warmUpMs: { first: 250, next: 20, most: 500 },
  };
  const times = await timeRivals(gpu.info.software, timed, protocol);
  return times.map(({ median }) => 1e3 * median);
}
