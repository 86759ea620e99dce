/** Non-fused Winograd on the driver at hand: golden cases by tile and layout, chunks of the batch, epilogues. */
import assert from "#assert";
import fc from "fast-check";
import { planConv } from "../../src/algorithms/planner.ts";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import { convResult } from "../../src/run/conv_subject.ts";
import { runPlan } from "../../src/run/executor.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import { type ConvProblem, convProblem, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { formatTile } from "../../src/winograd/tile.ts";
import { goldenCase, loadGoldenCases } from "../golden.ts";
import { agrees, type GoldenRun } from "../golden_conv.ts";
import { checkedResult, convRequest, operandsFor } from "../checked_plan.ts";
import { sizeModes } from "../random_axes.ts";
import { full, test } from "./driver.ts";

const algorithm = "winograd2d-nonfused";
/** Stride 1. */
const cases = loadGoldenCases().filter(({ problems: { fwd: { stride } } }) =>
  stride.every((value) => value === 1)
);
/** Groups, channels that divide nothing, padding beyond the filter, one transformed axis. */
const FEW = ["groups_4", "odd_channels", "wide_pad", "filter_1x7"];

for (const op of OPERATIONS) {
  for (const layout of LAYOUTS) {
    const chosen = full || layout === "nchw" ? cases : FEW.map(goldenCase);
    test(`${algorithm} ${op} ${layout} agrees with PyTorch on ${chosen.length} cases`, async (gpu) => {
      assert.ok(chosen.length >= FEW.length);
      for (const golden of chosen) {
        await agrees(gpu, golden, { op, algorithm, layout, policy: "tiny" });
      }
    });
  }
}

test("tiles agree with PyTorch, whatever their size", async (gpu) => {
  const images = [
    ["groups_4", "F(2x2,3x3)"],
    ["groups_4", "F(5x5,3x3)"],
    ["groups_4", "F(6x6,3x3)"],
    ["resnet_conv2_small", "F(4x2,3x3)"],
    ["filter_5x5", "F(2x2,5x5)"],
    ["filter_5x5", "F(4x4,5x5)"],
    ["filter_1x7", "F(3x10,1x7)"],
  ] as const;
  const filters = [
    ["groups_4", "F(3x3,4x4)"],
    ["groups_4", "F(3x3,2x6)"],
    ["groups_4", "F(3x3,7x7)"],
    ["filter_5x5", "F(5x5,4x4)"],
    ["filter_5x5", "F(5x5,5x5)"],
    ["filter_7x1", "F(7x1,4x2)"],
  ] as const;
  for (const op of OPERATIONS) {
    for (const [name, tile] of op === "bwd-filter" ? filters : images) {
      for (const layout of full ? LAYOUTS : ["nchw"] as const) {
        const run: GoldenRun = { op, algorithm, layout, tile, policy: "tiny" };
        const kernel = await agrees(gpu, goldenCase(name), run);
        assert.match(kernel, new RegExp(`_m\\d+x\\d+r\\d+x\\d+_32x32x8_${layout}`));
      }
    }
  }
});

test("baked sizes, other policies, split depth and bindings in parts agree with PyTorch", async (gpu) => {
  const runs: readonly Partial<GoldenRun>[] = [
    { sizes: "constant" },
    { policy: "small" },
    { splits: 2 },
    { limits: { maxStorageBufferBindingSize: 24_576 } },
  ];
  for (const op of OPERATIONS) {
    for (const [index, more] of runs.entries()) {
      const layout = LAYOUTS[index % LAYOUTS.length]!;
      const run: GoldenRun = { op, algorithm, layout, policy: "tiny", ...more };
      const kernel = await agrees(gpu, goldenCase("odd_channels"), run);
      if (more.limits !== undefined) assert.match(kernel, /_parts/);
    }
  }
});

/** Seven images, so that no chunk size above 1 divides them; rows of 4 n elements, so that vectors are used. */
const SEVEN = parseDescriptor("mb7ic18ih21iw20oc17kh3ph1");

function requestFor(gpu: GpuDevice, problem: ConvProblem, more: Partial<PlanRequest>): PlanRequest {
  const schedule = { policy: "tiny", splits: 1, ...more.schedule };
  return convRequest(gpu, problem, { algorithm, ...more, schedule });
}

test("chunks of the batch compute what the whole batch computes, bit for bit but for ∇W's order of sums", async (gpu) => {
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      const whole = requestFor(gpu, { ...SEVEN, op }, { layout });
      const operands = operandsFor(whole);
      const once = await checkedResult(gpu, whole, operands);
      const passes = new Set<number>([once.plan.passes.length]);
      for (const share of [0.9, 0.6, 0.4]) {
        const maxWorkspaceBytes = Math.floor(share * once.plan.workspaceBytes);
        const request = { ...whole, maxWorkspaceBytes };
        const { plan, result } = await checkedResult(gpu, request, operands);
        assert.ok(plan.workspaceBytes <= maxWorkspaceBytes);
        assert.ok(plan.passes.length > once.plan.passes.length);
        passes.add(plan.passes.length);
        if (op !== "bwd-filter") assert.deepEqual(result, once.result, plan.kernel);
      }
      assert.ok(passes.size >= 3, `${[...passes]} passes`);
      // An image's transform fits a binding, all of them together do not.
      const limits = { ...gpu.limits, maxStorageBufferBindingSize: 131_072 };
      const { plan, result } = await checkedResult(gpu, { ...whole, limits }, operands);
      assert.ok(plan.passes.length > 10);
      if (op !== "bwd-filter") assert.deepEqual(result, once.result, plan.kernel);
    }
  }
});

