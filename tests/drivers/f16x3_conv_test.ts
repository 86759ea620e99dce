/**
 * Winograd in separate passes whose products are of halves on matrix units, by the gate: odd sizes, every operation and layout, and data
 * that halves do not hold. Dawn has the units on NVIDIA's GPUs and on the CPU with Mesa 26 (`deno task test:drivers matrix`); elsewhere
 * there is nothing to test.
 */
import assert from "#assert";
import fc from "fast-check";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import {
  type ConvProblem,
  operandTensors,
  OPERATIONS,
  resultTensor,
  tensorShape,
} from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import type { Plan } from "../../src/algorithms/plan.ts";
import { referenceConv, type ReferenceResult } from "../../src/reference/reference.ts";
import { planConv } from "../../src/algorithms/planner.ts";
import { convSubject, referenceInputs } from "../../src/run/conv_subject.ts";
import { runPlan } from "../../src/run/run_plan.ts";
import { fillOperands } from "../../src/run/operands.ts";
import type { FillKind } from "../../src/tensor/fill.ts";
import { LAYOUTS, stridesInLayout } from "../../src/tensor/layout.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { loadGoldenCases } from "../golden.ts";
import { runGolden } from "../golden_conv.ts";
import { sizeModes } from "../random_axes.ts";
import { full, openMatrixUnits } from "./driver.ts";

const algorithm = "winograd2d-nonfused";

/** Puts a value into the first or the second operand: at an image or filter, a channel, and along the axes. */
type Setter = (which: 0 | 1, place: readonly number[], value: number) => void;
type Spoil = (set: Setter, size: number, problem: Spoilt) => void;
/** What a spoil knows of its problem. */
interface Spoilt {
  readonly op: ConvProblem["op"];
  readonly first: readonly number[];
  readonly second: readonly number[];
}

/** Runs a request once and holds all of it against FP64. */
async function convolve(
  gpu: GpuDevice,
  descriptor: string,
  op: ConvProblem["op"],
  more: Partial<PlanRequest> = {},
  { fill = "uniform11", spoil }: { fill?: FillKind; spoil?: Spoil } = {},
) {
  const problem = { ...parseDescriptor(descriptor), op };
  const request = convRequest(gpu, problem, {
    algorithm,
    math: "f16x3",
    ...(gpu.matrixUnits && { matrixUnits: gpu.matrixUnits }),
    ...more,
  });
  const operands = fillOperands(convSubject(request), fill, 7);
  spoil?.(
    (which, place, value) => {
      const name = operandTensors(op)[which]!;
      const layout = name === "filter" ? request.filterLayout : request.layout;
      const strides = stridesInLayout(tensorShape(problem, name), layout);
      operands[name]![place.reduce((at, one, axis) => at + one * strides[axis]!, 0)] = value;
    },
    problem.inputSize[0]!,
    {
      op,
      first: tensorShape(problem, operandTensors(op)[0]!),
      second: tensorShape(problem, operandTensors(op)[1]!),
    },
  );
  const checked = await checkedResult(gpu, request, operands);
  assert.match(checked.plan.kernel, /^winograd2d_nonfused_\w+_f32_f16x3_m/);
  assert.equal(checked.plan.arithmetic.math, "f16x3");
  return { ...checked, request, operands };
}

Deno.test("Winograd in halves agrees with PyTorch on the golden cases", async () => {
  using gpu = await openMatrixUnits();
  if (gpu === undefined) return;
  let runs = 0;
  for (const [index, golden] of loadGoldenCases().entries()) {
    const { stride, dilation, filterSize } = golden.problems.fwd;
    if (filterSize.length > 2 || [...stride, ...dilation].some((one) => one !== 1)) continue;
    for (const [turn, op] of OPERATIONS.entries()) {
      for (const layout of full ? LAYOUTS : [LAYOUTS[(index + turn) % LAYOUTS.length]!]) {
        const run = { op, algorithm, layout, math: "f16x3" } as const;
        const { verdict, message, kernel } = await runGolden(gpu, golden, run);
        assert.equal(verdict, "pass", `${golden.name} with ${kernel}: ${message}`);
        assert.match(kernel, /_f16x3_/);
        runs++;
      }
    }
  }
  assert.ok(runs >= 30, `${runs} cases`);
});

