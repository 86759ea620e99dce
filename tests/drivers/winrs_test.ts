/** WinRS on the driver at hand: filters of every size, golden cases, forced pairs and segments, small devices. */
import assert from "#assert";
import fc from "fast-check";
import { checkedPlan, checkedResult } from "../checked_plan.ts";
import { loadGoldenCases } from "../golden.ts";
import { agrees } from "../golden_conv.ts";
import { sizeModes } from "../random_axes.ts";
import { configureAs, parsePair } from "../support/winrs_figures.ts";
import {
  checkWinrs,
  filterProblem,
  filterSizes,
  randomGradients,
  SMALLEST,
  winrsRequest,
} from "../winrs_conv.ts";
import { full, test } from "./driver.ts";
import { DEFAULT_LIMITS } from "../../src/algorithms/plan.ts";
import { expectPlanned } from "../../src/algorithms/refusal.ts";
import { admissible, omegaName, OMEGAS, reduceAxes } from "../../src/algorithms/winrs/omega.ts";
import { planConfiguration } from "../../src/algorithms/winrs/plan.ts";
import { gridSegments } from "../../src/algorithms/winrs/segments.ts";
import { convProblem } from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { defined } from "../../src/defined.ts";

for (const width of [...Array.from({ length: 8 }, (_, i) => i + 2), 1]) {
  const sizes = filterSizes().filter(([, filterWidth]) => filterWidth === width);
  test(`filters of width ${width} agree with FP64: ${sizes.length} heights`, async (gpu) => {
    for (const [height] of sizes) {
      // Pipelines are shared within a width and layout, and compile for seconds.
      for (const layout of full ? LAYOUTS : [LAYOUTS[width % 3]!]) {
        await checkWinrs(gpu, { filter: [height, width], layout, schedule: { policy: SMALLEST } });
      }
    }
  });
}

const golden = loadGoldenCases();
/** A stride that leaves a remainder, groups, channels that divide nothing, padding beyond the filter. */
const FEW = ["stride2_3x3", "groups_4", "odd_channels", "wide_pad"];

for (const layout of LAYOUTS) {
  const chosen = golden.filter(({ name }) => full || FEW.includes(name));
  test(`winrs ${layout} agrees with PyTorch on ${chosen.length} cases`, async (gpu) => {
    assert.ok(chosen.length >= FEW.length);
    for (const one of chosen) {
      await agrees(gpu, one, {
        ...{ op: "bwd-filter", algorithm: "winrs", layout, policy: SMALLEST },
      });
    }
  });
}

test("every kernel agrees with FP64, alone and after another", async (gpu) => {
  for (const [index, omega] of OMEGAS.entries()) {
    // The larger ones take seconds to compile on a CPU.
    if (!full && omega.alpha === 16 && omega.n !== 9) continue;
    const width = Math.max(2, omega.n);
    const others = admissible(width).filter((one) => one !== omega && (full || one.alpha < 8));
    for (const second of [undefined, ...others.slice(0, full ? undefined : 1)]) {
      const pair = [omega, ...(second ? [second] : [])].map(omegaName).join(",");
      for (const layout of full ? LAYOUTS : [LAYOUTS[index % 3]!]) {
        const rows = omega.rows?.n ?? 2;
        await checkWinrs(gpu, {
          filter: [rows, width],
          layout,
          pair,
          schedule: { policy: SMALLEST },
        });
      }
    }
  }
});

