/**
 * Products of f32 in halves on matrix units, by the gate: on sizes that divide nothing, with every transpose and epilogue, and on
 * data that halves do not hold. Dawn has the units on NVIDIA's GPUs and on the CPU with Mesa 26 (`deno task test:drivers matrix`);
 * elsewhere there is nothing to test.
 */
import assert from "#assert";
import fc from "fast-check";
import { softwareDevice } from "../../src/algorithms/device/software.ts";
import { planGemm } from "../../src/algorithms/gemm/plan.ts";
import { driftFactor } from "../../src/problem/split_rounding.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import { matrixPolicies } from "../../src/kernels/matrix_policies.ts";
import { matrixUnitFor } from "../../src/kernels/matrix_units.ts";
import { type GemmProblem, gemmProblem, TRANSPOSES } from "../../src/problem/gemm_problem.ts";
import { printGemm } from "../../src/problem/gemm_suite.ts";
import { checkAgainst, computeReference } from "../../src/run/check.ts";
import { gemmRequest, gemmSubject } from "../../src/run/gemm_subject.ts";
import { fillOperands } from "../../src/run/operands.ts";
import { runPlan } from "../../src/run/executor.ts";
import type { HostData, Planning } from "../../src/run/subject.ts";
import { epiloguesOf } from "../gemm_matrix.ts";
import { sizeModes } from "../random_axes.ts";
import { full, test } from "./driver.ts";

type Sizes = Partial<GemmProblem> & Pick<GemmProblem, "m" | "n" | "k">;
/** Puts other values into A or B: rows of A, columns of B, each `k` long. */
type Spoil = (set: Setter) => void;
type Setter = (operand: "a" | "b", place: number, depth: number, value: number) => void;

/**
 * Runs a product once and holds all of it against FP64, without what it gets back for a drift that the device has none of; `spoil`
 * leaves low halves everywhere.
 */
async function multiply(
  gpu: GpuDevice,
  init: Sizes,
  choice: Partial<Planning> = {},
  { fill = "uniform11", spoil }: {
    fill?: "uniform11" | "uniform01" | "normal";
    spoil?: Spoil;
  } = {},
) {
  const problem = gemmProblem(init);
  const { m, n, k, batch, transpose } = problem;
  const plan = planGemm(
    gemmRequest(problem, { dtype: "f32" }, {
      math: "f16x3",
      sizes: "uniform",
      device: softwareDevice(4),
      limits: gpu.limits,
      ...(gpu.matrixUnits && { matrixUnits: gpu.matrixUnits }),
      ...choice,
      schedule: { policy: "matrix-small", ...choice.schedule },
    }),
  );
  const subject = gemmSubject(problem, { dtype: "f32" });
  const operands = fillOperands(subject, fill, 7);
  spoil?.((operand, place, depth, value) => {
    const [count, other] = operand === "a" ? [m, transpose[0]] : [n, transpose[1]];
    const inner = operand === "a" ? other === "n" : other === "t";
    const at = (batch - 1) * count * k + (inner ? place * k + depth : depth * count + place);
    operands[operand]![at] = value;
  });
  const { result } = await runPlan(gpu, plan, operands, subject.result, 2);
  const reference = await computeReference({ subject, operands, mode: "full", seed: 1 });
  const { drift, ...own } = plan.arithmetic;
  const drifted = drift === undefined
    ? result
    : (result as Float32Array).map((one) => one / driftFactor({ drift }));
  const checked = checkAgainst(reference, drifted as HostData, own);
  const what = `${printGemm(problem)} ${plan.kernel}`;
  assert.equal(checked.verdict, "pass", `${what}: ${checked.message}`);
  if (m * n * k > 0) assert.match(plan.kernel, /^gemm_f32_f16x3_\d+x\d+x\d+_mma/);
  return { plan, result: result as Float32Array, accuracy: checked.accuracy };
}