/** Problems whose tiles, channels and images divide nothing, and what is asked of them beside halves. */
const ODD: readonly (readonly [string, Partial<PlanRequest>])[] = [
  ["mb2ic20ih9oc12kh3ph1", { tile: "F(2x2,3x3)" }],
  ["mb1ic35ih11oc37kh3", { tile: "F(6x6,3x3)" }],
  ["mb3g3ic27ih7oc15kh3ph1", {}],
  ["mb2ic18ih10iw7oc10kh5kw3ph2pw0", {}],
  ["mb2ic5iw23oc9kw3pw1", {}],
  ["mb5ic150ih6oc5kh3ph1", { splits: 1 }],
  ["mb2ic150ih5oc140kh3ph1", { splits: 2 }],
  ["mb7ic11ih8oc11kh3ph1", { maxWorkspaceBytes: 160_000 }],
  ["mb2ic13ih6oc7kh1", { tile: "F(1x1,1x1)" }],
];

for (const op of OPERATIONS) {
  Deno.test(`Winograd in halves of odd sizes, ${op}`, async () => {
    using gpu = await openMatrixUnits();
    if (gpu === undefined) return;
    for (const [index, [descriptor, more]] of ODD.entries()) {
      const { tile: _, ...rest } = more;
      // Of a gradient tiles are as large as the filter.
      const choice = op === "bwd-filter" ? rest : more;
      for (const layout of full ? LAYOUTS : [LAYOUTS[index % LAYOUTS.length]!]) {
        for (const sizes of full ? ["uniform", "constant"] as const : ["uniform"] as const) {
          const { plan } = await convolve(gpu, descriptor, op, { layout, sizes, ...choice });
          if (rest.splits === 2 && op !== "bwd-filter") assert.match(plan.kernel, /_split/);
          if (rest.splits === 1 && op === "fwd") assert.match(plan.kernel, /_flush\d+_/);
          if (rest.maxWorkspaceBytes !== undefined) {
            assert.ok(plan.passes.length > 8, `${plan.passes.length} passes are of chunks`);
          }
        }
      }
    }
  });
}

Deno.test("Winograd in halves of bindings that are in parts, and with an epilogue", async () => {
  using gpu = await openMatrixUnits();
  if (gpu === undefined) return;
  const epilogue = { bias: true, activation: "relu" } as const;
  for (const layout of LAYOUTS) {
    await convolve(gpu, "mb2ic20ih9oc12kh3ph1", "fwd", { layout, epilogue, sizes: "constant" });
    const limits = { ...gpu.limits, maxStorageBufferBindingSize: 16_384 };
    await convolve(gpu, "mb2ic20ih12oc16kh3ph1", "fwd", { layout, limits, policy: "matrix-small" });
  }
});

/** Puts a value into all places of a channel of the first operand. */
function fillChannel(
  set: Setter,
  [image, channel, size]: readonly [number, number, number],
  value: (place: number) => number,
): void {
  for (let i = 0; i < size * size; i++) {
    set(0, [image, channel, Math.floor(i / size), i % size], value(i));
  }
}

/** The same of all of an image's channels. */
function fillImage(set: Setter, image: number, size: number, value: (place: number) => number) {
  for (let channel = 0; channel < CHANNELS; channel++) {
    fillChannel(set, [image, channel, size], value);
  }
}

const CHANNELS = 6;

/** What halves do not hold; places are of the first operand, images or filters first. */
const SPOILT: Readonly<Record<string, Spoil>> = {
  // What a filter's infinities and NaN make of padding is left open, so they lie in its middle.
  "an infinity": (set) => set(0, [0, 1, 2, 3], Infinity),
  "NaN in both": (set) => (set(0, [1, 0, 2, 3], NaN), set(1, [1, 2, 1, 1], NaN)),
  "an infinity in the second operand": (set) => set(1, [1, 2, 1, 1], -Infinity),
  "one huge value in an image": (set) => set(0, [0, 1, 5, 5], 1e30),
  "a huge value that meets zeros": (set) => {
    set(0, [0, 1, 5, 5], 1e25);
    for (let k = 0; k < CHANNELS; k++) {
      for (let i = 0; i < 9; i++) set(1, [k, 1, Math.floor(i / 3), i % 3], 0);
    }
  },
  "dots in black": (set, size) =>
    fillImage(set, 0, size, (i) => i % 40 === 0 ? 1e5 : (i % 7 - 3) * 1e-3),
  "channels of unlike scale": (set, size) => {
    for (let channel = 0; channel < CHANNELS; channel++) {
      for (const image of [0, 1]) {
        fillChannel(set, [image, channel, size], (i) => (i % 7 - 3.1) * 10 ** (4 * channel - 8));
      }
    }
  },
  "images of unlike scale": (set, size) => fillImage(set, 1, size, (i) => (i % 7 - 3.1) * 1e-20),
  "a tiny image": (set, size) => fillImage(set, 1, size, (i) => (i % 7 - 3.1) * 1e-33),
  "zeros": (set, size) => fillImage(set, 0, size, () => 0),
};