test("nested kernels agree with FP64 where tiles reach over edges, in segments, parts, groups and steps", async (gpu) => {
  const [two, three] = ["a4n2r3xa4n2r3", "a4n3r2xa4n3r2"];
  const [twoFive, threeSix] = ["a4n2r3xa8n4r5", "a4n3r2xa8n3r6"];
  const problems = [
    { pair: two, inputSize: [8, 11], filterSize: [4, 2], paddingBegin: [3, 1] },
    { pair: two, inputSize: [5, 4], filterSize: [2, 2], splits: 3, flush: 8 },
    { pair: `${two},a4n2r3`, inputSize: [9, 12], filterSize: [2, 6], paddingBegin: [1, 5] },
    { pair: three, inputSize: [7, 7], filterSize: [3, 3], paddingBegin: [1, 1], groups: 2 },
    { pair: `${three},a8n3r6`, inputSize: [6, 13], filterSize: [3, 3], paddingBegin: [2, 0] },
    { pair: three, inputSize: [5, 6, 7], filterSize: [2, 3, 3], stride: [2, 1, 1] },
    { pair: three, inputSize: [9, 14], filterSize: [3, 3], splits: 40 },
    // Slices in two kernels.
    {
      pair: `${threeSix},${three}`,
      inputSize: [7, 15],
      filterSize: [3, 3],
      paddingBegin: [1, 1],
      splits: 3,
    },
    { pair: twoFive, inputSize: [8, 11], filterSize: [4, 4], paddingBegin: [3, 1], flush: 8 },
    { pair: `${threeSix},${two}`, inputSize: [10, 13], filterSize: [6, 6], groups: 2 },
    { pair: threeSix, inputSize: [5, 6, 9], filterSize: [2, 3, 3], stride: [2, 1, 1] },
    {
      pair: threeSix,
      inputSize: [7, 8],
      filterSize: [3, 3],
      paddingBegin: [1, 1],
      policy: "8x8x8_8x8",
    },
    // Threads load vectors of channels.
    {
      pair: three,
      inputSize: [7, 8],
      filterSize: [3, 3],
      paddingBegin: [1, 1],
      policy: "8x8x8_8x8",
    },
  ];
  for (
    const [index, { pair, splits, flush, policy = SMALLEST, ...sizes }] of problems.entries()
  ) {
    // Whole steps that share a tile and a row, whose edges all threads agree on, and others.
    for (const batch of [16, 3]) {
      const problem = convProblem({
        op: "bwd-filter",
        batch,
        inChannels: 12,
        outChannels: policy === SMALLEST ? 10 : 12,
        ...sizes,
      });
      const more = {
        pair,
        schedule: defined({ policy, splits, flush }),
      };
      const layouts = full ? LAYOUTS : [batch === 16 ? "nhwc" as const : LAYOUTS[index % 3]!];
      for (const layout of layouts) {
        const size = batch === 16 ? "constant" : "uniform";
        const kernel = await checkWinrs(gpu, {
          problem,
          layout,
          sizes: size,
          ...more,
        });
        if (layout === "nhwc") assert.equal(/_wide/.test(kernel), policy !== SMALLEST, kernel);
      }
    }
  }
});

test("as many segments as are asked for give the same gradient", async (gpu) => {
  for (const [index, splits] of [1, 2, 3, 5, 12, 40].entries()) {
    for (const layout of full ? LAYOUTS : [LAYOUTS[index % 3]!]) {
      const more = { layout, schedule: { splits, policy: SMALLEST }, pair: "a4n3r2" };
      await checkWinrs(gpu, { filter: [3, 3], ...more });
      await checkWinrs(gpu, { filter: [3, 3], ...more, pair: "a8n3r6,a4n3r2" });
    }
  }
});

test("policies, baked sizes and bindings in parts agree with FP64", async (gpu) => {
  const most = gpu.limits.maxComputeInvocationsPerWorkgroup;
  const runs = [
    { pair: "a4n3r2", schedule: { policy: "32x16x8_4x4" }, sizes: "constant" },
    { pair: "a4n3r2", schedule: { policy: "64x32x8_8x16" } },
    { pair: "a4n3r2", schedule: { policy: "16x16x4_4x4a" }, sizes: "constant" },
    { pair: "a8n3r6", schedule: { policy: "32x32x4_8x8" } },
    { pair: "a8n3r6", schedule: { policy: "32x16x7_8x8" } },
    {
      pair: "a4n3r2",
      schedule: { policy: SMALLEST },
      limits: { ...gpu.limits, maxStorageBufferBindingSize: 1024 },
    },
  ] as const;
  for (const [index, run] of runs.entries()) {
    if (most < 1024 && index === 0) continue;
    for (const layout of full ? LAYOUTS : [LAYOUTS[index % 3]!]) {
      const kernel = await checkWinrs(gpu, { filter: [3, 3], layout, ...run });
      assert.ok(kernel.includes(run.schedule.policy), kernel);
      if ("limits" in run) assert.match(kernel, /_parts/);
    }
  }
});