test.units("every policy of products in halves agrees with the reference", async (gpu) => {
  const sizes = [[67, 73, 45], [68, 84, 52], [136, 72, 80]] as const;
  const epilogues = epiloguesOf("f32");
  let turn = 0;
  const unit = matrixUnitFor({ storage: "f16", accumulate: "f32" }, gpu.matrixUnits)!;
  const policies = matrixPolicies(unit, gpu.matrixUnits!.lanes, true);
  assert.ok(policies.length > 4);
  for (const [index, { name: policy }] of policies.entries()) {
    // Each transpose with half of the policies.
    for (const [way, transpose] of TRANSPOSES.entries()) {
      if (!full && (way + index) % 2 === 0) continue;
      for (const [m, n, k] of full ? sizes : [sizes[turn % sizes.length]!]) {
        for (const splits of full ? [1, 3] : [turn % 2 === 0 ? 1 : 3]) {
          const epilogue = epilogues[turn++ % epilogues.length];
          const { plan } = await multiply(gpu, { m, n, k, transpose, ...epilogue }, {
            schedule: { policy, splits },
          });
          assert.ok(plan.notes.some((note) => note.startsWith("f16x3: ")), plan.notes.join("\n"));
          assert.equal(plan.arithmetic.math, "f16x3");
        }
      }
    }
  }
});

test.units("small, long, empty and batched products in halves, and the loop's variants", async (gpu) => {
  const all = epiloguesOf("f32").at(-1)!;
  for (const transpose of ["nn", "tt"] as const) {
    for (const [m, n, k] of [[1, 70, 65], [70, 1, 65], [1, 1, 100], [34, 33, 1]] as const) {
      await multiply(gpu, { m, n, k, transpose, ...all });
    }
    await multiply(gpu, { m: 33, n: 36, k: 40, batch: 3, transpose, ...all });
    await multiply(gpu, { m: 36, n: 36, k: 1000, transpose }, { schedule: { splits: 2 } });
    await multiply(gpu, { m: 5, n: 6, k: 0, transpose, ...all }, {
      schedule: { policy: "tiny" },
    });
  }
  for (const sizes of ["constant", "uniform"] as const) {
    for (const variant of [{ doubleBuffer: true }, { prefetch: false }]) {
      await multiply(gpu, { m: 40, n: 44, k: 300 }, { sizes, schedule: { ...variant } });
    }
    // A pass of its own finishes sums, so that tiles are never whole in one place and split in another.
    const { plan } = await multiply(gpu, { m: 165, n: 167, k: 80, batch: 2, ...all }, {
      sizes,
      schedule: { balance: "stream-k" },
    });
    assert.doesNotMatch(plan.kernel, /_streamk/);
  }
});

test.units("sums in halves are stored every 512 products, and err by less than 7e-7", async (gpu) => {
  const matrixUnits = { ...gpu.matrixUnits!, cutsOff: true };
  for (const fill of ["uniform01", "normal"] as const) {
    const { plan, accuracy } = await multiply(gpu, { m: 36, n: 40, k: 2000 }, {
      schedule: { splits: 1 },
      ...{ matrixUnits },
    }, { fill });
    assert.match(plan.kernel, /_stored\d+_/);
    assert.equal(plan.arithmetic.chain, 512);
    if (fill === "uniform01") assert.ok(accuracy.mare! <= 7e-7, `${accuracy.mare}`);
  }
  // Results that leave one by one move to registers, and so do those of units that are not known to cut off.
  for (const [n, units] of [[33, matrixUnits], [36, gpu.matrixUnits!]] as const) {
    const { plan } = await multiply(gpu, { m: 35, n, k: 600 }, {
      schedule: { splits: 1 },
      matrixUnits: units,
    });
    assert.match(plan.kernel, /_flush\d+_/);
    assert.equal(plan.arithmetic.chain, n === 33 ? 512 : 112);
  }
  // What users ask for, and parts that steps and splits do not divide.
  const { plan: whole } = await multiply(gpu, { m: 20, n: 24, k: 700 }, {
    schedule: { flush: 0, splits: 1 },
    ...{ matrixUnits },
  });
  assert.doesNotMatch(whole.kernel, /_stored|_flush/);
  for (
    const [k, more] of [[700, { schedule: { flush: 64 } }], [4100, { schedule: { splits: 3 } }], [
      2049,
      {},
    ]] as const
  ) {
    for (const transpose of ["nn", "tt"] as const) {
      const sizes = { m: 37, n: 44, k, batch: 2, transpose };
      const { plan } = await multiply(gpu, sizes, { matrixUnits, ...more });
      assert.match(plan.kernel, /_stored\d+_/);
    }
  }
  // What is beside a row of f32 is in f32 too, and errs no more than halves do.
  const spoil: Spoil = (set) => set("a", 1, 3, NaN);
  const long = { m: 33, n: 34, k: 20_000 };
  const { plan } = await multiply(gpu, long, { schedule: { splits: 1 } }, {
    fill: "uniform01",
    spoil,
  });
  assert.match(plan.passes.at(-1)!.kernel.name, /_flagged_chains/);
});

