/** One filter a channel, small groups, and few channels, on the driver at hand: golden cases, random problems, long filters, every way to reach a filter. */
import assert from "#assert";
import fc from "fast-check";
import { H200 } from "../../src/algorithms/device/h200.ts";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import { type GpuDevice, openDevice } from "../../src/gpu/device.ts";
import {
  type ConvProblem,
  convProblem,
  type ConvProblemInit,
  OPERATIONS,
} from "../../src/problem/conv_problem.ts";
import { ACTIVATIONS } from "../../src/problem/activations.ts";
import { FILTER_LAYOUTS, LAYOUTS } from "../../src/tensor/layout.ts";
import { planConv } from "../../src/algorithms/planner.ts";
import { convSubject } from "../../src/run/conv_subject.ts";
import { runPlan } from "../../src/run/executor.ts";
import { checkedResult, convRequest, operandsFor } from "../checked_plan.ts";
import { loadGoldenCases } from "../golden.ts";
import { agrees } from "../golden_conv.ts";
import { randomAxes, sizeModes, spatialSizes } from "../random_axes.ts";
import { backend, full, test } from "./driver.ts";

/** A device that small problems fill: runs are as long as on a large one with large problems. */
const SMALL_DEVICE = { ...H200, multiprocessors: 1 / 64 };

/** Runs a problem by `depthwise` and holds it against the reference. */
async function convolve(gpu: GpuDevice, problem: ConvProblem, choice: Partial<PlanRequest> = {}) {
  // SwiftShader takes gigabytes to compile what is unrolled for a GPU.
  const software = /swiftshader/i.test(gpu.info.adapter);
  const device = { ...choice.device ?? SMALL_DEVICE, software };
  return await checkedResult(
    gpu,
    convRequest(gpu, problem, { algorithm: "depthwise", ...choice, device }),
  );
}

test("depthwise agrees with PyTorch in every layout", async (gpu) => {
  const cases = loadGoldenCases().filter(({ problems: { fwd } }) => fwd.inChannels === fwd.groups);
  assert.ok(cases.length > 0);
  for (const one of cases) {
    for (const op of OPERATIONS) {
      for (const layout of LAYOUTS) {
        await agrees(gpu, one, { op, algorithm: "depthwise", layout });
      }
    }
  }
});

/** Problems whose filter fits; half of the batches and channels divide into fours. */
const problems = fc.record({
  axes: randomAxes({ more: 12, stride: 4 }),
  batch: fc.constantFrom(1, 3, 4, 8),
  groups: fc.constantFrom(1, 3, 5, 8, 20, 72),
  multiplier: fc.constantFrom(1, 1, 1, 2, 3, 4),
  inputs: fc.constantFrom(1, 1, 1, 2, 4, 5),
}).map(({ axes, batch, groups, multiplier, inputs }): ConvProblemInit => ({
  batch: axes.length === 3 ? Math.min(batch, 4) : batch,
  // One group is no matter of channels by themselves.
  groups: inputs > 1 ? Math.min(20, groups + 1) : groups,
  inChannels: (inputs > 1 ? Math.min(20, groups + 1) : groups) * inputs,
  outChannels: (inputs > 1 ? Math.min(20, groups + 1) : groups) * multiplier,
  ...spatialSizes(axes),
}));

test("random problems agree with the reference, with runs as long and as short as they get", async (gpu) => {
  await fc.assert(
    fc.asyncProperty(
      problems,
      fc.constantFrom(...OPERATIONS),
      fc.constantFrom(...LAYOUTS),
      fc.constantFrom(SMALL_DEVICE, SMALL_DEVICE, H200),
      sizeModes,
      async (init, op, layout, device, sizes) => {
        await convolve(gpu, convProblem({ ...init, op }), { layout, device, sizes });
      },
    ),
    { numRuns: full ? 900 : 90, seed: 20261122 },
  );
});

/** Channels of a group: few of one side, up to many of the other. */
const few = fc.record({
  axes: randomAxes({ more: 9, stride: 3 }),
  batch: fc.constantFrom(1, 2, 4),
  groups: fc.constantFrom(1, 1, 1, 2, 5),
  thin: fc.integer({ min: 1, max: 8 }),
  wide: fc.constantFrom(1, 2, 3, 4, 8, 16, 21, 36, 40, 44, 64),
});

