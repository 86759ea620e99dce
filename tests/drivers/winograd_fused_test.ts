/** Fused Winograd on the driver at hand: threads, parts of sums, epilogues, layouts of sums, edges, random problems. */
import assert from "#assert";
import fc from "fast-check";
import { DEFAULT_LIMITS } from "../../src/algorithms/plan.ts";
import { planConv, tryPlanConv } from "../../src/algorithms/planner.ts";
import { isRefusal } from "../../src/algorithms/refusal.ts";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import { convResult } from "../../src/run/conv_subject.ts";
import { runPlan } from "../../src/run/executor.ts";
import { H200 } from "../../src/algorithms/device/h200.ts";
import { type ConvProblem, convProblem } from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { ACTIVATIONS } from "../../src/problem/activations.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { checkedResult, convRequest, operandsFor } from "../checked_plan.ts";
import { goldenCase } from "../golden.ts";
import { randomAxes, randomSizes, sizeModes } from "../random_axes.ts";
import { full, test } from "./driver.ts";
import { ALGORITHMS, OPS, requestFor, SMALLEST } from "./winograd_fused.ts";

/** How threads of a slice lie and copy: each choice is text of its own. */
const THREADS = {
  "exchanged rows, of squares of threads, twice as many along columns, and three of them": [
    ["winograd2d", "nhwc", "32x16x4_8x4"],
    ["winograd2d", "nhwc", "32x32x4_8x4"],
    ["winograd2d", "nhwc", "32x24x4_8x8"],
  ],
  "filters copied two rows at once, by some of the threads, and in three rounds": [
    ["winograd1d", "nchw", "16x16x4_4x8", "F(2,3)"],
    ["winograd1d", "nchw", "24x64x4_12x8", "F(4,3)"],
    ["winograd1d", "nchw", "40x16x4_20x8", "F(2,3)"],
  ],
  "threads that are no whole warps: five by eight, ten by eight, and four by twelve": [
    ["winograd2d", "nhwc", "40x32x4_8x4"],
    ["winograd1d", "nchw", "80x64x4_8x8", "F(2,3)"],
    ["winograd1d", "chwn", "16x48x4_4x4", "F(2,3)"],
  ],
} as const;

for (const [what, choices] of Object.entries(THREADS)) {
  test(`${what}, agree with the reference`, async (gpu) => {
    // Two tiles of output channels and more, the last one not full.
    const problem = parseDescriptor("mb2ic10ih6iw20oc72kh3ph1");
    for (const [index, [algorithm, layout, policy, tile]] of choices.entries()) {
      const sizes = index % 2 === 0 ? "constant" as const : "uniform" as const;
      const choice = { algorithm, layout, schedule: { policy }, ...(tile && { tile }) };
      const request = requestFor(gpu, problem, { sizes, ...choice });
      const { maxComputeInvocationsPerWorkgroup: most } = gpu.limits;
      const planned = tryPlanConv(request);
      // SwiftShader's workgroups are small.
      if (isRefusal(planned) && most < 1024) continue;
      const { plan } = await checkedResult(gpu, request);
      assert.match(plan.kernel, new RegExp(`_${policy}_`));
    }
  });
}

test("sums stored in parts are whole, and the epilogue follows the last part", async (gpu) => {
  const problems = randomSizes({
    // Filters of other lengths are kernels of their own, which take seconds to compile on a CPU.
    axes: randomAxes({ more: 7, stride: 1, dilation: 1 })
      .map((axes) => axes.slice(0, 2).map((axis) => ({ ...axis, filter: 3 }))),
    batch: fc.integer({ min: 1, max: 5 }),
    groups: fc.constantFrom(1, 1, 2),
    groupIn: fc.integer({ min: 1, max: 40 }),
    groupOut: fc.integer({ min: 1, max: 12 }),
  });
  let stored = 0;
  await fc.assert(
    fc.asyncProperty(
      problems,
      fc.constantFrom(...OPS),
      fc.constantFrom(...LAYOUTS),
      fc.constantFrom("16x8x4_4x4", "32x32x4_8x8"),
      fc.constantFrom(1, 4, 8, 20),
      fc.constantFrom(...ACTIVATIONS),
      fc.constantFrom({}, { maxStorageBufferBindingSize: 1024 }),
      sizeModes,
      async (init, op, layout, policy, flush, activation, limits, sizes) => {
        const problem = convProblem({ ...init, op });
        const algorithm = problem.filterSize.length === 1 ? "winograd1d" : "winograd2d";
        const epilogue = op === "fwd" ? { bias: flush > 4, activation } : NO_EPILOGUE;
        const request = convRequest(gpu, problem, {
          schedule: { policy, flush },
          ...{ algorithm, layout, epilogue, sizes },
          limits: { ...gpu.limits, ...limits },
        });
        if (isRefusal(tryPlanConv(request))) return;
        const { plan } = await checkedResult(gpu, request);
        if (plan.kernel.includes("_partial")) stored++;
      },
    ),
    { numRuns: full ? 200 : 14, seed: 20261123 },
  );
  assert.ok(stored >= (full ? 60 : 4), `${stored} had parts`);
});