/** Every other channel is dark, and where it is bright the other operand has nothing to meet it. */
const ALTERNATE: Spoil = (set, size, { op, first, second }) => {
  const along = (place: readonly number[]) => place[2]! + 5 * place[3]!;
  eachPlace(first, (place) => {
    const bright = place[1]! % 2 === 0;
    set(0, place, (bright ? 1 : 1e-9) * (1 + (place[0]! + 2 * place[1]! + along(place)) % 4));
  });
  eachPlace(second, (place) => {
    const bright = (op === "bwd-data" ? place[0]! : place[1]!) % 2 === 0;
    const rest = op === "bwd-filter" ? 1e-7 : 0;
    set(1, place, bright ? rest : 1 + (place[0]! + along(place) + size) % 3);
  });
};

/** A channel that is as bright as can be meets zeros; of the others nothing is left once multiplied by its scale. */
const UNDERFLOW: Spoil = (set, _, { op, first, second }) => {
  eachPlace(first, (place) => {
    const bright = op === "bwd-filter" ? place[0] === 0 : place[1] === 1;
    set(0, place, (bright ? 1e38 : 1e-12) * (1 + (place[1]! * 7 + place[2]! * 3 + place[3]!) % 3));
  });
  eachPlace(second, (place) => {
    const met = op === "fwd" ? place[1] === 1 : op === "bwd-data" ? place[0] === 1 : place[0] === 0;
    set(1, place, met ? 0 : 1 + (place[0]! + place[2]! * 2 + place[3]!) % 3);
  });
};

/** The same of the second operand: what is bright in it meets zeros. */
const MIRRORED: Spoil = (set, _, { op, first, second }) => {
  const met = (place: readonly number[], own: boolean) =>
    op === "bwd-filter" || own && op === "bwd-data" ? place[0] === 1 : place[1] === 1;
  eachPlace(first, (place) => {
    const value = 1 + (place[0]! + place[1]! + place[2]! * 2 + place[3]!) % 3;
    set(0, place, met(place, false) ? 0 : value);
  });
  eachPlace(second, (place) => {
    const value = 1 + (place[0]! * 7 + place[2]! * 3 + place[3]!) % 5;
    set(1, place, (met(place, true) ? 1e10 : 1) * value);
  });
};

/** Calls with every place of a tensor of four axes. */
function eachPlace(shape: readonly number[], call: (place: readonly number[]) => void): void {
  const count = shape.reduce((all, one) => all * one, 1);
  for (let i = 0; i < count; i++) {
    let rest = i;
    const place = shape.toReversed().map((size) => {
      const digit = rest % size;
      rest = (rest - digit) / size;
      return digit;
    });
    call(place.toReversed());
  }
}

/** The largest error of a result, by the largest Σ|a||b| of its image (or filter) and channel, in units of roundoff. */
function largestError(
  { values, magnitudes, shape }: ReferenceResult,
  result: Float32Array,
  strides: readonly number[],
): number {
  const planes = new Map<number, { error: number; most: number }>();
  let index = 0;
  eachPlace(shape, (place) => {
    const at = place.reduce((sum, one, axis) => sum + one * strides[axis]!, 0);
    const key = place[0]! * shape[1]! + place[1]!;
    const plane = planes.get(key) ?? { error: 0, most: 0 };
    if (Number.isFinite(values[index]!) && magnitudes[index]! < 3e38) {
      plane.error = Math.max(plane.error, Math.abs(result[at]! - values[index]!));
      plane.most = Math.max(plane.most, magnitudes[index]!);
    }
    planes.set(key, plane);
    index++;
  });
  return Math.max(
    ...[...planes.values()].map(({ error, most }) => error === 0 ? 0 : error / most * 2 ** 24),
  );
}

/** What F(4x4,3x3) in f32 errs by, in units of roundoff of a plane's largest Σ|a||b|. */
const USUAL = 8;

