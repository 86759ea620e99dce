/**
 * Times implicit GEMM under every tile policy and split on the GPU at hand:
 *   deno run -A bench/policies.ts DESCRIPTORS OPS LAYOUTS POLICIES SPLITS [SAMPLES]
 * Each argument is a comma list; policy and split may be `auto`. One line a case, TFLOP/s of direct flops.
 */
import { planConv } from "../src/algorithms/planner.ts";
import { createPlanBuffers, execute, preparePlan } from "../src/gpu/execute.ts";
import { openDevice } from "../src/gpu/device.ts";
import { upload } from "../src/gpu/buffers.ts";
import { directFlops, type Operation, OPERATIONS } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { filterLayoutFor, type Layout, LAYOUTS } from "../src/tensor/layout.ts";

const [
  descriptors = "",
  ops = "",
  layouts = "",
  policies = "auto",
  splits = "auto",
  samples = "5",
] = Deno.args;
using gpu = await openDevice();
console.log(gpu.info.adapter);
for (const descriptor of descriptors.split(",")) {
  for (const op of OPERATIONS.filter((op) => ops.split(",").includes(op))) {
    const problem = { ...parseDescriptor(descriptor), op: op as Operation };
    for (const layout of LAYOUTS.filter((layout) => layouts.split(",").includes(layout))) {
      const line = [];
      for (const policy of policies.split(",")) {
        for (const split of splits.split(",")) {
          line.push(await rate(problem, layout, policy, split));
        }
      }
      console.log(`${problem.name ?? descriptor} ${op} ${layout}: ${line.join("  ")}`);
    }
  }
}

async function rate(
  problem: Parameters<typeof directFlops>[0],
  layout: Layout,
  policy: string,
  split: string,
): Promise<string> {
  const plan = planConv({
    problem,
    dtype: "f32",
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: NO_EPILOGUE,
    algorithm: "implicit-gemm",
    ...(policy === "auto" ? {} : { policy }),
    ...(split === "auto" ? {} : { splits: Number(split) }),
    limits: gpu.limits,
  });
  using buffers = createPlanBuffers(gpu, plan);
  plan.buffers.forEach((buffer, place) => {
    if (buffer.role === "workspace") return;
    const data = fillTensor("f32", [buffer.bytes / 4], "uniform11", place).data;
    upload(gpu, buffers.buffers[place]!, 0, data);
  });
  using prepared = await preparePlan(gpu, plan, buffers);
  const flops = directFlops(problem);
  const first = await execute(gpu, prepared, { samples: 1, repeats: 2, warmup: 1 });
  const repeats = Math.max(1, Math.ceil(5e6 / first.samplesNs[0]!));
  // An idle GPU clocks down; a quarter of a second of work brings it back.
  const timed = await execute(gpu, prepared, {
    samples: Number(samples),
    repeats,
    warmup: 50 * repeats,
  });
  const median = timed.samplesNs.toSorted((a, b) => a - b)[timed.samplesNs.length >> 1]!;
  const used = /policy (\w+).*?(?:split in (\d+)|no split)/.exec(plan.notes[1] ?? "");
  return `${used?.[1]}/${used?.[2] ?? 1} ${(flops / median / 1e3).toFixed(1)}`;
}
