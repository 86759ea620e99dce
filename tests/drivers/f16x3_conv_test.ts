/**
 * Winograd in separate passes whose products are of halves on matrix units, by the gate: odd sizes, every operation and layout, and data
 * that halves do not hold. Dawn has the units on NVIDIA's GPUs and on the CPU with Mesa 26 (`deno task test:drivers matrix`); elsewhere
 * there is nothing to test.
 */
import assert from "#assert";
import fc from "fast-check";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import { OPERATIONS } from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { sizeModes } from "../random_axes.ts";
import { convolve, errsLittle, unjudged } from "../support/halves_conv.ts";
import {
  ALTERNATE,
  CHANNELS,
  MIRRORED,
  type Spoil,
  SPOILT,
  spoiltBy,
  spoiltValues,
  UNDERFLOW,
} from "../support/spoilt_operands.ts";
import { full, test } from "./driver.ts";

/** Problems whose tiles, channels and images divide nothing, and what is asked of them beside halves. */
const ODD: readonly (readonly [string, Partial<PlanRequest>])[] = [
  ["mb2ic20ih9oc12kh3ph1", { tile: "F(2x2,3x3)" }],
  ["mb1ic35ih11oc37kh3", { tile: "F(6x6,3x3)" }],
  ["mb2ic21ih17oc19kh3ph1", { tile: "F(5x5,3x3)" }],
  ["mb2ic18ih16oc23kh3ph1", { tile: "F(7x7,3x3)" }],
  ["mb3g3ic27ih7oc15kh3ph1", {}],
  ["mb2ic18ih10iw7oc10kh5kw3ph2pw0", {}],
  ["mb2ic5iw23oc9kw3pw1", {}],
  ["mb5ic150ih6oc5kh3ph1", { schedule: { splits: 1 } }],
  ["mb2ic70ih6oc5kh3ph1", { schedule: { splits: 1, flush: 32 } }],
  ["mb2ic150ih5oc140kh3ph1", { schedule: { splits: 2 } }],
  ["mb7ic11ih8oc11kh3ph1", { maxWorkspaceBytes: 160_000 }],
  ["mb2ic13ih6oc7kh1", { tile: "F(1x1,1x1)" }],
];

for (const op of OPERATIONS) {
  test.units(`Winograd in halves of odd sizes, ${op}`, async (gpu) => {
    for (const [index, [descriptor, more]] of ODD.entries()) {
      const { tile, ...rest } = more;
      // Of a gradient tiles are as large as the filter.
      const turned = tile === undefined
        ? {}
        : { tile: tile.replace(/(.*)\((.*),(.*)\)/, "$1($3,$2)") };
      const choice = op === "bwd-filter" ? { ...rest, ...turned } : more;
      for (const layout of full ? LAYOUTS : [LAYOUTS[index % LAYOUTS.length]!]) {
        for (const sizes of full ? ["uniform", "constant"] as const : ["uniform"] as const) {
          const { plan } = await convolve(gpu, descriptor, op, { layout, sizes, ...choice });
          if (rest.schedule?.splits === 2 && op !== "bwd-filter") {
            assert.match(plan.kernel, /_split/);
          }
          if (rest.schedule?.splits === 1 && op === "fwd") {
            assert.match(plan.kernel, /_flush\d+_/);
            assert.equal(plan.arithmetic.chain, rest.schedule?.flush ?? 112);
          }
          if (rest.maxWorkspaceBytes !== undefined) {
            assert.ok(plan.passes.length > 8, `${plan.passes.length} passes are of chunks`);
          }
        }
      }
    }
  });
}

test.units("Winograd in halves of bindings that are in parts, and with an epilogue", async (gpu) => {
  const epilogue = { bias: true, activation: "relu" } as const;
  for (const layout of LAYOUTS) {
    await convolve(gpu, "mb2ic20ih9oc12kh3ph1", "fwd", { layout, epilogue, sizes: "constant" });
    const limits = { ...gpu.limits, maxStorageBufferBindingSize: 16_384 };
    await convolve(gpu, "mb2ic20ih12oc16kh3ph1", "fwd", {
      layout,
      limits,
      schedule: { policy: "matrix-small" },
    });
  }
});

test.units("Winograd in f16x3 corrects for the truncation of matrix units", async (gpu) => {
  const matrixUnits = { ...gpu.matrixUnits!, cutsOff: true };
  for (const op of OPERATIONS) {
    for (const layout of full ? LAYOUTS : ["nhwc", "chwn"] as const) {
      for (const sizes of ["constant", "uniform"] as const) {
        // Of a gradient sums are over tiles; of more than 512 products they move to registers.
        const descriptors = op === "bwd-filter"
          ? ["mb8ic5ih16oc6kh3ph1"]
          : ["mb1ic96ih6oc96kh3ph1", ...(op === "fwd" ? ["mb1ic530ih4oc8kh3ph1"] : [])];
        for (const descriptor of descriptors) {
          const run = (more: Partial<PlanRequest>) =>
            unjudged(gpu, descriptor, op, {
              layout,
              sizes,
              ...more,
              schedule: { splits: 1, ...more.schedule },
            }, {
              fill: "uniform01",
            });
          const [plain, enlarged] = [await run({}), await run({ matrixUnits })];
          const { kernel, arithmetic: { chain, drift = 0, highs } } = enlarged.plan;
          assert.ok(drift >= 4 && highs === "away", `${drift} ${highs}`);
          if (descriptor.includes("ic530")) {
            assert.ok(chain === 512 && /_flush\d+_/.test(kernel), kernel);
          }
          assert.equal(plain.plan.arithmetic.drift, undefined);
          const sum = (values: Float32Array) => values.reduce((all, one) => all + one, 0);
          const ratio = sum(enlarged.result) / sum(plain.result) - 1;
          assert.ok(Math.abs(ratio / (drift * 2 ** -23) - 1) < 0.1, `${ratio} of ${drift}`);
        }
      }
    }
  }
});