test("sums stored in parts agree with FP64, whatever the last part's length", async (gpu) => {
  const runs = [
    { pair: "a4n3r2", schedule: { flush: 4 } },
    { pair: "a4n3r2", schedule: { flush: 16, splits: 1 } },
    { pair: "a8n3r6,a4n3r2", schedule: { flush: 8, splits: 1 } },
    { pair: "a4n3r2", schedule: { flush: 8, policy: "16x8x4_4x4", splits: 2 } },
    { pair: "a4n3r2", schedule: { flush: 12, policy: "16x8x4_4x4", splits: 1 } },
    {
      pair: "a8n3r6",
      schedule: { flush: 32, policy: "32x32x4_8x8", splits: 1 },
      sizes: "constant",
    },
  ] as const;
  for (const [index, run] of runs.entries()) {
    for (const layout of full ? LAYOUTS : [LAYOUTS[index % 3]!]) {
      const problem = parseDescriptor("mb3ic12ih7iw13oc10kh3ph1", "bwd-filter");
      const kernel = await checkWinrs(gpu, {
        problem,
        layout,
        ...run,
        schedule: { policy: SMALLEST, ...run.schedule },
      });
      assert.match(kernel, /_partial_/);
    }
  }
});

test("whole steps of images, with sizes in the text, agree with FP64", async (gpu) => {
  const sizes = { op: "bwd-filter", inChannels: 10, outChannels: 6, groups: 2 } as const;
  const problems = [
    convProblem({
      ...sizes,
      batch: 8,
      inputSize: [6, 11],
      filterSize: [3, 3],
      paddingBegin: [2, 1],
      stride: [2, 1],
    }),
    convProblem({ ...sizes, batch: 16, inputSize: [15], filterSize: [3], paddingBegin: [2] }),
    convProblem({
      ...sizes,
      batch: 4,
      inputSize: [4, 5, 9],
      filterSize: [2, 3, 3],
      paddingBegin: [1, 1, 1],
    }),
  ];
  for (const problem of problems) {
    for (const layout of ["nhwc", "chwn"] as const) {
      for (const splits of [1, 4]) {
        const run = {
          problem,
          layout,
          schedule: { splits, policy: SMALLEST },
          sizes: "constant",
        } as const;
        await checkWinrs(gpu, { ...run, pair: "a4n3r2" });
      }
    }
  }
});

test("vectors of channels, and tiles that are counted, agree with FP64", async (gpu) => {
  const sizes = { op: "bwd-filter", filterSize: [3, 3], paddingBegin: [1, 1] } as const;
  const problem = convProblem({
    ...sizes,
    batch: 8,
    groups: 2,
    inChannels: 40,
    outChannels: 24,
    inputSize: [6, 13],
  });
  const odd = { ...problem, batch: 3 };
  for (const pair of ["a4n3r2", "a2n1r1"]) {
    for (const mode of ["constant", "uniform"] as const) {
      for (const [one, splits] of [[problem, 1], [problem, 12], [odd, 2]] as const) {
        const run = {
          problem: one,
          layout: "nhwc",
          pair,
          schedule: { splits },
          sizes: mode,
        } as const;
        assert.match(
          await checkWinrs(gpu, { ...run, schedule: { ...run.schedule, policy: "16x16x4_8x8" } }),
          /_wide/,
        );
      }
    }
  }
  // Seven tiles in two columns of segments: four and three.
  const pair = parsePair("a4n3r2", 3, 13);
  const [height, width] = problem.outputSize as [number, number];
  const configuration = configureAs(problem, pair, gridSegments(height, width, pair, 2, 2));
  for (const layout of ["nhwc", "chwn"] as const) {
    const request = winrsRequest(gpu, problem, { layout, schedule: { policy: SMALLEST } });
    const plan = expectPlanned(planConfiguration(request, "constant", configuration));
    assert.match(plan.passes[0]!.kernel.wgsl, /step_tile == tile_count/);
    await checkedPlan(gpu, plan, request);
  }
});

