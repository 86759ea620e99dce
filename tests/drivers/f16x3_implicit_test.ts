/**
 * Implicit GEMM whose products are of halves on matrix units, by the gate: strides, dilation, odd sizes, every operation, and data that
 * halves do not hold. Dawn has the units on NVIDIA's GPUs and on the CPU with Mesa 26 (`deno task test:drivers matrix`); elsewhere there is
 * nothing to test.
 */
import assert from "#assert";
import fc from "fast-check";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import {
  operandTensors,
  type Operation,
  OPERATIONS,
  tensorShape,
} from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import type { Layout } from "../../src/tensor/layout.ts";
import { sizeModes } from "../random_axes.ts";
import { driftOf } from "../../src/problem/split_rounding.ts";
import { convolve, errsLittle, unjudged } from "../support/halves_conv.ts";
import {
  ALTERNATE,
  CHANNELS,
  eachPlace,
  MIRRORED,
  type Spoil,
  SPOILT,
  spoiltBy,
  spoiltValues,
  UNDERFLOW,
} from "../support/spoilt_operands.ts";
import { full, test } from "./driver.ts";

const BY = { algorithm: "implicit-gemm", math: "f16x3" } as const;

/** Layouts that there are halves of. */
const HALVES_LAYOUTS: readonly Layout[] = ["nhwc", "nchw"];

/** Problems whose tiles, channels and images divide nothing, and what is asked of them beside halves. */
const ODD: readonly (readonly [string, Partial<PlanRequest>])[] = [
  ["mb2ic20ih9oc12kh3ph1", { schedule: { splits: 1 } }],
  ["mb1ic35ih11oc37kh3sh2", {}],
  ["mb2ic24ih9oc16kh3sh2ph1dh1", { schedule: { splits: 2 } }],
  ["mb3ic40iw23oc9kw3pw1", {}],
  ["mb2ic16ih7oc70kh1", {}],
  ["mb17ic8ih6oc12kh3ph1", {}],
  ["mb2ic8ih10iw7oc10kh5kw3ph2pw0", {}],
  ["mb1ic8id4ih5oc8kd3kh2pd1ph0sd2", {}],
  ["mb2ic3ih23oc8kh7sh2ph3", {}],
  ["mb1ic150ih5oc24kh3ph1", { schedule: { splits: 1, flush: 64 } }],
];

for (const op of OPERATIONS) {
  test.units(`implicit GEMM in halves of odd sizes, ${op}`, async (gpu) => {
    let runs = 0;
    for (const [index, [descriptor, more]] of ODD.entries()) {
      for (
        const layout of full ? HALVES_LAYOUTS : [HALVES_LAYOUTS[index % HALVES_LAYOUTS.length]!]
      ) {
        for (const sizes of full ? ["uniform", "constant"] as const : ["constant"] as const) {
          const { plan } = await convolve(gpu, descriptor, op, { ...BY, layout, sizes, ...more });
          assert.match(plan.kernel, /^implicit_gemm_/);
          if (more.schedule?.splits !== undefined) {
            assert.equal(/_split/.test(plan.kernel), more.schedule?.splits > 1, plan.kernel);
          }
          if (more.schedule?.flush !== undefined && op === "fwd") {
            assert.equal(plan.arithmetic.chain, more.schedule?.flush);
          }
          runs++;
        }
      }
    }
    assert.ok(runs >= 5);
  });
}

test.units("implicit GEMM in halves of bindings that are in parts, and with an epilogue", async (gpu) => {
  const epilogue = { bias: true, activation: "relu" } as const;
  for (const layout of HALVES_LAYOUTS) {
    for (const descriptor of ["mb2ic20ih9oc12kh3ph1sh2", "mb2ic20ih8oc13kh3ph1"]) {
      const data = { spoil: ALTERNATE };
      await convolve(gpu, descriptor, "fwd", { ...BY, layout, epilogue });
      await convolve(gpu, descriptor, "fwd", { ...BY, layout, epilogue }, data);
    }
    const limits = { ...gpu.limits, maxStorageBufferBindingSize: 16_384 };
    const policy = "matrix-small";
    await convolve(gpu, "mb2ic20ih12oc16kh3ph1", "fwd", {
      ...BY,
      layout,
      limits,
      schedule: { policy },
    });
  }
});

