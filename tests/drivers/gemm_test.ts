/** Products on the driver at hand, by the gate: the matrix of `gemm_matrix.ts`, and what it leaves out. */
import assert from "#assert";
import { softwareDevice } from "../../src/algorithms/device/software.ts";
import { modelOf } from "../../src/algorithms/device/known.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import { TUNED_VARIANT, VARIANT_TRAITS } from "../../src/kernels/variant.ts";
import { PLAIN_ACTIVATIONS } from "../../src/problem/activations.ts";
import { gemmElement, type GemmProblem, TRANSPOSES } from "../../src/problem/gemm_problem.ts";
import { printGemm } from "../../src/problem/gemm_suite.ts";
import { arrayConstructor } from "../../src/tensor/dtype.ts";
import {
  ARITHMETIC,
  type Arithmetic,
  type Choice,
  EPILOGUES,
  epiloguesOf,
  FEATURES,
  gemmMatrix,
  multiply as run,
  policiesOf,
} from "../gemm_matrix.ts";
import { full, testsOn } from "./driver.ts";

const ALL = EPILOGUES.at(-1)!;

async function multiply(
  gpu: GpuDevice,
  problem: Partial<GemmProblem> & Pick<GemmProblem, "m" | "n" | "k">,
  choice: Choice = {},
) {
  const { plan, result, checked } = await run(gpu, problem, choice);
  if (checked !== undefined) {
    const what = `${printGemm({ batch: 1, transpose: "nn", ...problem } as GemmProblem)}`;
    assert.equal(checked.verdict, "pass", `${what} ${plan.kernel}: ${checked.message}`);
  }
  return { plan, result };
}

const test = testsOn({ optionalFeatures: FEATURES });

/** What the device has the features for. */
function available(gpu: GpuDevice): Arithmetic[] {
  return ARITHMETIC.filter(({ feature }) => feature === undefined || gpu.features.has(feature));
}

for (const arithmetic of ARITHMETIC) {
  const { dtype, accumulate, schedule, feature } = arithmetic;
  const { feature: _, ...choice } = arithmetic;
  const name = `${dtype}${accumulate ? ` summed in ${accumulate}` : ""}${schedule ? " tiles" : ""}`;

  test(`every transpose, epilogue and policy of ${name} agrees with the reference`, async (gpu) => {
    if (feature !== undefined && !gpu.features.has(feature)) {
      const refused = multiply(gpu, { m: 3, n: 4, k: 5 }, choice);
      await assert.rejects(refused, new RegExp(feature));
      return;
    }
    const plain = dtype === "f32";
    for (const policy of full ? policiesOf(gpu) : ["tiny"]) {
      const share = policy === "tiny" ? (full ? 1 : plain ? 3 : 9) : plain ? 3 : 9;
      for (const one of gemmMatrix(arithmetic, policy, share)) {
        await multiply(gpu, one.problem, one.choice);
      }
    }
    const all = epiloguesOf(dtype).at(-1)!;
    for (const transpose of plain || full ? TRANSPOSES : ["nt"] as const) {
      for (const [m, n, k] of [[1, 70, 65], [70, 1, 65], [1, 1, 100], [34, 33, 1]] as const) {
        await multiply(gpu, { m, n, k, transpose, ...all }, choice);
      }
      await multiply(gpu, { m: 5, n: 6, k: 0, transpose, ...all }, choice);
      const { result } = await multiply(gpu, { m: 5, n: 6, k: 0, transpose }, {
        ...choice,
        schedule: { ...choice.schedule, splits: 3 },
      });
      assert.deepEqual(result, new (arrayConstructor(gemmElement(dtype, "output")))(30));
    }
    const { plan } = await multiply(gpu, { m: 0, n: 6, k: 7, ...all }, choice);
    assert.equal(plan.passes.length, 0);
  });
}

test("batches have every transpose and the whole epilogue in every arithmetic", async (gpu) => {
  for (const { feature: _, ...choice } of available(gpu)) {
    const all = epiloguesOf(choice.dtype).at(-1)!;
    const plain = choice.dtype === "f32" || full;
    for (const transpose of plain ? TRANSPOSES : ["nt"] as const) {
      for (const [m, n, k] of [[33, 35, 37], [36, 40, 48]] as const) {
        for (const splits of plain ? [1, 3] : [1]) {
          await multiply(gpu, { m, n, k, batch: 3, transpose, ...all }, {
            ...choice,
            schedule: { ...choice.schedule, splits },
          });
        }
      }
    }
  }
});

test("operands that are packed first give the same products", async (gpu) => {
  for (const { feature: _, ...choice } of available(gpu)) {
    if (!full && choice.dtype !== "f32") continue;
    for (const transpose of choice.dtype === "f32" ? ["nn", "tt"] as const : ["nn"] as const) {
      const problem = { m: 1030, n: 1031, k: 1029, transpose };
      const policy = choice.dtype === "f64" ? "tiny" : "small";
      const { plan } = await multiply(gpu, problem, {
        ...choice,
        schedule: { ...choice.schedule, policy },
      });
      assert.match(plan.kernel, choice.dtype === "f64" ? /_a[p1]b[p1]_/ : /_apbp_/);
    }
  }
});