test.units("products in f16x3 correct for the truncation of matrix units, except where sums may be exact", async (gpu) => {
  const matrixUnits = { ...gpu.matrixUnits!, cutsOff: true };
  for (const sizes of ["constant", "uniform"] as const) {
    for (const transpose of ["nn", "tt"] as const) {
      const run = (cutsOff: boolean, spoil?: Spoil) =>
        multiply(gpu, { m: 36, n: 40, k: 512, transpose }, {
          schedule: { splits: 1 },
          ...{ sizes },
          ...(cutsOff && { matrixUnits }),
        }, { fill: "uniform01", ...(spoil && { spoil }) });
      const [plain, enlarged] = [await run(false), await run(true)];
      const { drift = 0, highs } = enlarged.plan.arithmetic;
      assert.ok(drift >= 12 && highs === "away");
      assert.equal(plain.plan.arithmetic.drift, undefined);
      const sum = (values: Float32Array) => values.reduce((all, one) => all + one, 0);
      const ratio = sum(enlarged.result) / sum(plain.result) - 1;
      assert.ok(Math.abs(ratio / (drift * 2 ** -23) - 1) < 0.05, `${ratio} of ${drift}`);
      // Row 1 of A and column 2 of B have eleven bits.
      const eleven: Spoil = (set) => {
        for (let d = 0; d < 512; d++) {
          set("a", 1, d, 1 + d % 64);
          set("b", 2, d, 32 - d % 61);
        }
      };
      const [exact, alike] = [await run(false, eleven), await run(true, eleven)];
      assert.equal(alike.result[40 + 2], exact.result[40 + 2]);
      assert.notEqual(alike.result[40 + 3], exact.result[40 + 3]);
      // Eleven bits over more places: no high half leaves anything, but low ones are made.
      const fine: Spoil = (set) => {
        for (let d = 0; d < 512; d++) {
          set("a", 1, d, 2 ** -(d % 9) * (1 + (d * 37 % 1024) / 1024));
          set("b", 2, d, 1 + d % 32);
        }
      };
      const [held, back] = [await run(false, fine), await run(true, fine)];
      const gained = back.result[40 + 2]! / held.result[40 + 2]! - 1;
      assert.ok(Math.abs(gained / (drift * 2 ** -23) - 1) < 0.2, `${gained} of ${drift}`);
    }
  }
});

