/** WinRS with transformed data in f16 on the driver at hand, where it has f16, against the FP64 reference. */
import assert from "#assert";
import fc from "fast-check";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import { admissible, omegaName, OMEGAS, parseOmega } from "../../src/algorithms/winrs/omega.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import { type ConvProblem, convProblem } from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { convSubject } from "../../src/run/conv_subject.ts";
import { fillOperands } from "../../src/run/operands.ts";
import type { HostOperands } from "../../src/run/subject.ts";
import type { FillKind } from "../../src/tensor/fill.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { loadGoldenCases } from "../golden.ts";
import { agrees } from "../golden_conv.ts";
import { sizeModes } from "../random_axes.ts";
import { filterProblem, randomGradients, SMALLEST } from "../winrs_conv.ts";
import { full, test } from "./driver.ts";

/** The six kernels that the paper ported to f16. */
const PORTED = ["a4n3r2", "a8n3r6", "a8n5r4", "a8n7r2", "a16n9r8", "a16n7r10"];

/**
 * A request for kernels in f16. Those of α = 16 err more on data that cancels than results of f16 may, and of f32 results
 * those of α = 8: they are planned where a bound is allowed, and pass on positive data.
 */
function halfRequest(
  gpu: GpuDevice,
  problem: ConvProblem,
  more: Partial<PlanRequest>,
): PlanRequest {
  return convRequest(gpu, problem, {
    algorithm: "winrs",
    dtype: "f16",
    ...(errsMuch(more) ? { maxBoundRatio: 1e9 } : {}),
    ...more,
    schedule: {
      halfTile: true,
      ...(more.matrixUnits === undefined ? { policy: SMALLEST } : {}),
      ...more.schedule,
    },
  });
}

function errsMuch({ pair = "", outDtype }: Partial<PlanRequest>): boolean {
  return pair.includes("a16") || outDtype === "f32";
}

function fillOf(request: PlanRequest): FillKind {
  return errsMuch(request) ? "uniform01" : "uniform11";
}

/** Runs a request on seeded data, and holds its kernels' names and its result against FP64. */
async function checkHalf(
  gpu: GpuDevice,
  request: PlanRequest,
  operands: HostOperands = fillOperands(convSubject(request), fillOf(request), 5),
): Promise<string> {
  const { plan } = await checkedResult(gpu, request, operands);
  assert.match(plan.kernel, /^winrs_f16_.*_half_tile/);
  return plan.kernel;
}

/** {@linkcode checkHalf} of data of 1e-3, of 1e3 and near the largest f16. */
async function checkRanges(gpu: GpuDevice, request: PlanRequest): Promise<void> {
  const made = fillOperands(convSubject(request), "uniform11", 5);
  const scaled = (data: ArrayLike<number>, factor: number) =>
    Float16Array.from(data, (value) => value * factor);
  // Gradients are loss-scaled against what their results overflow by.
  for (const [range, gradient] of [[1e-3, 1], [1e3, 1e-2], [6.5e4, 1e-2]] as const) {
    const [input, output] = [scaled(made.input!, range), scaled(made.output!, gradient)];
    await checkHalf(gpu, request, { input, output });
  }
}

for (const name of PORTED) {
  test.half(`${name} in f16 agrees with FP64, alone and after another`, async (gpu) => {
    const omega = OMEGAS.find((one) => omegaName(one) === name)!;
    const others = admissible(omega.n).map(omegaName).filter((one) => one !== name);
    const layouts = full ? LAYOUTS : [LAYOUTS[PORTED.indexOf(name) % 3]!];
    for (const layout of layouts) {
      for (const sizes of ["uniform", "constant"] as const) {
        for (const height of [1, 3]) {
          const problem = filterProblem([height, omega.n]);
          const run = { layout, sizes, pair: name } as const;
          await checkHalf(gpu, halfRequest(gpu, problem, run));
          if (sizes === "constant" || height === 1) continue;
          const pair = `${name},${others[0]}`;
          await checkHalf(
            gpu,
            halfRequest(gpu, problem, { ...run, pair, schedule: { splits: 3 } }),
          );
          if (omega.alpha === 16) continue;
          await checkHalf(gpu, halfRequest(gpu, problem, { ...run, outDtype: "f32" }));
        }
      }
    }
  });
}

test.half("golden cases rounded to f16 agree with FP64", async (gpu) => {
  const few = ["stride2_3x3", "groups_4", "odd_channels", "wide_pad"];
  const chosen = loadGoldenCases().filter(({ name }) => full || few.includes(name));
  assert.ok(chosen.length >= few.length);
  for (const [index, golden] of chosen.entries()) {
    for (const layout of full ? LAYOUTS : [LAYOUTS[index % 3]!]) {
      const kernel = await agrees(gpu, golden, {
        ...{ op: "bwd-filter", algorithm: "winrs", layout, dtype: "f16", policy: SMALLEST },
        variant: { halfTile: true },
      });
      assert.match(kernel, /^winrs_f16_.*_half_tile/);
    }
  }
});

test.half("data of 1e-3, of 1e3 and near the largest f16 neither vanishes nor overflows in a tile", async (gpu) => {
  for (const pair of ["a4n3r2", "a8n3r6", "a8n5r4", "a8n7r2"]) {
    const problem = filterProblem([2, OMEGAS.find((one) => omegaName(one) === pair)!.n]);
    await checkRanges(gpu, halfRequest(gpu, problem, { layout: "nhwc", pair }));
  }
});

