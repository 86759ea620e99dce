/**
 * Products on matrix units, by the gate: on sizes that divide nothing, with every transpose and epilogue. Dawn has them on
 * NVIDIA's GPUs and on the CPU with Mesa 26 (`deno task test:drivers matrix`); elsewhere there is nothing to test.
 */
import assert from "#assert";
import { H200 } from "../../src/algorithms/device/h200.ts";
import { softwareDevice } from "../../src/algorithms/device/software.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import { matrixPolicies } from "../../src/kernels/matrix_policies.ts";
import { matrixUnitFor } from "../../src/kernels/matrix_units.ts";
import { type GemmProblem, TRANSPOSES } from "../../src/problem/gemm_problem.ts";
import { printGemm } from "../../src/problem/gemm_suite.ts";
import { type Choice, epiloguesOf, multiply as run } from "../gemm_matrix.ts";
import { full, test } from "./driver.ts";

type Sizes = Partial<GemmProblem> & Pick<GemmProblem, "m" | "n" | "k">;

/** Nothing divides the first; fours and eights the others. */
const SIZES = [[67, 73, 45], [68, 84, 52], [136, 72, 80]] as const;

/** Every policy that the device's unit for these operands can be cut by. */
function policyNames({ matrixUnits }: GpuDevice, dtype: "f16" | "i8"): string[] {
  const unit = matrixUnitFor(
    dtype === "f16" ? { storage: "f16", accumulate: "f32" } : { storage: "u32", accumulate: "i32" },
    matrixUnits,
  );
  const names = matrixPolicies(unit!, matrixUnits!.lanes).map(({ name }) => name);
  assert.ok(names.length > 5, names.join());
  return names;
}

async function multiply(gpu: GpuDevice, problem: Sizes, choice: Choice) {
  const { plan, result, checked } = await run(gpu, problem, {
    matrixUnits: gpu.matrixUnits,
    ...choice,
    schedule: { policy: "matrix-small", ...choice.schedule },
  });
  const what = printGemm({ batch: 1, transpose: "nn", ...problem } as GemmProblem);
  if (checked !== undefined) {
    assert.equal(checked.verdict, "pass", `${what} ${plan.kernel}: ${checked.message}`);
  }
  return { plan, result };
}

for (const dtype of ["f16", "i8"] as const) {
  test.units(`every policy on matrix units of ${dtype} agrees with the reference`, async (gpu) => {
    const epilogues = epiloguesOf(dtype);
    let turn = 0;
    for (const policy of policyNames(gpu, dtype)) {
      for (const transpose of TRANSPOSES) {
        for (const [m, n, k] of full ? SIZES : [SIZES[turn % SIZES.length]!]) {
          for (const splits of [1, 3]) {
            const epilogue = epilogues[turn++ % epilogues.length];
            const problem = { m, n, k, transpose, ...epilogue };
            const { plan } = await multiply(gpu, problem, { dtype, schedule: { policy, splits } });
            assert.match(plan.kernel, /_mma\d+x\d+x\d+_/);
            assert.match(plan.notes[0]!, /; on matrix units of \d+x\d+x\d+, /);
          }
        }
      }
    }
  });

  test.units(`small, deep, empty and batched products of ${dtype} on matrix units`, async (gpu) => {
    const all = epiloguesOf(dtype).at(-1)!;
    for (const transpose of ["nn", "tt"] as const) {
      for (const [m, n, k] of [[1, 70, 65], [70, 1, 65], [1, 1, 100], [34, 33, 1]] as const) {
        await multiply(gpu, { m, n, k, transpose, ...all }, { dtype });
      }
      await multiply(gpu, { m: 33, n: 36, k: 40, batch: 3, transpose, ...all }, { dtype });
      await multiply(gpu, { m: 36, n: 36, k: 700, transpose }, { dtype, schedule: { splits: 2 } });
      await multiply(gpu, { m: 5, n: 6, k: 0, transpose, ...all }, { dtype });
    }
    const { plan } = await multiply(gpu, { m: 0, n: 6, k: 7, ...all }, { dtype });
    assert.equal(plan.passes.length, 0);
  });

  test.units(`the loop's variants on matrix units of ${dtype} agree with the reference`, async (gpu) => {
    for (const sizes of ["constant", "uniform"] as const) {
      // A last step of less than a matrix, of one, and of a whole step.
      for (const k of [dtype === "i8" ? 36 : 37, 40, 48]) {
        for (
          const variant of [{}, { doubleBuffer: true }, { prefetch: false }, { peel: false }]
        ) {
          await multiply(gpu, { m: 41, n: 44, k }, { dtype, sizes, schedule: { ...variant } });
        }
      }
      const streamed = {
        schedule: { balance: "stream-k", splits: undefined },
        device: softwareDevice(4),
      } as const;
      const { plan } = await multiply(gpu, { m: 165, n: 167, k: 80 }, {
        dtype,
        sizes,
        ...streamed,
      });
      assert.match(plan.kernel, /_streamk/);
    }
  });

  test.units(`the planner takes matrix units for ${dtype} where nothing says otherwise`, async (gpu) => {
    const free = {
      dtype,
      schedule: { policy: undefined, splits: undefined },
      device: softwareDevice(4),
    };
    const kernel = async (choice: Choice) =>
      (await multiply(gpu, { m: 70, n: 90, k: 100 }, {
        ...free,
        ...choice,
        schedule: { ...free.schedule, ...choice.schedule },
      })).plan.kernel;
    assert.match(await kernel({}), /_mma/);
    assert.doesNotMatch(await kernel({ schedule: { matrixUnits: false } }), /_mma/);
    assert.doesNotMatch(await kernel({ matrixUnits: undefined }), /_mma/);
    assert.doesNotMatch(await kernel({ schedule: { policy: "tiny" } }), /_mma/);
    const refused = kernel({ schedule: { policy: "matrix-small" }, matrixUnits: undefined });
    await assert.rejects(refused, /wants matrix units/);
  });
}

