/** Products on the driver at hand: transposes, epilogues, policies, splits, ragged sizes, by the gate. */
import assert from "#assert";
import { type GemmRequest, planGemm } from "../../src/algorithms/gemm/plan.ts";
import { policyFits } from "../../src/algorithms/cut.ts";
import { checkGemm, computeGemmReference } from "../../src/bench/gemm_check.ts";
import { fillGemm, gemmResult } from "../../src/bench/gemm_operands.ts";
import { runPlan } from "../../src/bench/gpu_case.ts";
import { type GpuDevice, openDevice } from "../../src/gpu/device.ts";
import { TILE_POLICIES } from "../../src/kernels/policy.ts";
import { ACTIVATIONS } from "../../src/problem/epilogue.ts";
import { type GemmProblem, gemmProblem, TRANSPOSES } from "../../src/problem/gemm_problem.ts";
import { printGemm } from "../../src/problem/gemm_suite.ts";

const backend = Deno.env.get("WGCONV_TEST_BACKEND") === "dawn" ? "dawn" : "wgpu";
const full = Deno.env.get("WGCONV_TEST_MATRIX") === "full";

/** One step of the epilogue at a time, and all together. */
const EPILOGUES: readonly Partial<GemmProblem>[] = [
  {},
  { alpha: -1.5 },
  { beta: 0.5 },
  { bias: "row" },
  { bias: "column" },
  { activation: "relu" },
  { residual: true },
  { alpha: 0.1, beta: -2, bias: "row", activation: "silu", residual: true },
  { alpha: 0.1, beta: -2, bias: "column", activation: "leaky-relu", residual: true },
];
const ALL = EPILOGUES.at(-1)!;

/** Nothing divides the first two; fours divide the third, which so takes the vector loads and stores. */
const SIZES = [[33, 35, 37], [70, 41, 129], [68, 44, 100]] as const;

async function multiply(
  gpu: GpuDevice,
  init: Partial<GemmProblem> & Pick<GemmProblem, "m" | "n" | "k">,
  choice: Partial<GemmRequest> = {},
) {
  const problem = gemmProblem(init);
  const dtype = choice.dtype ?? "f32";
  const plan = planGemm({
    problem,
    dtype,
    policy: "tiny",
    splits: 1,
    limits: gpu.limits,
    sizes: "uniform",
    ...choice,
  });
  const operands = fillGemm(problem, dtype, "uniform11", 7);
  const expected = gemmResult(problem, dtype);
  const { result } = await runPlan(gpu, plan, operands, expected, { samples: 1, fillMs: 0 });
  if (result.length === 0) return { plan, result };
  const request = { problem, dtype, operands, mode: "full", seed: 1 } as const;
  const reference = await computeGemmReference(request);
  const { verdict, message } = checkGemm(problem, { dtype, accumulate: "f32" }, reference, result);
  assert.equal(verdict, "pass", `${printGemm(problem)} ${plan.kernel}: ${message}`);
  return { plan, result };
}

/** Policies that the device runs, whichever way the operands lie. */
function policies(gpu: GpuDevice) {
  if (!full) return ["tiny"];
  // SwiftShader takes gigabytes to compile what the larger ones unroll.
  if (/swiftshader/i.test(gpu.info.adapter)) return ["tiny", "small"];
  const operand = { along: "depth", vector: 1 } as const;
  return TILE_POLICIES.filter((policy) => policyFits(policy, gpu.limits, operand, operand))
    .map(({ name }) => name);
}

Deno.test("every transpose, epilogue and policy agrees with the reference, split or not", async () => {
  using gpu = await openDevice({ backend });
  for (const policy of policies(gpu)) {
    for (const [way, transpose] of TRANSPOSES.entries()) {
      for (const [place, [m, n, k]] of SIZES.entries()) {
        // Compiling is what takes time: a third of the steps in turn, all of them where it is quick.
        const steps = full && policy === "tiny"
          ? EPILOGUES
          : EPILOGUES.filter((_, i) => (i + way + place) % 3 === 0);
        for (const epilogue of steps) {
          const problem = { m, n, k, transpose, ...epilogue };
          for (const splits of [1, 3]) await multiply(gpu, problem, { policy, splits });
        }
      }
    }
  }
});