test("the same plan gives the same bits, with split depth and chunks too", async (gpu) => {
  for (const op of OPERATIONS) {
    const request = requestFor(gpu, { ...SEVEN, op }, { schedule: { splits: 3 } });
    const limited = { ...request, maxWorkspaceBytes: planConv(request).workspaceBytes - 4 };
    const operands = operandsFor(limited);
    const first = await checkedResult(gpu, limited, operands);
    const second = await checkedResult(gpu, limited, operands);
    assert.match(first.plan.kernel, /_split/);
    assert.deepEqual(first.result, second.result);
  }
});

test("bias and activation follow the output's transform, element by element and by fours", async (gpu) => {
  const bias = Float32Array.from({ length: 17 }, (_, k) => k - 8);
  for (const [layout, splits] of [["nchw", 1], ["nhwc", 2], ["chwn", 1]] as const) {
    const epilogue = { bias: true, activation: "relu" as const };
    const request = requestFor(gpu, SEVEN, { layout, epilogue, schedule: { splits } });
    const { plan } = await checkedResult(gpu, request, { ...operandsFor(request), bias });
    const last = plan.passes.at(-1)!.kernel.name;
    assert.match(last, layout === "nchw" ? /_x4_bias_relu/ : /_bias_relu/);
  }
});

test("one axis is transformed alone", async (gpu) => {
  const problem = convProblem({
    batch: 2,
    inChannels: 5,
    outChannels: 6,
    inputSize: [23],
    filterSize: [3],
    paddingBegin: [2],
    paddingEnd: [0],
  });
  for (const op of OPERATIONS) {
    const tile = op === "bwd-filter" ? "F(3,6)" : "F(1x6,1x3)";
    const request = requestFor(gpu, { ...problem, op }, { layout: "nhwc", tile });
    const { plan } = await checkedResult(gpu, request);
    assert.match(plan.kernel, op === "bwd-filter" ? /_m1x3r1x6_/ : /_m1x6r1x3_/);
  }
});

test("without channels or images the result is the bias, or zeros", async (gpu) => {
  const sizes = { inputSize: [4, 4], filterSize: [3, 3] };
  const noChannels = convProblem({ ...sizes, batch: 1, inChannels: 0, outChannels: 3 });
  const noImages = convProblem({
    ...sizes,
    op: "bwd-filter",
    batch: 0,
    inChannels: 2,
    outChannels: 3,
  });
  const epilogue = { bias: true, activation: "none" as const };
  const biased = planConv(requestFor(gpu, noChannels, { epilogue }));
  const bias = Float32Array.of(1, 2, 3);
  const { result } = await runPlan(gpu, biased, { bias }, convResult(noChannels), 2);
  assert.deepEqual([...result], [1, 2, 3].flatMap((value) => new Array(4).fill(value)));
  const zero = planConv(requestFor(gpu, noImages, {}));
  const gradient = await runPlan(gpu, zero, {}, convResult(noImages), 2);
  assert.deepEqual([...gradient.result], new Array(54).fill(0));
});

/** Stride 1; padding from less to more than the filter covers, dilation to more than the image. */
const axis = fc.record({
  filter: fc.integer({ min: 1, max: 5 }),
  more: fc.integer({ min: 0, max: 9 }),
  begin: fc.integer({ min: 0, max: 5 }),
  end: fc.integer({ min: 0, max: 5 }),
  step: fc.integer({ min: 1, max: 5 }),
  dilation: fc.integer({ min: 1, max: 4 }),
});

test("random problems and tiles agree with the reference", async (gpu) => {
  const property = fc.asyncProperty(
    fc.array(axis, { minLength: 1, maxLength: 2 }),
    fc.record({
      batch: fc.integer({ min: 1, max: 3 }),
      groups: fc.integer({ min: 1, max: 2 }),
      inChannels: fc.integer({ min: 1, max: 9 }).map((each) => 2 * each),
      outChannels: fc.integer({ min: 1, max: 9 }).map((each) => 2 * each),
    }),
    fc.constantFrom(...OPERATIONS),
    fc.constantFrom(...LAYOUTS),
    sizeModes,
    async (axes, channels, op, layout, sizes) => {
      const filterSize = axes.map(({ filter }) => filter);
      const problem = convProblem({
        ...channels,
        op,
        // Outputs that see little but padding have larger errors for their few products than the gate allows.
        inputSize: axes.map(({ filter, more, dilation }) => (filter - 1) * dilation + 1 + more),
        dilation: axes.map(({ dilation }) => dilation),
        filterSize,
        paddingBegin: axes.map(({ begin }) => begin),
        paddingEnd: axes.map(({ end }) => end),
      });
      const steps = axes.map(({ step }) => step);
      const tile = op === "bwd-filter"
        ? formatTile({ n: filterSize, r: steps })
        : formatTile({ n: steps, r: filterSize });
      const request = requestFor(gpu, problem, { layout, tile, sizes });
      await checkedResult(gpu, request);
    },
  );
  await fc.assert(property, { numRuns: full ? 100 : 20, seed: 20261120 });
});