test("segments of unlike height and width sum each row and tile once, of one kernel and of two", async (gpu) => {
  const problem = parseDescriptor("mb2ic6ih11iw17oc5kh3ph1", "bwd-filter");
  const { tiledRows, filterWidth, outputWidth, outputRows } = reduceAxes(problem);
  for (
    const [name, rows, columns, last, heights] of [
      ["a4n3r2", 3, 4, 1 / 2, "5,5,1"],
      ["a8n3r6,a4n3r2", 2, 2, 2 / 9, "9,2"],
      // Tiles of two rows: four, and two of which the last is half full.
      ["a4n3r2xa4n3r2,a2n1r1", 2, 3, 1 / 2, "8,3"],
    ] as const
  ) {
    const pair = parsePair(name, filterWidth, outputWidth, undefined, tiledRows);
    const grid = gridSegments(outputRows, outputWidth, pair, rows, columns, true, last);
    assert.equal(
      grid.rowStarts.slice(1).map((end, row) => end - grid.rowStarts[row]!).join(),
      heights,
    );
    const configuration = configureAs(problem, pair, grid);
    for (
      const [layout, mode] of [
        ["nhwc", "constant"],
        ["nchw", "constant"],
        ...LAYOUTS.map((layout) => [layout, "uniform"] as const),
      ] as const
    ) {
      const request = winrsRequest(gpu, problem, {
        layout,
        schedule: { policy: SMALLEST },
        sizes: mode,
      });
      const plan = expectPlanned(planConfiguration(request, mode, configuration));
      await checkedPlan(gpu, plan, request);
    }
  }
});

test("devices with the least limits get policies that work", async (gpu) => {
  for (const pair of ["a2n1r1", "a4n2r3", "a8n4r5", ...(full ? ["a16n8r9"] : [])]) {
    const width = pair === "a16n8r9" ? 8 : 4;
    for (const layout of full ? LAYOUTS : (["nchw"] as const)) {
      const run = { filter: [2, width], layout, pair, limits: DEFAULT_LIMITS } as const;
      await checkWinrs(gpu, run);
    }
  }
});

test("without images or channels of one side the gradient is zeros or empty", async (gpu) => {
  const sizes = { inputSize: [5, 6], filterSize: [3, 3], op: "bwd-filter" as const };
  const noImages = convProblem({ ...sizes, batch: 0, inChannels: 2, outChannels: 3 });
  for (const layout of LAYOUTS) {
    const request = winrsRequest(gpu, noImages, { layout, schedule: { policy: SMALLEST } });
    const { result } = await checkedResult(gpu, request);
    assert.deepEqual([...result], new Array(54).fill(0));
  }
  const noInput = convProblem({ ...sizes, batch: 2, inChannels: 0, outChannels: 3 });
  const request = winrsRequest(gpu, noInput, { schedule: { policy: SMALLEST } });
  const { plan } = await checkedResult(gpu, request);
  assert.deepEqual(plan.passes, []);
});

test("the same plan gives the same bits", async (gpu) => {
  for (const layout of LAYOUTS) {
    const more = { layout, schedule: { splits: 6, policy: SMALLEST } };
    const request = winrsRequest(gpu, filterProblem([3, 3]), more);
    const { result } = await checkedResult(gpu, request);
    assert.deepEqual((await checkedResult(gpu, request)).result, result);
  }
});

/** Of the axes at most one has stride or dilation, so that another may be the width. */
const gradients = randomGradients({
  filter: fc.integer({ min: 1, max: 4 }),
  steps: [[1, 1], [1, 1], [2, 1], [1, 2], [3, 2]],
  batch: 9,
  channels: 9,
});

test("random problems of one to three axes agree with FP64", async (gpu) => {
  const property = fc.asyncProperty(
    gradients,
    fc.constantFrom(...LAYOUTS),
    fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
    sizeModes,
    async (problem, layout, splits, sizes) => {
      await checkWinrs(gpu, {
        problem,
        layout,
        schedule: defined({ policy: SMALLEST, splits }),
        sizes,
      });
    },
  );
  await fc.assert(property, { numRuns: full ? 150 : 10, seed: 20261120 });
});