test("four images that a thread loads at once agree with the reference", async (gpu) => {
  const sizes = { outChannels: 10, filterSize: [3, 3], paddingBegin: [1, 1] };
  const problems = [
    convProblem({ ...sizes, batch: 4, inChannels: 6, inputSize: [5, 7] }),
    convProblem({ ...sizes, batch: 12, inChannels: 10, groups: 2, inputSize: [4, 6] }),
    convProblem({ ...sizes, batch: 8, inChannels: 9, inputSize: [3, 11], paddingBegin: [0, 2] }),
  ];
  for (const [index, problem] of problems.entries()) {
    for (const [tile, policy] of [["F(2,3)", "16x32x4_4x4"], ["F(4,3)", SMALLEST]] as const) {
      for (const op of full ? OPS : [OPS[index % 2]!]) {
        for (const mode of ["constant", "uniform"] as const) {
          const more = { layout: "chwn", tile, schedule: { policy }, sizes: mode } as const;
          const { plan } = await checkedResult(gpu, requestFor(gpu, { ...problem, op }, more));
          assert.match(plan.kernel, /_wide/);
        }
      }
    }
  }
});

test("bias and activation follow the output's transform, element by element and by fours", async (gpu) => {
  const problem = parseDescriptor("g2mb4ic6ih6iw9oc16kh3ph1");
  // Nearly as large in every channel: errors are weighed against it too.
  const bias = Float32Array.from({ length: 16 }, (_, k) => (k % 2 - 0.5) * (4 + k / 16));
  const epilogue = { bias: true, activation: "relu" as const };
  for (const algorithm of ALGORITHMS) {
    for (const layout of LAYOUTS) {
      const request = requestFor(gpu, problem, { layout, epilogue, algorithm });
      const { plan } = await checkedResult(gpu, request, { ...operandsFor(request), bias });
      assert.match(
        plan.kernel,
        layout === "nchw" ? /_o1_(?:beyond_)?bias_relu/ : /_o4_.*bias_relu/,
      );
    }
  }
});

test("few channels take tiles as deep as they are, whose threads have all slices or more results than the rest of a block: they agree with the reference", async (gpu) => {
  for (const [run, layout] of LAYOUTS.entries()) {
    for (const inChannels of full ? [1, 3, 4, 6, 0] : [[3, 4, 1][run]!, [0, 6, 3][run]!]) {
      const problem = convProblem({
        ...{ op: "fwd", batch: 4, inChannels, outChannels: 37 },
        ...{ inputSize: [7, 20], filterSize: [3, 3], paddingBegin: [1, 1] },
      });
      const sizes = run % 2 === 0 ? "constant" as const : "uniform" as const;
      const request = convRequest(gpu, problem, {
        schedule: { splits: 1 },
        ...{ algorithm: "winograd1d", tile: "F(6,3)", layout, device: H200, sizes },
      });
      const { plan } = await checkedResult(gpu, request);
      assert.match(
        plan.kernel,
        inChannels === 6 && layout === "nchw"
          ? /_8x16_/
          : layout === "nchw"
          ? /_32x32x4_16x8_/
          : /x[134]_4x4a_/,
      );
    }
  }
});

test("threads with all slices share kernels of uniform sizes, whether there are one, two or three steps", async (gpu) => {
  for (const sizes of ["uniform", "constant"] as const) {
    for (const rows of [1, 2, 3]) {
      const problem = convProblem({
        ...{ op: "fwd", batch: 1, inChannels: 3, outChannels: 5 },
        ...{ inputSize: [6, 9], filterSize: [rows, 3], paddingBegin: [rows - 1, 1] },
      });
      const { plan } = await checkedResult(
        gpu,
        convRequest(gpu, problem, {
          schedule: { splits: 1, policy: "16x16x3_4x4a" },
          ...{ algorithm: "winograd1d", layout: "nhwc", sizes },
          ...{ tile: "F(2,3)" },
        }),
      );
      assert.match(plan.kernel, /16x16x3_4x4a/);
    }
  }
});