test("few channels of a result, or of one side of a filter, agree with the reference", async (gpu) => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      few,
      fc.constantFrom(...OPERATIONS),
      fc.boolean(),
      fc.constantFrom(...LAYOUTS),
      fc.constantFrom(...FILTER_LAYOUTS),
      fc.constantFrom(SMALL_DEVICE, SMALL_DEVICE, H200),
      sizeModes,
      async (
        { axes, batch, groups, thin, wide },
        op,
        turned,
        layout,
        filterLayout,
        device,
        sizes,
      ) => {
        const few = op === "fwd" ? "out" : op === "bwd-data" || turned ? "in" : "out";
        const problem = convProblem({
          op,
          batch: axes.length === 3 ? 1 : batch,
          groups,
          inChannels: groups * (few === "in" ? thin : wide),
          outChannels: groups * (few === "out" ? thin : wide),
          ...spatialSizes(axes),
        });
        const choice = {
          layout,
          filterLayout,
          device,
          ...(sizes === undefined ? {} : { sizes }),
        };
        const { plan } = await convolve(gpu, problem, choice);
        for (const trait of ["sources", "own", "shared", "split", "overlapping"]) {
          if (plan.kernel.includes(trait)) seen.add(`${op} ${trait}`);
        }
        if (/overlapping.*shared/.test(plan.kernel)) seen.add("overlapping and shared");
      },
    ),
    { numRuns: full ? 900 : 120, seed: 20261122 },
  );
  for (
    const trait of [
      "fwd sources",
      "fwd own",
      "fwd split",
      "bwd-data sources",
      "fwd shared",
      "bwd-data shared",
      "fwd overlapping",
      "bwd-data overlapping",
      "overlapping and shared",
      "bwd-filter own",
    ]
  ) {
    assert.ok(seen.has(trait), `no kernel: ${trait}`);
  }
});

test("the channels that a result sums are cut as asked, with bias and activation at the end", async (gpu) => {
  const channels = { inChannels: 72, outChannels: 3, groups: 1 };
  const problem = convProblem({ ...SMALL, ...channels, op: "fwd" });
  for (const layout of LAYOUTS) {
    for (const splits of [1, 5, 1000]) {
      const epilogue = { bias: true, activation: "relu" } as const;
      const { plan } = await convolve(gpu, problem, { layout, schedule: { splits }, epilogue });
      assert.equal(plan.passes.length, splits === 1 ? 1 : 2, plan.kernel);
    }
  }
});

/** Of 36 channels nine vectors: threads that share a run have two rounds, the second not for all. */
const SHARED: ConvProblemInit = {
  batch: 2,
  groups: 1,
  inChannels: 36,
  outChannels: 3,
  inputSize: [11, 13],
  filterSize: [3, 3],
  paddingBegin: [1, 1],
  paddingEnd: [1, 1],
};

/** The same with few channels on the other side. */
const turned = (problem: ConvProblemInit) => ({
  ...problem,
  inChannels: problem.outChannels,
  outChannels: problem.inChannels,
});

test("threads that share a run agree with the reference in f16 and bf16, of groups, many results and bindings in parts", async (gpu) => {
  const layout = "nhwc";
  const limits = { ...gpu.limits, maxStorageBufferBindingSize: 4096 };
  const cases: [ConvProblemInit, Partial<PlanRequest>, RegExp][] = [
    [SHARED, { filterLayout: "kcrs", schedule: { splits: 2 } }, /_shared5of_split/],
    // 64 sums of a thread pass through workgroup memory in parts.
    [{ ...SHARED, outChannels: 8, inputSize: [33, 5] }, {}, /_own4of_.*_shared5of/],
    [{ ...SHARED, groups: 2, inChannels: 64, outChannels: 64 }, {}, /_shared8/],
    [SHARED, { limits }, /_shared5of/],
    [SHARED, { dtype: "bf16" }, /_bf16_.*_shared5of/],
    ...(gpu.features.has("shader-f16")
      ? [
        [SHARED, { dtype: "f16" }, /_f16_.*_shared5of/] as [
          ConvProblemInit,
          { dtype: "f16" },
          RegExp,
        ],
      ]
      : []),
  ];
  for (const [init, choice, kernel] of cases) {
    for (const op of ["fwd", "bwd-data"] as const) {
      const problem = convProblem({ ...op === "fwd" ? init : turned(init), op });
      const { plan } = await convolve(gpu, problem, { layout, ...choice });
      assert.match(plan.kernel, kernel);
    }
  }
});

