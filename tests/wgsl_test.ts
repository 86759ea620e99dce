/** Every generated kernel passes both compilers: Deno's naga, and Dawn's Tint on its null device. */
import assert from "#assert";
import { planGemm } from "../src/algorithms/gemm/plan.ts";
import { planConv } from "../src/algorithms/planner.ts";
import { DEFAULT_LIMITS } from "../src/algorithms/plan.ts";
import { openValidator } from "../src/gpu/validate.ts";
import { BACKENDS } from "../src/gpu/provider.ts";
import { TILE_POLICIES } from "../src/kernels/policy.ts";
import type { Kernel } from "../src/kernels/kernel.ts";
import { convProblem, OPERATIONS } from "../src/problem/conv_problem.ts";
import { ACTIVATIONS } from "../src/problem/epilogue.ts";
import { gemmProblem, TRANSPOSES } from "../src/problem/gemm_problem.ts";
import { filterLayoutFor, LAYOUTS } from "../src/tensor/layout.ts";

const limits = { ...DEFAULT_LIMITS, maxComputeWorkgroupStorageSize: 32_768 };

/** Kernels of every algorithm, operation, layout, rank and activation; each policy once. */
function kernels(): Kernel[] {
  const found = new Map<string, Kernel>();
  const add = (
    rank: number,
    channels: number,
    more: Partial<Parameters<typeof planConv>[0]> & { op: typeof OPERATIONS[number] },
  ) => {
    const layout = more.layout ?? "nchw";
    const problem = convProblem({
      op: more.op,
      batch: 4,
      inChannels: channels,
      outChannels: channels,
      inputSize: new Array(rank).fill(5),
      filterSize: new Array(rank).fill(3),
      paddingBegin: new Array(rank).fill(1),
    });
    const plan = planConv({
      problem,
      dtype: "f32",
      layout,
      filterLayout: filterLayoutFor(layout),
      epilogue: { bias: false, activation: "none" },
      algorithm: "implicit-gemm",
      policy: "tiny",
      sizes: "uniform",
      limits,
      ...more,
    });
    for (const { kernel } of plan.passes) found.set(kernel.name, kernel);
  };
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      for (const rank of [1, 2, 3]) {
        add(rank, 5, { op, layout, algorithm: "direct" });
        for (const channels of [5, 16]) {
          for (const splits of [1, 2]) {
            add(rank, channels, { op, layout, splits });
            add(rank, channels, { op, layout, splits, sizes: "constant" });
          }
        }
      }
    }
    for (const { name } of TILE_POLICIES) add(2, 16, { op, policy: name });
    add(2, 16, { op, limits: { ...limits, maxStorageBufferBindingSize: 5120 } });
  }
  for (const activation of ACTIVATIONS) {
    for (const splits of [1, 2]) {
      add(2, 16, { op: "fwd", splits, epilogue: { bias: true, activation } });
      add(2, 16, { op: "fwd", splits, layout: "nhwc", epilogue: { bias: false, activation } });
    }
  }
  for (const kernel of gemmKernels()) found.set(kernel.name, kernel);
  return [...found.values()];
}

/** Products of every transpose, as vectors and as single elements, split and packed, with every epilogue. */
function gemmKernels(): Kernel[] {
  const kernels: Kernel[] = [];
  const epilogues = [
    {},
    { alpha: 0.5, beta: -2, bias: "row", activation: "gelu", residual: true },
    { bias: "column", activation: "relu" },
  ] as const;
  for (const transpose of TRANSPOSES) {
    for (const size of [33, 64, 2049]) {
      for (const splits of [1, 2]) {
        for (const epilogue of epilogues) {
          const problem = gemmProblem({ m: size, n: size, k: size, transpose, ...epilogue });
          const plan = planGemm({ problem, dtype: "f32", policy: "tiny", splits, limits });
          kernels.push(...plan.passes.map(({ kernel }) => kernel));
        }
      }
    }
  }
  return kernels;
}

for (const backend of BACKENDS) {
  Deno.test(`every kernel is valid WGSL to ${backend}`, async () => {
    using validator = await openValidator(backend);
    const all = kernels();
    assert.ok(all.length > 100, `${all.length} kernels`);
    for (const kernel of all) {
      const messages = await validator.validate(kernel);
      const errors = messages.filter(({ type }) => type === "error");
      assert.deepEqual(errors, [], kernel.name);
    }
  });
}
