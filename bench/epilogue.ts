/**
 * What an epilogue costs fused into a product's store, and as a pass of its own after it, on the GPU at hand:
 *   deno run -A bench/epilogue.ts [SIZE]
 * Variants take turns; medians of 15 samples.
 */
import { planGemm } from "../src/algorithms/gemm/plan.ts";
import { reducePass } from "../src/algorithms/passes.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import { BufferList } from "../src/algorithms/tensors.ts";
import { upload } from "../src/gpu/buffers.ts";
import { openDevice } from "../src/gpu/device.ts";
import { createPlanBuffers, execute, preparePlan } from "../src/gpu/execute.ts";
import {
  activationStep,
  addTensorStep,
  biasStep,
  type EpilogueFactory,
} from "../src/kernels/epilogue.ts";
import { gemmProblem } from "../src/problem/gemm_problem.ts";
import { fillTensor } from "../src/tensor/fill.ts";

const n = Number(Deno.args[0] ?? 4096);
using gpu = await openDevice();
console.log(gpu.info.adapter);

/** Column bias, relu and a residual. */
const EPILOGUE = { bias: "column", activation: "relu", residual: true } as const;

function fused(epilogue: Partial<typeof EPILOGUE>): Plan {
  const problem = gemmProblem({ m: n, n, k: n, transpose: "tn", ...epilogue });
  return planGemm({ problem, dtype: "f32", limits: gpu.limits, splits: 1 });
}

/** The product, then a pass that reads its result and writes it with the epilogue. */
function unfused(): Plan {
  const product = fused({});
  const buffers = new BufferList(gpu.limits);
  for (const { name, role, bytes } of product.buffers) {
    buffers.add(name, role === "output" ? "workspace" : role, bytes / 4, "f32");
  }
  const partials = product.buffers.findIndex(({ role }) => role === "output");
  const bias = buffers.add("bias", "bias", n, "f32");
  const residual = buffers.add("residual", "residual", n * n, "f32");
  const result = buffers.add("output", "output", n * n, "f32");
  const steps: EpilogueFactory = (module, width) => [
    biasStep(module, "columns", buffers.split(bias)),
    activationStep("relu"),
    addTensorStep("residual", module.tensor("residual", "read", width, buffers.split(residual)), 1),
  ];
  const shape = { elements: n * n, splits: 1, rows: n, rowStride: n, columns: n, columnStride: 1 };
  const places = { partials, result, bias, residual };
  const last = reducePass(shape, "constant", steps, buffers, places, gpu.limits, "f32");
  return { ...product, buffers: buffers.list, passes: [...product.passes, last] };
}

const plans: [string, Plan][] = [
  ["no epilogue", fused({})],
  ["column bias, relu and residual, fused", fused(EPILOGUE)],
  ["column bias, relu and residual, a pass of their own", unfused()],
];
using resources = new DisposableStack();
const rivals = [];
for (const [name, plan] of plans) {
  const buffers = resources.use(createPlanBuffers(gpu, plan));
  plan.buffers.forEach(({ role, bytes }, place) => {
    if (role === "workspace" || role === "output") return;
    upload(
      gpu,
      buffers.buffers[place]!,
      0,
      fillTensor("f32", [bytes / 4], "uniform11", place).data,
    );
  });
  const prepared = resources.use(await preparePlan(gpu, plan, buffers));
  rivals.push({ name, prepared, samples: [] as number[] });
}
const warmup = gpu.info.software ? 0 : 100;
for (const { prepared } of rivals) await execute(gpu, prepared, { samples: 1, repeats: 1, warmup });
for (let round = 0; round < 15; round++) {
  for (const { prepared, samples } of rivals) {
    const { samplesNs } = await execute(gpu, prepared, {
      samples: 1,
      repeats: gpu.info.software ? 1 : 10,
    });
    samples.push(samplesNs[0]! / 1e6);
  }
}
const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!;
const first = median(rivals[0]!.samples);
for (const { name, samples } of rivals) {
  const ms = median(samples);
  console.log(`| ${name} | ${ms.toFixed(3)} ms | ${((ms / first - 1) * 100).toFixed(1)} % |`);
}