Deno.test("two columns a thread agree with the reference in f16 and bf16, with odd widths, paddings and few channels", async () => {
  using gpu = await openDevice({ backend, optionalFeatures: ["shader-f16"] });
  const dtypes = gpu.features.has("shader-f16") ? ["f16", "bf16"] as const : ["bf16"] as const;
  let paired = 0;
  await fc.assert(
    fc.asyncProperty(
      randomAxes({ more: 12, stride: 2, dilation: 1 }).filter((axes) => axes.length > 1),
      // Rows are long where they have few taps.
      fc.constantFrom({ filter: 5, longer: 0 }, { longer: 48 }),
      fc.constantFrom([3, 1, 1], [4, 1, 2], [1, 4, 1], [1, 1, 6], [2, 2, 2]),
      fc.constantFrom("fwd", "bwd-data"),
      fc.constantFrom(...dtypes),
      sizeModes,
      async (drawn, { filter, longer }, [groups, inputs, outputs], op, dtype, sizes) => {
        const last = drawn.at(-1)!;
        const row = { ...last, filter: filter ?? last.filter, more: last.more + longer };
        const sized = spatialSizes([...drawn.slice(0, -1), row]);
        const problem = convProblem({
          ...{ batch: 2, groups, inChannels: groups * inputs, outChannels: groups * outputs },
          ...{ ...sized, op: op as "fwd" | "bwd-data" },
        });
        const { plan } = await convolve(gpu, problem, { dtype, layout: "nchw", sizes });
        if (plan.kernel.includes("columns2")) paired++;
      },
    ),
    { numRuns: full ? 300 : 50, seed: 20261129 },
  );
  assert.ok(paired >= 5, `${paired}`);
});

test("an infinite weight is not met by threads that have no source in their last round", async (gpu) => {
  for (const side of [1, 3]) {
    const request = convRequest(
      gpu,
      convProblem({
        ...SHARED,
        op: "fwd",
        filterSize: [side, side],
        paddingBegin: [0, 0],
        paddingEnd: [0, 0],
      }),
      { algorithm: "depthwise", layout: "nhwc", filterLayout: "krsc", device: SMALL_DEVICE },
    );
    const plan = planConv(request);
    assert.match(plan.kernel, /_shared5of/);
    const operands = operandsFor(request);
    // The last of 36 channels, of the second of three filters.
    (operands.filter as Float32Array)[2 * side * side * 36 - 1] = Infinity;
    const { result } = await runPlan(gpu, plan, operands, convSubject(request).result, 1);
    const infinite = [...result as Float32Array].map((value) => Math.abs(value) === Infinity);
    assert.ok(!(result as Float32Array).some(Number.isNaN), plan.kernel);
    assert.deepEqual(infinite, infinite.map((_, i) => i % 3 === 1), plan.kernel);
  }
});

test("filters that are packed for threads that share a run fit the workspace, or are read as they lie", async (gpu) => {
  const problem = convProblem({ ...SHARED, op: "fwd" });
  const filter = 4 * 36 * 3 * 9;
  for (
    const [maxWorkspaceBytes, filterLayout, kernel, passes] of [
      [filter, "kcrs", /_shared5of/, 2],
      [filter - 1, "kcrs", /_by1$|_x9$|_grouped_own3$/, 1],
      [0, "krsc", /_shared5of/, 1],
    ] as const
  ) {
    const choice = { layout: "nhwc", filterLayout, maxWorkspaceBytes } as const;
    const { plan } = await convolve(gpu, problem, choice);
    assert.match(plan.kernel, kernel);
    assert.equal(plan.passes.length, passes);
  }
});