/** What halves do not hold, at place 1 of A or column 2 of B. */
const SPOILT: Readonly<Record<string, (k: number) => Spoil>> = {
  "an infinity in A": () => (set) => set("a", 1, 3, Infinity),
  "an infinity in B": () => (set) => set("b", 2, 3, -Infinity),
  "NaN in both": () => (set) => (set("a", 1, 0, NaN), set("b", 2, 5, NaN)),
  "infinity times zero": (k) => (set) => {
    set("a", 1, 3, Infinity);
    for (let d = 0; d < k; d++) set("b", 2, d, 0);
  },
  "values that underflow beside one that meets zeros": (k) => (set) => {
    set("a", 1, 3, 1e30);
    for (let column = 0; column < 9; column++) set("b", column, 3, 0);
    for (let d = 4; d < k; d++) set("a", 1, d, (d % 7 + 1) * 1e-20);
  },
  "one huge value": () => (set) => set("a", 1, 3, 3e38 / 70),
  "one huge value beside zeros": (k) => (set) => {
    for (let d = 0; d < k; d++) if (d !== 3) set("a", 1, d, 0);
    set("a", 1, 3, 1e37);
  },
  "a huge value that meets a zero": (k) => (set) => {
    set("a", 1, 3, 1e30);
    for (let column = 0; column < 9; column++) set("b", column, 3, 0);
    for (let d = 4; d < k; d++) set("a", 1, d, (d % 7 + 1) * 1e-3);
  },
  "1e-30 to 1e30": (k) => (set) => {
    for (let d = 0; d < k; d++) set("a", 1, d, (d % 3 + 1) * 10 ** (60 * d / k - 30));
  },
  "1e-30 to 1e30 against 1e30 to 1e-30": (k) => (set) => {
    for (let d = 0; d < k; d++) {
      set("a", 1, d, (d % 3 + 1) * 10 ** (60 * d / k - 30));
      set("b", 2, d, (d % 5 - 2.5) * 10 ** (30 - 60 * d / k));
    }
  },
  "subnormal numbers": (k) => (set) => {
    for (let d = 0; d < k; d++) set("a", 1, d, (d % 5 - 2) * 1e-40);
  },
  // Not small enough to be flagged: what is left of them is right where units and conversions keep subnormal halves alone.
  "values whose low halves are subnormal": (k) => (set) => {
    for (let d = 0; d < k; d++) set("a", 1, d, (1 + (d * 0.618) % 1) * 2 ** -15);
    set("a", 1, 3, 1);
    for (let column = 0; column < 40; column++) set("b", column, 3, 0);
  },
  "tiny rows": (k) => (set) => {
    for (let d = 0; d < k; d++) set("a", 1, d, (d % 5 - 2.3) * 1e-33);
  },
  "huge rows against tiny columns": (k) => (set) => {
    for (let d = 0; d < k; d++) set("a", 1, d, (d % 5 - 2.3) * 1e36);
    for (let d = 0; d < k; d++) set("b", 2, d, (d % 3 - 1.3) * 1e-25);
  },
  "zeros": (k) => (set) => {
    for (let d = 0; d < k; d++) set("a", 1, d, 0), set("b", 2, d, -0);
  },
  "powers of two": (k) => (set) => {
    for (let d = 0; d < k; d++) set("a", 1, d, 2 ** (d % 40 - 20)), set("b", 2, d, 2 ** -(d % 9));
  },
  "sums that cancel": (k) => (set) => {
    for (let d = 0; d < k; d++) set("a", 1, d, d % 2 === 0 ? 1 + 2 ** -20 : -1);
    for (let d = 0; d < k; d++) set("b", 2, d, 1 - d * 2 ** -23);
  },
  "1.5 units above halves' rounding": (k) => (set) => {
    for (let d = 0; d < k; d++) set("a", 1, d, 2047.5 + d / 1024), set("b", 2, d, 4095 / 4096);
  },
};

test.units("what halves do not hold is computed in f32", async (gpu) => {
  let turn = 0;
  for (const [name, spoil] of Object.entries(SPOILT)) {
    for (const splits of [1, 2]) {
      const transpose = TRANSPOSES[turn++ % TRANSPOSES.length]!;
      const k = turn % 2 === 0 ? 72 : 70;
      const sizes = { m: 36, n: 40, k, transpose, batch: turn % 3 === 0 ? 2 : 1 };
      try {
        await multiply(gpu, sizes, { schedule: { splits } }, { spoil: spoil(k) });
      } catch (error) {
        throw new Error(`${name}, ${splits} splits`, { cause: error });
      }
    }
  }
});