/** A request in halves errs little more than one in f32, whatever its data. */
async function errsLittle(
  gpu: GpuDevice,
  descriptor: string,
  op: ConvProblem["op"],
  more: Partial<PlanRequest>,
  spoil: Spoil,
): Promise<Plan> {
  const halves = await convolve(gpu, descriptor, op, more, { spoil });
  const { problem, layout, filterLayout } = halves.request;
  // Infinities and NaN spread over its tiles, which the gate would fail.
  const { policy: _, ...plain } = halves.request;
  const whole = await runPlan(
    gpu,
    planConv({ ...plain, math: "f32" }),
    halves.operands,
    convSubject(halves.request).result,
    1,
  );
  const reference = await referenceConv(
    problem,
    referenceInputs(problem, halves.operands, halves.request),
    { workers: 1 },
  );
  const strides = stridesInLayout(
    reference.shape,
    resultTensor(op) === "filter" ? filterLayout : layout,
  );
  const error = (result: Float32Array) => largestError(reference, result, strides);
  const [mine, theirs] = [error(halves.result), error(whole.result as Float32Array)];
  // An infinity makes whole tiles of f32 NaN.
  const allowed = 4 * Math.max(Number.isNaN(theirs) ? USUAL : theirs, 1.5);
  assert.ok(mine <= allowed, `${mine} u, f32 has ${theirs}`);
  return halves.plan;
}

Deno.test("what halves do not hold of transformed data is summed in f32", async () => {
  using gpu = await openMatrixUnits();
  if (gpu === undefined) return;
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

Deno.test("what halves do not hold is summed in f32 of chunks, groups, splits, one axis and bindings in parts", async () => {
  using gpu = await openMatrixUnits();
  if (gpu === undefined) return;
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
        await run("mb2ic70ih5oc9kh3ph1", { splits: 2 });
        const limits = { ...gpu.limits, maxStorageBufferBindingSize: 16_384 };
        await run("mb2ic20ih12oc16kh3ph1", { limits, policy: "32x32x16_16x16m" });
      }
    }
  }
  const epilogue = { bias: true, activation: "relu" } as const;
  for (const layout of LAYOUTS) {
    await convolve(gpu, "mb2ic8ih8oc8kh3ph1", "fwd", { layout, epilogue }, { spoil: ALTERNATE });
  }
});

Deno.test("random convolutions in halves of data of any range agree with the reference", async () => {
  using gpu = await openMatrixUnits();
  if (gpu === undefined) return;
  const value = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(0, -0, 1, -(2 ** -126), 1e-30, 65504, 2 ** 60) },
    { weight: 4, arbitrary: fc.integer({ min: -40, max: 40 }).map((e) => 1.2345 * 2 ** e) },
    { weight: 1, arbitrary: fc.constantFrom(Infinity, -Infinity, NaN) },
  );
  const part = fc.nat(1000);
  const spoilt = fc.array(
    fc.tuple(fc.constantFrom(0 as const, 1 as const), part, part, part, part, value),
    { maxLength: 10 },
  );
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
      spoilt,
      async ({ mb, ic, oc, ih, iw, kh, kw, ph, g }, op, layout, sizes, values) => {
        const descriptor = `mb${mb}g${g}ic${g * ic}ih${ih}iw${iw}oc${
          g * oc
        }kh${kh}kw${kw}ph${ph}pw1`;
        const problem = { ...parseDescriptor(descriptor), op };
        await convolve(gpu, descriptor, op, { layout, sizes }, {
          spoil: (set) => {
            for (const [which, a, b, c, d, value] of values) {
              if (which === 1 && !Number.isFinite(value)) continue;
              const shape = tensorShape(problem, operandTensors(op)[which]!);
              set(which, [a, b, c, d].map((one, axis) => one % shape[axis]!), value);
            }
          },
        });
      },
    ),
    { numRuns: full ? 300 : 24, seed: 20261126 },
  );
});

Deno.test("convolutions in halves are the same where the device checks indices itself", async () => {
  using gpu = await openMatrixUnits();
  using checked = await openMatrixUnits(true);
  if (gpu === undefined || checked === undefined) return;
  for (const op of OPERATIONS) {
    const results = [];
    for (const device of [gpu, checked]) {
      const spoil: Spoil = (set) => set(0, [0, 1, 2, 3], 1e30);
      const run = await convolve(device, "mb2ic20ih9oc12kh3ph1", op, { layout: "nhwc" }, { spoil });
      results.push(run.result);
    }
    assert.deepEqual(results[0], results[1]);
  }
});