Deno.test("batches have every transpose and the whole epilogue", async () => {
  using gpu = await openDevice({ backend });
  for (const transpose of TRANSPOSES) {
    for (const [m, n, k] of [[33, 35, 37], [36, 40, 44]] as const) {
      for (const splits of [1, 3]) {
        await multiply(gpu, { m, n, k, batch: 3, transpose, ...ALL }, { splits });
      }
    }
  }
});

Deno.test("operands that are packed first give the same products", async () => {
  using gpu = await openDevice({ backend });
  for (const transpose of ["nn", "tt"] as const) {
    const problem = { m: 1030, n: 1031, k: 1029, transpose };
    const { plan } = await multiply(gpu, problem, { policy: "small" });
    assert.match(plan.kernel, /_apbp_/);
  }
});

Deno.test("f16 matrices are summed in f32, or their feature is named", async () => {
  using gpu = await openDevice({ backend, optionalFeatures: ["shader-f16"] });
  const problem = { m: 33, n: 35, k: 37, transpose: "nn", ...ALL } as const;
  if (!gpu.features.has("shader-f16")) {
    const refused = multiply(gpu, problem, { dtype: "f16" });
    await assert.rejects(refused, /shader-f16/);
    return;
  }
  for (const transpose of TRANSPOSES) {
    for (const [m, n, k] of [...SIZES, [20, 24, 4608]] as const) {
      for (const splits of [1, 3]) {
        await multiply(gpu, { ...problem, m, n, k, transpose }, { dtype: "f16", splits });
      }
    }
  }
});

Deno.test("sizes in the kernel give what sizes in a uniform do", async () => {
  using gpu = await openDevice({ backend });
  for (const transpose of TRANSPOSES) {
    const problem = { m: 37, n: 52, k: 41, transpose, ...ALL };
    const { result } = await multiply(gpu, problem, { sizes: "constant" });
    const other = await multiply(gpu, problem);
    assert.deepEqual(result, other.result);
    await multiply(gpu, problem, { sizes: "constant", splits: 2 });
  }
});

Deno.test("every activation follows the sum", async () => {
  using gpu = await openDevice({ backend });
  for (const activation of ACTIVATIONS) {
    for (const splits of [1, 2]) {
      await multiply(gpu, { m: 20, n: 19, k: 30, bias: "column", activation }, { splits });
    }
  }
});

Deno.test("one row, one column and one product are no special cases", async () => {
  using gpu = await openDevice({ backend });
  for (const transpose of TRANSPOSES) {
    for (const [m, n, k] of [[1, 70, 65], [70, 1, 65], [1, 1, 100], [34, 33, 1]] as const) {
      for (const splits of [1, 3]) await multiply(gpu, { m, n, k, transpose, ...ALL }, { splits });
    }
  }
});

Deno.test("without depth the epilogue is of zeros", async () => {
  using gpu = await openDevice({ backend });
  for (const transpose of TRANSPOSES) {
    await multiply(gpu, { m: 5, n: 6, k: 0, transpose, ...ALL });
    const { result } = await multiply(gpu, { m: 5, n: 6, k: 0, transpose }, { splits: 3 });
    assert.deepEqual(result, new Float32Array(30));
  }
});

Deno.test("an empty result has no passes", async () => {
  using gpu = await openDevice({ backend });
  for (const empty of [{ m: 0 }, { n: 0 }, { batch: 0 }]) {
    const { plan, result } = await multiply(gpu, { m: 5, n: 6, k: 7, ...empty, ...ALL });
    assert.equal(plan.passes.length, 0);
    assert.equal(result.length, 0);
  }
});

Deno.test("tensors of several bindings give the same", async () => {
  using gpu = await openDevice({ backend });
  const limits = { ...gpu.limits, maxStorageBufferBindingSize: 8192 };
  for (const transpose of TRANSPOSES) {
    for (const splits of [1, 3]) {
      const { plan } = await multiply(gpu, { m: 52, n: 44, k: 60, transpose }, { limits, splits });
      assert.match(plan.kernel, /_parts/);
      await multiply(gpu, { m: 53, n: 45, k: 61, transpose, beta: 1 }, { limits, splits });
    }
  }
});

Deno.test("the planner's own choice agrees with the reference", async () => {
  using gpu = await openDevice({ backend });
  const { plan } = await multiply(gpu, { m: 40, n: 24, k: 3000 }, {
    policy: undefined,
    splits: undefined,
    workgroupsInFlight: gpu.workgroupsInFlight,
  });
  assert.ok(plan.multiplications > 0);
});