test.units("rows beyond halves are those of f32, bit for bit", async (gpu) => {
  // What a device makes of subnormal numbers is its own.
  const spoil: Spoil = (set) => {
    for (let d = 0; d < 70; d++) set("a", 1, d, (d % 5 - 2) * 1e-40), set("b", 2, d, d * 1e28);
    set("a", 3, 5, NaN);
    set("a", 4, 6, -Infinity);
    for (let d = 0; d < 70; d++) set("a", 5, d, (d - 30) * 1e-30);
  };
  const [m, n] = [70, 36];
  const run = async (choice: Partial<Planning>) => {
    const problem = gemmProblem({ m, n, k: 70, alpha: 0.5 });
    const device = softwareDevice(4);
    const planning = { sizes: "uniform", limits: gpu.limits, device, ...choice } as const;
    const matrixUnits = gpu.matrixUnits!;
    const plan = planGemm(gemmRequest(problem, { dtype: "f32" }, { ...planning, matrixUnits }));
    const subject = gemmSubject(problem, { dtype: "f32" });
    const operands = fillOperands(subject, "normal", 3);
    spoil((operand, place, depth, value) => {
      operands[operand]![operand === "a" ? place * 70 + depth : depth * n + place] = value;
    });
    return (await runPlan(gpu, plan, operands, subject.result, 2)).result;
  };
  const halves = await run({ math: "f16x3", schedule: { policy: "matrix-small" } });
  const whole = await run({ math: "f32", schedule: { policy: "tiny", splits: 1 } });
  for (const row of [1, 3, 4, 5]) {
    const of = (result: typeof halves) => result.slice(row * n, (row + 1) * n);
    assert.deepEqual(of(halves), of(whole), `row ${row}`);
  }
  // The third tile of rows has nothing beyond, so it is in halves.
  assert.notDeepEqual(halves.slice(64 * n), whole.slice(64 * n));
});

test.units("random products in halves of data of any range agree with the reference", async (gpu) => {
  const special = fc.constantFrom(0, -0, 1, -(2 ** -126), 1e-30, 65504, 2 ** 100, 1e30);
  const value = fc.oneof(
    { weight: 4, arbitrary: special },
    { weight: 4, arbitrary: fc.integer({ min: -60, max: 60 }).map((e) => 1.2345 * 2 ** e) },
    { weight: 1, arbitrary: fc.constantFrom(Infinity, -Infinity, NaN) },
  );
  const spoilt = fc.array(
    fc.tuple(fc.constantFrom("a", "b"), fc.nat(1000), fc.nat(1000), value),
    { maxLength: 12 },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(
        // Of more than are spoilt some are finite.
        fc.integer({ min: 13, max: 80 }),
        fc.integer({ min: 13, max: 80 }),
        fc.integer({ min: 1, max: 150 }),
      ),
      fc.constantFrom(...TRANSPOSES),
      fc.constantFrom(1, 1, 2),
      sizeModes,
      spoilt,
      async ([m, n, k], transpose, splits, sizes, values) => {
        await multiply(gpu, { m, n, k, transpose }, { schedule: { splits }, sizes }, {
          spoil: (set) => {
            for (const [operand, place, depth, value] of values) {
              set(operand as "a" | "b", place % (operand === "a" ? m : n), depth % k, value);
            }
          },
        });
      },
    ),
    { numRuns: full ? 400 : 24, seed: 20261122 },
  );
});

test.checked("products in halves are the same where the device checks indices itself", async (gpu) => {
  const spoil: Spoil = (set) => set("a", 1, 3, 1e30);
  return [(await multiply(gpu, { m: 68, n: 84, k: 52 }, {}, { spoil })).result];
});