test("winograd1d takes strides and dilation of the axes it does not tile", async (gpu) => {
  const forward = {
    batch: 2,
    inChannels: 3,
    outChannels: 5,
    inputSize: [11, 9],
    filterSize: [3, 3],
    stride: [2, 1],
    dilation: [2, 1],
    paddingBegin: [2, 1],
  };
  const backward = { ...forward, op: "bwd-data" as const, stride: [1, 1] };
  for (const init of [forward, backward]) {
    const request = requestFor(gpu, convProblem(init), { layout: "nhwc", tile: "F(2,3)" });
    await checkedResult(gpu, request);
  }
});

test("devices with the least limits get policies that work", async (gpu) => {
  const request = requestFor(gpu, convProblem(goldenCase("odd_channels").problems.fwd), {
    layout: "nhwc",
    limits: DEFAULT_LIMITS,
  });
  for (
    const [algorithm, tile] of [["winograd1d", "F(14,3)"], ["winograd2d", "F(2x2,3x3)"]] as const
  ) {
    const { schedule: { policy: _ } = {}, ...least } = { ...request, algorithm, tile };
    const { plan } = await checkedResult(gpu, least, operandsFor(request));
    assert.ok(plan.passes.every(({ kernel }) => kernel.workgroupBytes <= 16_384));
  }
});

test("without channels the result is the bias or zeros, without images there is none", async (gpu) => {
  const sizes = { inputSize: [4, 4], filterSize: [3, 3] };
  const noChannels = convProblem({ ...sizes, batch: 1, inChannels: 0, outChannels: 3 });
  const noGradient = convProblem({
    ...noChannels,
    op: "bwd-data",
    inChannels: 2,
    outChannels: 0,
  });
  const noImages = convProblem({ ...noChannels, batch: 0, inChannels: 2 });
  for (const algorithm of ALGORITHMS) {
    const request = (problem: ConvProblem, more: Partial<PlanRequest>) =>
      planConv(requestFor(gpu, problem, { algorithm, ...more }));
    const bias = Float32Array.of(1, 2, 3);
    const biased = request(noChannels, { epilogue: { bias: true, activation: "none" } });
    const { result } = await runPlan(gpu, biased, { bias }, convResult(noChannels), 2);
    assert.deepEqual([...result], [1, 2, 3].flatMap((value) => new Array(4).fill(value)));
    const zero = await runPlan(gpu, request(noGradient, {}), {}, convResult(noGradient), 2);
    assert.deepEqual([...zero.result], new Array(32).fill(0));
    assert.deepEqual(request(noImages, {}).passes, []);
  }
});

test("the same plan gives the same bits", async (gpu) => {
  for (const algorithm of ALGORITHMS) {
    const problem = convProblem(goldenCase("odd_channels").problems["bwd-data"]);
    const request = requestFor(gpu, problem, { algorithm, layout: "chwn" });
    const operands = operandsFor(request);
    const [first, second] = [
      await checkedResult(gpu, request, operands),
      await checkedResult(gpu, request, operands),
    ];
    assert.deepEqual(first.result, second.result);
  }
});

/** Stride and dilation 1; padding from less to more than the filter covers. */
const axis = fc.record({
  filter: fc.integer({ min: 1, max: 5 }),
  more: fc.integer({ min: 0, max: 7 }),
  begin: fc.integer({ min: 0, max: 5 }),
  end: fc.integer({ min: 0, max: 5 }),
});

test("random problems of one to three axes agree with the reference", async (gpu) => {
  const property = fc.asyncProperty(
    fc.array(axis, { minLength: 1, maxLength: 3 }),
    fc.record({
      batch: fc.integer({ min: 1, max: 4 }),
      groups: fc.integer({ min: 1, max: 2 }),
      inChannels: fc.integer({ min: 1, max: 9 }).map((each) => 2 * each),
      outChannels: fc.integer({ min: 1, max: 9 }).map((each) => 2 * each),
    }),
    fc.constantFrom(...OPS),
    fc.constantFrom(...LAYOUTS),
    fc.boolean(),
    sizeModes,
    async (axes, channels, op, layout, planar, sizes) => {
      const filterSize = axes.map(({ filter }) => filter);
      const problem = convProblem({
        ...channels,
        op,
        // Outputs that see little but padding have larger errors for their few products than the gate allows.
        inputSize: axes.map(({ filter, more }) => filter + more),
        filterSize,
        paddingBegin: axes.map(({ begin }) => begin),
        paddingEnd: axes.map(({ end }) => end),
      });
      const request = requestFor(
        gpu,
        problem,
        planar && axes.length > 1
          ? { layout, sizes, algorithm: "winograd2d", tile: "F(2x2,2x3)" }
          : { layout, sizes, tile: "F(2,3)" },
      );
      await checkedResult(gpu, request);
    },
  );
  await fc.assert(property, { numRuns: full ? 150 : 12, seed: 20261120 });
});