/** Where packing costs nothing, and short rows much. */
const FREE_PACKING = {
  ...H200,
  costs: { ...H200.costs, element: 0, dispatch: 0 },
  shares: { ...H200.shares, depthRows: { 16: 0.5, 32: 0.5, 64: 0.5 } },
};

test.units("operands of int8 are packed in panels on matrix units where that pays, and where bytes lie apart", async (gpu) => {
  // Bytes of a depth that come in sixteens, in words, and one by one; places in fours and one by one.
  for (const [m, n, k] of [[68, 72, 80], [67, 36, 52], [36, 67, 45]] as const) {
    for (const transpose of TRANSPOSES) {
      for (const sizes of ["constant", "uniform"] as const) {
        const problem = { m, n, k, batch: 2, transpose };
        const { plan } = await multiply(gpu, problem, {
          dtype: "i8",
          sizes,
          device: FREE_PACKING,
        });
        const packs = plan.passes.slice(0, -1).map(({ kernel }) => kernel.name.split(".")[0]);
        const run = k === 80 ? 16 : k === 52 ? 4 : 1;
        const kernel = (places: number, along: string) =>
          along === "depth"
            ? `pack_bytes_depth1_run${run}_panels`
            : `pack_bytes_place${places % 4 === 0 ? 4 : 1}_run1_panels`;
        assert.deepEqual(packs, [
          kernel(m, transpose[0] === "n" ? "depth" : "place"),
          kernel(n, transpose[1] === "n" ? "place" : "depth"),
        ]);
      }
    }
  }
});

test.units("operands of f16 that lie along the depth are packed on matrix units where that pays", async (gpu) => {
  const packed = { nn: "ap", nt: "apbp", tn: "", tt: "bp" };
  for (const [m, n, k] of SIZES.slice(1, 2)) {
    for (const transpose of TRANSPOSES) {
      for (const policy of ["matrix-small", "matrix-ahead", "matrix-ahead-wide"]) {
        const choice = { dtype: "f16", device: FREE_PACKING, schedule: { policy } } as const;
        const { plan } = await multiply(gpu, { m, n, k, transpose, batch: 2 }, choice);
        const passes = packed[transpose].length / 2;
        assert.equal(plan.passes.length, 1 + passes, plan.kernel);
        assert.ok(plan.kernel.includes(packed[transpose]), plan.kernel);
      }
    }
  }
});