test("int8 whose depth is a multiple of four is read as it lies, otherwise packed", async (gpu) => {
  const names = [];
  for (const [transpose, k] of [["nt", 36], ["nt", 48], ["nn", 48], ["nt", 37]] as const) {
    const { plan } = await multiply(gpu, { m: 36, n: 35, k, transpose }, { dtype: "i8" });
    names.push(/_n[nt]_(a.b.)_/.exec(plan.kernel)![1]);
  }
  assert.deepEqual(names, ["a1b1", "a4b4", "a4bp", "apbp"]);
});

test("int8 sums are exact up to 32 bits, and refused beyond", async (gpu) => {
  for (const splits of [1, 3]) {
    const problem = { m: 8, n: 9, k: 300, transpose: "nt" } as const;
    const { result } = await multiply(gpu, { ...problem, alpha: 1511 }, {
      dtype: "i8",
      schedule: { splits },
    });
    assert.ok(result instanceof Int32Array && result.some((value) => Math.abs(value) > 2 ** 28));
    await assert.rejects(
      multiply(gpu, { ...problem, alpha: 2 ** 20 + 7 }, { dtype: "i8", schedule: { splits } }),
      {
        name: "RangeError",
        message: /^Cannot multiply: result \[\d, \d\] is beyond the 32 bits that i8 products make$/,
      },
    );
  }
});

test("f16 and bf16 are summed within their bounds over a long depth", async (gpu) => {
  for (const { feature: _, ...choice } of available(gpu)) {
    if (choice.dtype !== "f16" && choice.dtype !== "bf16") continue;
    for (const splits of [1, 3]) {
      await multiply(gpu, { m: 20, n: 24, k: 4608 }, {
        ...choice,
        schedule: { ...choice.schedule, splits },
      });
    }
  }
});

test("the main loop without each of its optimisations gives the same", async (gpu) => {
  for (const { feature: _, ...choice } of available(gpu)) {
    if (!full && choice.schedule !== undefined) continue;
    for (const [trait, key] of Object.entries(VARIANT_TRAITS)) {
      // Loads and stores of single elements, and of four; the depth within a tile, and beyond.
      const sizes = [[41, 35, 45], [36, 40, 48]] as const;
      for (const [m, n, k] of full || choice.dtype === "f32" ? sizes : sizes.slice(1)) {
        const { plan } = await multiply(gpu, { m, n, k }, {
          ...choice,
          schedule: { ...choice.schedule, [key]: !TUNED_VARIANT[key] },
        });
        assert.match(plan.kernel, new RegExp(trait.replaceAll("-", "_")));
      }
    }
  }
});

test("sizes in the kernel give what sizes in a uniform do", async (gpu) => {
  for (const { feature: _, ...choice } of available(gpu)) {
    const all = epiloguesOf(choice.dtype).at(-1)!;
    for (const transpose of choice.dtype === "f32" ? TRANSPOSES : ["nt"] as const) {
      const problem = { m: 37, n: 52, k: 41, transpose, ...all };
      const { result } = await multiply(gpu, problem, { ...choice, sizes: "constant" });
      const other = await multiply(gpu, problem, choice);
      assert.deepEqual(result, other.result);
      await multiply(gpu, problem, {
        ...choice,
        sizes: "constant",
        schedule: { ...choice.schedule, splits: 2 },
      });
    }
  }
});

test("a last step of its own gives what a loop over all steps does", async (gpu) => {
  const variants = [{}, { doubleBuffer: true }, { prefetch: false }];
  for (const { feature: _, ...choice } of available(gpu)) {
    // One step, two and many, of a tile 8 deep: in words of four where int8.
    const depths = choice.dtype === "i8"
      ? [9, 50]
      : choice.dtype === "f32"
      ? [3, 13, 41]
      : [13, 41];
    for (const k of depths) {
      for (const variant of choice.dtype === "f32" ? variants : [{}]) {
        const problem = { m: 33, n: 36, k };
        const run = (peel: boolean) =>
          multiply(gpu, problem, {
            ...choice,
            sizes: "constant",
            schedule: { ...choice.schedule, ...variant, peel },
          });
        const [own, loop] = [await run(true), await run(false)];
        assert.deepEqual(own.result, loop.result);
        const isPeeled = ({ plan }: typeof own) =>
          plan.passes.some(({ kernel }) => kernel.wgsl.includes("let last_step"));
        assert.deepEqual([isPeeled(own), isPeeled(loop)], [true, false]);
      }
    }
  }
});

test("every activation follows the sum", async (gpu) => {
  const dtypes = gpu.features.has("shader-f64") ? ["f32", "f64"] as const : ["f32"] as const;
  for (const dtype of dtypes) {
    for (const activation of PLAIN_ACTIVATIONS) {
      for (const splits of dtype === "f32" ? [1, 2] : [1]) {
        const problem = { m: 20, n: 19, k: 30, bias: "column", activation } as const;
        await multiply(gpu, problem, { dtype, schedule: { splits } });
      }
    }
  }
});