/** Positive values, of which halves leave something, and none. */
const DRIFTING: readonly { readonly fill: "uniform01"; readonly spoil?: Spoil }[] = [
  { fill: "uniform01" },
  {
    fill: "uniform01",
    spoil(set, _, { first, second }) {
      for (const [which, shape] of [[0, first], [1, second]] as const) {
        let seed = which + 1;
        eachPlace(shape, (place) => {
          seed = seed * 16_807 % (2 ** 31 - 1);
          set(which, place, Math.f16round(seed / 2 ** 31));
        });
      }
    },
  },
];

test.units("implicit GEMM in f16x3 corrects each result for the truncation of as many products as it sums", async (gpu) => {
  const matrixUnits = { ...gpu.matrixUnits!, cutsOff: true };
  for (const op of OPERATIONS) {
    const channels = 96;
    const descriptor = op === "bwd-filter"
      ? "mb8ic8ih16oc6kh3"
      : `mb1ic${channels}ih6oc${channels}kh3ph1`;
    for (
      const [layout, data] of HALVES_LAYOUTS.flatMap((one) =>
        DRIFTING.map((data) => [one, data] as const)
      )
    ) {
      const run = (more: Partial<PlanRequest>) =>
        unjudged(gpu, descriptor, op, {
          ...BY,
          layout,
          ...more,
          schedule: { splits: 1, ...more.schedule },
        }, data);
      const [plain, enlarged] = [await run({}), await run({ matrixUnits })];
      const { arithmetic } = enlarged.plan;
      const { drift = 0, highs } = arithmetic;
      assert.ok(drift >= 4 && highs === "away", `${drift} ${highs}`);
      assert.equal(plain.plan.arithmetic.drift, undefined);
      const sum = (values: Float32Array, of: (index: number) => boolean) =>
        values.reduce((all, one, index) => of(index) ? all + one : all, 0);
      // Of 6 x 6 places a corner meets four taps, one in the middle all nine; all places of a gradient meet their taps.
      const cell = (index: number) =>
        layout === "nhwc" ? Math.floor(index / channels) % 36 : index % 36;
      const parts = op === "bwd-filter" ? [[() => true, drift]] as const : [
        [(index: number) => cell(index) === 0, driftOf(arithmetic, 4 * channels)],
        [(index: number) => cell(index) === 14, driftOf(arithmetic, 9 * channels)],
      ] as const;
      for (const [of, expected] of parts) {
        const ratio = sum(enlarged.result, of) / sum(plain.result, of) - 1;
        const off = Math.abs(ratio * 2 ** 23 / expected - 1);
        assert.ok(expected > 0 && off < 0.15, `${op} ${layout}: ${ratio * 2 ** 23}, ${expected}`);
      }
      if (op !== "bwd-filter") assert.ok(parts[0][1] < parts[1]![1]);
    }
  }
});

test.units("low halves are made of an image that is finer than bytes, and not of the one beside it", async (gpu) => {
  const matrixUnits = { ...gpu.matrixUnits!, cutsOff: true };
  const spoil: Spoil = (set, _, { first, second }) => {
    let i = 0;
    eachPlace(first, (place) => set(0, place, 1 + i++ * 7 % 200));
    eachPlace(second, (place) => set(1, place, 1 + i++ % 3));
    set(0, [0, 0, 0, 0], 1 + 2 ** -9);
  };
  for (const layout of HALVES_LAYOUTS) {
    const run = (more: Partial<PlanRequest>) =>
      unjudged(gpu, "mb2ic96ih6oc8kh3ph1", "fwd", {
        ...BY,
        layout,
        ...more,
        schedule: { splits: 1, ...more.schedule },
      }, { spoil });
    const [plain, made] = [(await run({})).result, (await run({ matrixUnits })).result];
    const image = plain.length / 2;
    assert.deepEqual(made.slice(image), plain.slice(image), layout);
    assert.ok(made.slice(0, image).every((value, i) => value > plain[i]!), layout);
  }
});

/** Images that are bright where no tap looks, or some do not, and dark elsewhere, and a gradient that is even. */
const UNMET: readonly (readonly [descriptor: string, bright: (y: number, x: number) => boolean])[] =
  [
    ["mb1ic8ih7oc6kh3ph1", (y) => y === 6],
    ["mb1ic8ih14oc6kh3ph2dh1", (y) => y >= 12],
    ["mb2ic8ih16oc6kh1sh2", (y, x) => y % 2 + x % 2 > 0],
  ];