test.units("split depth goes by rounds of steps where these come out even", async (gpu) => {
  const depth = matrixUnitFor({ storage: "f16", accumulate: "f32" }, gpu.matrixUnits)!.k;
  const all = epiloguesOf("f16").at(-1)!;
  // Rounds of eight, of six and of four steps, splits of unequal length, and steps in no rounds.
  for (
    const [steps, splits, rounds] of [
      [392, 5, 8],
      [54, 3, 6],
      [100, 5, 4],
      [16, 2, 8],
      [53, 4, 0],
      [
        40,
        3,
        0,
      ],
    ] as const
  ) {
    for (const policy of ["matrix-ahead", "matrix-ahead-tall"]) {
      const problem = { m: 36, n: 44, k: steps * depth, ...all };
      const choice = {
        dtype: "f16",
        schedule: { policy, splits, flush: 0 },
        sizes: "constant",
      } as const;
      const { plan } = await multiply(gpu, problem, choice);
      const text = plan.passes.map(({ kernel }) => kernel.wgsl).join();
      const found = /round \+= (\d)u/.exec(text)?.[1] ?? "0";
      assert.equal(found, `${rounds}`, `${steps} steps in ${splits}`);
    }
  }
  for (const [steps, rounds] of [[24, 8], [30, 6], [23, 0]] as const) {
    const { plan } = await multiply(gpu, { m: 300, n: 300, k: steps * depth, ...all }, {
      dtype: "f16",
      schedule: { policy: "matrix-ahead", balance: "stream-k", splits: 3 },
      sizes: "constant",
      device: softwareDevice(4),
    });
    assert.match(plan.kernel, /_streamk/);
    const found = /round \+= (\d)u/.exec(plan.passes.at(-2)!.kernel.wgsl)?.[1] ?? "0";
    assert.equal(found, `${rounds}`, plan.kernel);
  }
});

test.checked("products are the same where the device checks indices itself", async (gpu) => {
  const results = [];
  for (const [m, n, k] of SIZES) {
    const choice = { dtype: "f16", schedule: { splits: 2 } } as const;
    results.push((await multiply(gpu, { m, n, k }, choice)).result);
  }
  return results;
});

test.units("sums of f16 products whose results are f32 are stored every few products, of f16 ones they leave the units far later", async (gpu) => {
  const all = epiloguesOf("f16").at(-1)!;
  const f32 = { dtype: "f16", outDtype: "f32" } as const;
  for (const policy of policyNames(gpu, "f16")) {
    for (const [m, n, k] of [[67, 73, 45], [68, 84, 300], [68, 84, 512]] as const) {
      const { plan, result } = await multiply(
        gpu,
        { m, n, k, ...all },
        { ...f32, schedule: { policy, flush: 128 }, ...(k === 512 && { sizes: "constant" }) },
      );
      assert.ok(result instanceof Float32Array);
      assert.equal(/_stored\d+_/.test(plan.kernel), k > 128, plan.kernel);
      const { chain } = plan.arithmetic;
      if (k <= 128) assert.equal(chain, undefined);
      else assert.ok(k === 512 ? chain === 128 : chain! > 96 && chain! <= 128, `${chain}`);
    }
  }
  for (const splits of [1, 3]) {
    for (const sizes of ["constant", "uniform"] as const) {
      for (const variant of [{}, { doubleBuffer: true }, { peel: false }, { prefetch: false }]) {
        const choice = { schedule: { splits, ...variant, flush: 64 }, sizes };
        await multiply(gpu, { m: 36, n: 40, k: 1000, ...all }, { ...f32, ...choice });
      }
    }
  }
  const streamed = {
    schedule: { balance: "stream-k", splits: undefined, flush: 128 },
    device: softwareDevice(4),
  } as const;
  const { plan } = await multiply(gpu, { m: 300, n: 300, k: 640, ...all }, {
    ...f32,
    ...streamed,
  });
  assert.match(plan.kernel, /_stored\d+_.*_streamk/);
  for (
    const [k, flush, chain] of [
      [4100, undefined, 2176],
      [3000, undefined, undefined],
      [4100, 0, undefined],
    ] as const
  ) {
    const { plan } = await multiply(
      gpu,
      { m: 20, n: 24, k },
      {
        ...f32,
        schedule: {
          splits: 1,
          policy: "matrix-small",
          ...(flush === undefined ? {} : { flush }),
        },
      },
    );
    assert.equal(plan.arithmetic.chain, chain, plan.kernel);
  }
  // Results that leave one by one are added up in registers.
  const { plan: narrow } = await multiply(gpu, { m: 67, n: 73, k: 300 }, {
    ...f32,
    schedule: { flush: 128 },
  });
  assert.match(narrow.kernel, /_flush8_.*_o1/);
  assert.equal(narrow.arithmetic.chain, 128);
  // Parts of f16 results as well, whatever they are stored in.
  for (
    const [k, splits, chain] of [[17_000, 1, 16_384], [4608, 1, undefined], [
      600,
      2,
      304,
    ]] as const
  ) {
    const { plan } = await multiply(gpu, { m: 20, n: 24, k }, {
      dtype: "f16",
      schedule: { splits },
    });
    assert.doesNotMatch(plan.kernel, k > 16_384 ? /^$/ : /_flush/);
    assert.equal(plan.arithmetic.chain, chain, plan.kernel);
  }
});