test("long filters, long strides and single rows agree with the reference", async (gpu) => {
  const problems: ConvProblemInit[] = [
    { inputSize: [9, 33], filterSize: [7, 31], paddingBegin: [3, 15], paddingEnd: [2, 14] },
    { inputSize: [13, 5], filterSize: [13, 3], paddingBegin: [6, 0], stride: [2, 1] },
    { inputSize: [200], filterSize: [80], paddingBegin: [7] },
    { inputSize: [40, 41], filterSize: [3, 5], stride: [20, 19], paddingEnd: [1, 3] },
    { inputSize: [1, 30], filterSize: [1, 9], paddingBegin: [0, 4], dilation: [1, 2] },
    { inputSize: [30, 4], filterSize: [5, 1], stride: [3, 1], dilation: [2, 1] },
    { inputSize: [12, 13], filterSize: [3, 3], stride: [4, 2], dilation: [2, 4] },
  ].map((axes) => ({ batch: 4, groups: 8, inChannels: 8, outChannels: 8, ...axes }));
  for (const init of problems) {
    for (const op of OPERATIONS) {
      for (const layout of LAYOUTS) {
        await convolve(gpu, convProblem({ ...init, op }), { layout });
      }
    }
  }
});

const SMALL: ConvProblemInit = {
  batch: 4,
  groups: 12,
  inChannels: 12,
  outChannels: 12,
  inputSize: [9, 10],
  filterSize: [3, 3],
  paddingBegin: [1, 0],
};

test("every layout of the filter agrees with the reference, in workgroup memory or not", async (gpu) => {
  for (const op of OPERATIONS) {
    for (const outChannels of [12, 24]) {
      const problem = convProblem({ ...SMALL, outChannels, op });
      for (const layout of LAYOUTS) {
        for (const filterLayout of FILTER_LAYOUTS) {
          await convolve(gpu, problem, { layout, filterLayout });
        }
      }
    }
  }
});

test("segments are summed at once or in groups, and give the same in every run", async (gpu) => {
  const problem = convProblem({ ...SMALL, inputSize: [40, 41], op: "bwd-filter" });
  for (const layout of LAYOUTS) {
    for (const splits of [1, 7, 50]) {
      const { plan, result } = await convolve(gpu, problem, { layout, schedule: { splits } });
      assert.equal(plan.passes.length, splits === 1 ? 1 : splits === 7 ? 2 : 3);
      assert.deepEqual(
        (await convolve(gpu, problem, { layout, schedule: { splits } })).result,
        result,
      );
    }
  }
});

test("without images gradients of filters are zero", async (gpu) => {
  for (const layout of LAYOUTS) {
    for (const op of OPERATIONS) {
      const { result } = await convolve(gpu, convProblem({ ...SMALL, batch: 0, op }), { layout });
      assert.ok(result.every((value) => value === 0));
      assert.equal(result.length, op === "bwd-filter" ? 12 * 9 : 0);
    }
  }
});

test("tensors in several bindings agree with the reference", async (gpu) => {
  const limits = { ...gpu.limits, maxStorageBufferBindingSize: 8192 };
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      const { plan } = await convolve(gpu, convProblem({ ...SMALL, op }), { layout, limits });
      assert.match(plan.kernel, /_parts/);
    }
  }
});

test("bias and activation follow the sum", async (gpu) => {
  for (const layout of LAYOUTS) {
    for (const activation of full ? ACTIVATIONS : ["none", "leaky-relu"] as const) {
      for (const batch of [3, 4]) {
        const epilogue = { bias: true, activation };
        await convolve(gpu, convProblem({ ...SMALL, batch }), { layout, epilogue });
      }
    }
  }
});

Deno.test("groups whose channels no thread's divide are right in every type, layout and direction", async () => {
  using gpu = await openDevice({ backend, optionalFeatures: ["shader-f16"] });
  const dtypes = (["f32", "f16", "bf16"] as const).filter((dtype) =>
    dtype !== "f16" || gpu.features.has("shader-f16")
  );
  for (const [few, groups, many] of [[7, 1, 8], [5, 3, 4]] as const) {
    for (const op of ["fwd", "bwd-data"] as const) {
      const [inChannels, outChannels] = op === "fwd" ? [many, few] : [few, many];
      const problem = convProblem({
        ...{ op, batch: 2, groups, inputSize: [7, 9], filterSize: [3, 3], padding: 1 },
        ...{ inChannels: groups * inChannels, outChannels: groups * outChannels },
      });
      for (const layout of LAYOUTS) {
        for (const dtype of dtypes) {
          const { plan } = await convolve(gpu, problem, { layout, dtype });
          assert.match(plan.kernel, /own\doverlapping/);
        }
      }
    }
  }
});