test.units("a gradient's large values that no product meets say nothing of its small ones", async (gpu) => {
  for (const [descriptor, bright] of UNMET) {
    for (const layout of HALVES_LAYOUTS) {
      const spoil: Spoil = (set, _, { first, second }) => {
        eachPlace(first, (place) => {
          const [, , y, x] = place as [number, number, number, number];
          set(0, place, (bright(y, x) ? 1 : 1.2345e-12) * (1 + (7 * y + 3 * x) % 11 / 11));
        });
        eachPlace(
          second,
          (place) => set(1, place, 1 + 0.618034 * (place[2]! * 5 + place[3]!) % 1),
        );
      };
      await convolve(gpu, descriptor, "bwd-filter", { ...BY, layout }, { spoil });
    }
  }
});

test.units("what halves do not hold is summed in f32", async (gpu) => {
  const all = Object.entries({
    ...SPOILT,
    alternate: ALTERNATE,
    underflow: UNDERFLOW,
    mirrored: MIRRORED,
  });
  for (const [turn, [name, spoil]] of all.entries()) {
    for (const op of OPERATIONS) {
      for (
        const layout of full ? HALVES_LAYOUTS : [HALVES_LAYOUTS[turn % HALVES_LAYOUTS.length]!]
      ) {
        for (const stride of full ? ["", "sh2"] : [(turn >> 1) % 2 === 0 ? "" : "sh2"]) {
          const descriptor = `mb2ic${CHANNELS}ih9oc${CHANNELS}kh3ph1${stride}`;
          try {
            await errsLittle(gpu, descriptor, op, { ...BY, layout }, inside(descriptor, op, spoil));
          } catch (error) {
            throw new Error(`${name}, ${op} ${layout} ${descriptor}`, { cause: error });
          }
        }
      }
    }
  }
});

/** A spoil of as much of the operands as there is: those of a stride are smaller. */
function inside(descriptor: string, op: Operation, spoil: Spoil): Spoil {
  const problem = { ...parseDescriptor(descriptor), op };
  return (set, size, spoilt) =>
    spoil(
      (which, place, value) => {
        const shape = tensorShape(problem, operandTensors(op)[which]!);
        if (place.every((one, axis) => one < shape[axis]!)) set(which, place, value);
      },
      size,
      spoilt,
    );
}

test.units("random convolutions in halves by implicit GEMM of data of any range agree with the reference", async (gpu) => {
  const size = (min: number, max: number) => fc.integer({ min, max });
  const sizes = fc.record({
    mb: size(1, 3),
    ic: size(1, 40),
    oc: size(1, 40),
    ih: size(6, 12),
    iw: size(6, 12),
    kh: size(1, 3),
    kw: size(1, 3),
    sh: size(1, 3),
    sw: size(1, 2),
    ph: size(0, 2),
    dh: size(0, 1),
  });
  await fc.assert(
    fc.asyncProperty(
      sizes,
      fc.constantFrom(...OPERATIONS),
      fc.constantFrom(0, 1),
      sizeModes,
      spoiltValues,
      async ({ mb, ic, oc, ih, iw, kh, kw, sh, sw, ph, dh }, op, turn, sizes, values) => {
        const descriptor = `mb${mb}ic${ic}ih${ih}iw${iw}oc${oc}kh${kh}kw${kw}` +
          `sh${sh}sw${sw}ph${ph}pw1dh${dh}dw0`;
        const problem = { ...parseDescriptor(descriptor), op };
        const layout = HALVES_LAYOUTS[turn % HALVES_LAYOUTS.length]!;
        await convolve(gpu, descriptor, op, { ...BY, layout, sizes }, {
          spoil: spoiltBy(problem, values),
        });
      },
    ),
    { numRuns: full ? 300 : 24, seed: 20261126 },
  );
});

test.checked("implicit GEMM in halves is the same where the device checks indices itself", async (gpu) => {
  const spoil: Spoil = (set) => set(0, [0, 1, 2, 3], 1e30);
  const results = [];
  for (const op of OPERATIONS) {
    for (const descriptor of ["mb2ic24ih9oc12kh3ph1", "mb2ic24ih9oc12kh3ph1sh2"]) {
      const run = await convolve(gpu, descriptor, op, { ...BY, layout: "nhwc" }, { spoil });
      results.push(run.result);
    }
  }
  return results;
});