test.units("what halves do not hold of transformed data is summed in f32", async (gpu) => {
  const all = Object.entries({
    ...SPOILT,
    alternate: ALTERNATE,
    underflow: UNDERFLOW,
    mirrored: MIRRORED,
  });
  for (const [turn, [name, spoil]] of all.entries()) {
    for (const [index, op] of OPERATIONS.entries()) {
      for (const layout of full ? LAYOUTS : [LAYOUTS[(turn + index) % LAYOUTS.length]!]) {
        // Rows of results that are whole vectors, and such as are not.
        for (const size of [8, 9]) {
          try {
            // Of a gradient the second operand is that of the output, as large as the input here.
            const descriptor = `mb2ic${CHANNELS}ih${size}oc${CHANNELS}kh3ph1`;
            await errsLittle(gpu, descriptor, op, { layout }, spoil);
          } catch (error) {
            throw new Error(`${name}, ${op} ${layout} ${size}`, { cause: error });
          }
        }
      }
    }
  }
});

test.units("what halves do not hold is summed in f32 of chunks, groups, splits, one axis and bindings in parts", async (gpu) => {
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      for (const spoil of full ? [ALTERNATE, UNDERFLOW, MIRRORED] : [ALTERNATE]) {
        const run = (descriptor: string, more: Partial<PlanRequest> = {}) =>
          errsLittle(gpu, descriptor, op, { layout, ...more }, spoil);
        const { passes } = await run("mb7ic11ih8oc11kh3ph1", {
          maxWorkspaceBytes: 160_000,
        });
        assert.ok(passes.length > 8, `${passes.length} passes are of chunks`);
        await run("mb2ic8ih8oc8kh3ph1", { sizes: "constant" });
        await run("mb2g3ic15ih7oc9kh3ph1");
        await run("mb2ic8iw23oc8kw3pw1");
        await run("mb2ic70ih5oc9kh3ph1", { schedule: { splits: 2 } });
        const limits = { ...gpu.limits, maxStorageBufferBindingSize: 16_384 };
        await run("mb2ic20ih12oc16kh3ph1", { limits, schedule: { policy: "32x32x16_16x16m" } });
      }
    }
  }
  const epilogue = { bias: true, activation: "relu" } as const;
  for (const layout of LAYOUTS) {
    await convolve(gpu, "mb2ic8ih8oc8kh3ph1", "fwd", { layout, epilogue }, { spoil: ALTERNATE });
  }
});

test.units("random convolutions in halves of data of any range agree with the reference", async (gpu) => {
  const sizes = fc.record({
    mb: fc.integer({ min: 1, max: 3 }),
    ic: fc.integer({ min: 4, max: 40 }),
    oc: fc.integer({ min: 4, max: 40 }),
    ih: fc.integer({ min: 6, max: 12 }),
    iw: fc.integer({ min: 6, max: 12 }),
    kh: fc.integer({ min: 1, max: 3 }),
    kw: fc.integer({ min: 2, max: 3 }),
    ph: fc.integer({ min: 0, max: 2 }),
    g: fc.constantFrom(1, 1, 2),
  });
  await fc.assert(
    fc.asyncProperty(
      sizes,
      fc.constantFrom(...OPERATIONS),
      fc.constantFrom(...LAYOUTS),
      sizeModes,
      spoiltValues,
      async ({ mb, ic, oc, ih, iw, kh, kw, ph, g }, op, layout, sizes, values) => {
        const descriptor = `mb${mb}g${g}ic${g * ic}ih${ih}iw${iw}oc${
          g * oc
        }kh${kh}kw${kw}ph${ph}pw1`;
        const problem = { ...parseDescriptor(descriptor), op };
        await convolve(gpu, descriptor, op, { layout, sizes }, {
          spoil: spoiltBy(problem, values),
        });
      },
    ),
    { numRuns: full ? 300 : 24, seed: 20261126 },
  );
});

test.checked("convolutions in halves are the same where the device checks indices itself", async (gpu) => {
  const spoil: Spoil = (set) => set(0, [0, 1, 2, 3], 1e30);
  const results = [];
  for (const op of OPERATIONS) {
    const run = await convolve(gpu, "mb2ic20ih9oc12kh3ph1", op, { layout: "nhwc" }, { spoil });
    results.push(run.result);
  }
  return results;
});