test.half("policies, parts of sums and deep tiles in f16 agree with FP64", async (gpu) => {
  const problem = parseDescriptor("g2mb8ic24ih7iw13oc20kh3ph1", "bwd-filter");
  const runs = [
    { pair: "a4n3r2", schedule: { policy: "64x32x8_8x16" } },
    { pair: "a4n3r2", schedule: { policy: "16x8x4_4x4", splits: 2, flush: 8 } },
    { pair: "a4n3r2", schedule: { policy: "16x8x16_4x4", flush: 16, splits: 1 } },
    {
      pair: "a8n3r6",
      schedule: { policy: "32x32x4_8x8", flush: 32, splits: 1 },
      sizes: "constant",
    },
    { pair: "a8n3r6,a4n3r2", schedule: { policy: "32x16x7_8x8", flush: 8 } },
  ] as const;
  for (const [index, run] of runs.entries()) {
    for (const layout of full ? LAYOUTS : [LAYOUTS[index % 3]!]) {
      const kernel = await checkHalf(gpu, halfRequest(gpu, problem, { layout, ...run }));
      assert.ok(kernel.includes(run.schedule.policy), kernel);
    }
  }
});

const gradients = randomGradients({
  filter: fc.constantFrom(3, 5, 6, 7),
  steps: [[1, 1], [1, 1], [2, 1], [1, 2]],
  batch: 5,
  channels: 7,
});

test.half("random problems of one to three axes in f16 agree with FP64", async (gpu) => {
  const property = fc.asyncProperty(
    gradients,
    fc.constantFrom(...LAYOUTS),
    fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
    sizeModes,
    async (problem, layout, splits, sizes) => {
      const more = { layout, sizes, ...(splits === undefined ? {} : { schedule: { splits } }) };
      await checkHalf(gpu, halfRequest(gpu, problem, more));
    },
  );
  await fc.assert(property, { numRuns: full ? 150 : 12, seed: 20261122 });
});

/** A problem whose groups' channels are whole vectors, as matrix units take them. */
function wide(problem: ConvProblem, batch = problem.batch): ConvProblem {
  const { inChannels, outChannels } = problem;
  return { ...problem, batch, inChannels: 8 * inChannels, outChannels: 8 * outChannels };
}

/** A request for matrix units. */
function unitRequest(
  gpu: GpuDevice,
  problem: ConvProblem,
  more: Partial<PlanRequest>,
): PlanRequest {
  const matrixUnits = gpu.matrixUnits!;
  return halfRequest(gpu, problem, { layout: "nhwc", matrixUnits, ...more });
}

/** Holds a request's result on matrix units against FP64, and gives the kernels' names. */
async function checkUnits(gpu: GpuDevice, problem: ConvProblem, more: Partial<PlanRequest>) {
  const kernel = await checkHalf(gpu, unitRequest(gpu, problem, more));
  assert.match(kernel, /_mma\d+x\d+x\d+_.*_nhwc_/);
  return kernel;
}

for (const name of ["a4n2r3", ...PORTED]) {
  test.units(`${name} on matrix units agrees with FP64, alone and after another`, async (gpu) => {
    const omega = OMEGAS.find((one) => omegaName(one) === name)!;
    const other = admissible(omega.n).map(omegaName).find((one) => one !== name);
    // Steps that share a tile and a row are of whole batches; the other batch divides nothing.
    for (const batch of [7, 16]) {
      const problem = wide(filterProblem([2, omega.n]), batch);
      for (const sizes of full ? ["uniform", "constant"] as const : ["constant"] as const) {
        await checkUnits(gpu, problem, { sizes, pair: name });
        await checkUnits(gpu, problem, {
          sizes,
          pair: `${name},${other}`,
          schedule: { splits: 3 },
        });
        const parts = await checkUnits(gpu, problem, {
          sizes,
          pair: name,
          schedule: { splits: 1, flush: 16 },
        });
        assert.match(parts, /_partial_/);
      }
    }
  });
}

test.units("gradients on matrix units whose patches reach over edges, in groups and strides, agree with FP64", async (gpu) => {
  const shape = { op: "bwd-filter", batch: 8, inChannels: 32, outChannels: 48 } as const;
  const problems = [
    { pair: "a8n3r6", inputSize: [5, 30], filterSize: [3, 3], paddingBegin: [1, 1] },
    { pair: "a4n3r2", inputSize: [5, 30], filterSize: [3, 3], paddingBegin: [2, 2], groups: 2 },
    { pair: "a8n5r4", inputSize: [9, 21], filterSize: [3, 5], stride: [2, 1], dilation: [2, 1] },
    { pair: "a8n7r2", inputSize: [31], filterSize: [7], paddingBegin: [6] },
    { pair: "a4n2r3", inputSize: [3, 4, 12], filterSize: [2, 3, 6], paddingBegin: [1, 1, 5] },
  ];
  for (const { pair, ...problem } of problems) {
    await checkUnits(gpu, convProblem({ ...shape, ...problem }), { pair, sizes: "constant" });
  }
});

test.units("data of 1e-3, of 1e3 and near the largest f16 neither vanishes nor overflows on matrix units", async (gpu) => {
  for (const pair of ["a4n2r3", "a4n3r2", "a8n5r4"]) {
    const problem = wide(filterProblem([2, parseOmega(pair).n]));
    await checkRanges(gpu, unitRequest(gpu, problem, { pair }));
  }
});

test.units("random gradients on matrix units agree with FP64", async (gpu) => {
  const splits = fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined });
  const property = fc.asyncProperty(
    gradients,
    splits,
    sizeModes,
    async (problem, splits, sizes) => {
      const more = { sizes, ...(splits === undefined ? {} : { schedule: { splits } }) };
      await checkHalf(gpu, unitRequest(gpu, wide(problem), more));
    },
  );
  await fc.assert(property, { numRuns: full ? 60 : 8, seed: 20261123 });
});