test("without depth the epilogue is of zeros, and an empty result has no passes", async (gpu) => {
  for (const empty of [{ m: 0 }, { n: 0 }, { batch: 0 }]) {
    const { plan, result } = await multiply(gpu, { m: 5, n: 6, k: 7, ...empty, ...ALL });
    assert.equal(plan.passes.length, 0);
    assert.equal(result.length, 0);
  }
});

test("tensors of several bindings give the same", async (gpu) => {
  for (const { feature: _, ...choice } of available(gpu)) {
    const limits = {
      ...gpu.limits,
      maxStorageBufferBindingSize: { i8: 2048, bf16: 4096 }[choice.dtype as string] ?? 8192,
    };
    if (!full && choice.dtype === "f16") continue;
    for (const transpose of choice.dtype === "f32" ? TRANSPOSES : ["nn"] as const) {
      for (const splits of [1, 3]) {
        const asked = { ...choice, limits, schedule: { ...choice.schedule, splits } };
        const { plan } = await multiply(gpu, { m: 52, n: 44, k: 60, transpose }, asked);
        if (choice.dtype !== "f16") assert.match(plan.kernel, /_parts/);
        // SwiftShader has ten bindings.
        const beta = choice.dtype === "i8" ? 0 : 1;
        await multiply(gpu, { m: 53, n: 45, k: 61, transpose, beta }, asked);
      }
    }
  }
});

test("the planner's own choice agrees with the reference", async (gpu) => {
  for (const { feature: _, ...choice } of available(gpu)) {
    const { plan } = await multiply(gpu, { m: 40, n: 24, k: 3000 }, {
      ...choice,
      schedule: { ...choice.schedule, policy: undefined, splits: undefined },
      device: modelOf(gpu.workgroupsInFlight),
    });
    assert.ok(plan.multiplications > 0);
  }
});

/** Two multiprocessors: whole waves are few tiles of `tiny`. */
const STREAMED = {
  schedule: { balance: "stream-k", splits: undefined },
  device: softwareDevice(4),
} as const;

test("stream-K agrees with the reference in every arithmetic, transpose and epilogue", async (gpu) => {
  for (const { feature: _, ...choice } of available(gpu)) {
    const plain = choice.dtype === "f32";
    for (const [place, transpose] of TRANSPOSES.entries()) {
      if (!plain && !full && transpose !== "nt") continue;
      // Ragged, single stores; whole fours; a batch whose last tiles begin within one of its products.
      for (
        const [m, n, k, batch] of [[165, 167, 37, 1], [132, 168, 80, 1], [70, 44, 65, 5]] as const
      ) {
        const epilogues = epiloguesOf(choice.dtype);
        const epilogue = plain ? epilogues[(place + m) % epilogues.length] : epilogues.at(-1);
        for (const all of [epilogue, ...(plain ? [epilogues.at(-1)] : [])]) {
          const { plan } = await multiply(gpu, { m, n, k, batch, transpose, ...all }, {
            ...choice,
            ...STREAMED,
            schedule: { ...choice.schedule, ...STREAMED.schedule },
          });
          assert.match(plan.kernel, /_streamk/);
          assert.match(plan.notes[0]!, /stream-K: [1-9]\d* tiles whole, the depth of [1-9]/);
        }
      }
    }
  }
});

test("stream-K of another policy, forced splits, baked sizes and several bindings gives the same", async (gpu) => {
  const problem = { m: 133, n: 260, k: 70, bias: "row", beta: 1 } as const;
  await multiply(gpu, problem, {
    ...STREAMED,
    schedule: { ...STREAMED.schedule, policy: "small" },
    device: softwareDevice(2),
  });
  for (const sizes of ["constant", "uniform"] as const) {
    const { plan } = await multiply(gpu, problem, {
      ...STREAMED,
      sizes,
      schedule: { ...STREAMED.schedule, splits: 5 },
    });
    assert.match(plan.notes[0]!, /split in 5$/);
    const limits = { ...gpu.limits, maxStorageBufferBindingSize: 131_072 };
    const parts = await multiply(gpu, { ...problem, beta: 0 }, { ...STREAMED, sizes, limits });
    assert.match(parts.plan.kernel, /_streamk_bias_parts/);
  }
  // More splits than have steps: nine steps of tiny, in sevens and twos.
  await multiply(gpu, problem, { ...STREAMED, schedule: { ...STREAMED.schedule, splits: 7 } });
  // All tiles are fewer than a wave: none would be whole.
  const { plan } = await multiply(gpu, { m: 40, n: 20, k: 70 }, {
    ...STREAMED,
    device: softwareDevice(264),
  });
  assert.doesNotMatch(plan.kernel, /streamk/);
});

test("what stream-K cannot cut is computed whole", async (gpu) => {
  for (const k of [0, 1, 8]) {
    const { plan } = await multiply(gpu, { m: 133, n: 131, k, bias: "row" }, STREAMED);
    assert.doesNotMatch(plan.kernel, /streamk/);
  }
  const { plan } = await multiply(gpu, { m: 0, n: 131, k: 50 }, STREAMED);
  assert.equal(plan.passes.length, 0);
});
