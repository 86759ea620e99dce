/** Backward-data by classes of strides on the driver at hand, against the reference. */
import assert from "#assert";
import { softwareDevice } from "../../src/algorithms/device/software.ts";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { convProblem } from "../../src/problem/conv_problem.ts";
import { type Layout, LAYOUTS } from "../../src/tensor/layout.ts";
import { ONE_WORKGROUP } from "../support/one_workgroup.ts";
import { test } from "./driver.ts";

const SIZES = ["uniform", "constant"] as const;

type Shape = Omit<Parameters<typeof convProblem>[0], "op" | "outputSize">;

/** Plans, runs and checks; returns the kernel's name. */
async function run(
  gpu: GpuDevice,
  shape: Shape,
  layout: Layout,
  more: Pick<PlanRequest, "sizes" | "schedule" | "device">,
): Promise<string> {
  const request = convRequest(gpu, convProblem({ ...shape, op: "bwd-data" }), {
    algorithm: "implicit-gemm",
    layout,
    device: softwareDevice(2),
    sizes: "constant",
    ...more,
    schedule: { policy: "tiny", ...more.schedule },
  });
  return (await checkedResult(gpu, request)).plan.kernel;
}

/** Rows that are classes need it, and are what is to be seen; so small a filter would else be read as it lies. */
const PACKED = { packedFilter: true };
const STREAMED = { schedule: { balance: "stream-k" }, device: ONE_WORKGROUP } as const;

test("classes of strides have tiles of their own where their taps differ", async (gpu) => {
  const shapes: [Shape, RegExp][] = [
    [
      { batch: 3, inChannels: 62, outChannels: 21, inputSize: [8, 9], filterSize: [3, 3] },
      /_classes_tt_/,
    ],
    [
      { batch: 4, inChannels: 64, outChannels: 24, inputSize: [8, 7], filterSize: [3, 3] },
      /_classes_tt_/,
    ],
    // Most classes have no tap.
    [
      { batch: 4, inChannels: 64, outChannels: 24, inputSize: [8, 7], filterSize: [1, 1] },
      /_classes_tt_/,
    ],
    // The classes of one axis have as many taps; those of the other share tiles, since channels are few.
    [
      {
        batch: 2,
        inChannels: 122,
        outChannels: 34,
        groups: 2,
        inputSize: [7, 9],
        filterSize: [5, 2],
      },
      /_classes_tr_/,
    ],
    [
      { batch: 4, inChannels: 16, outChannels: 24, inputSize: [8, 8], filterSize: [3, 3] },
      /_classes_(tr|rt)_/,
    ],
  ];
  for (const [shape, way] of shapes) {
    for (const layout of LAYOUTS) {
      const strided = { ...shape, stride: [2, 2], paddingBegin: [1, 0], paddingEnd: [0, 1] };
      for (const sizes of SIZES) {
        assert.match(await run(gpu, strided, layout, { sizes, schedule: { ...PACKED } }), way);
        assert.match(await run(gpu, strided, layout, { sizes }), /_classes_/);
      }
      assert.match(await run(gpu, strided, layout, { schedule: { splits: 3 } }), /_split/);
      const streamed = await run(gpu, strided, layout, {
        ...STREAMED,
        schedule: { ...STREAMED.schedule, ...PACKED },
      });
      assert.match(streamed, /_streamk/);
    }
  }
});

test("classes are rows where all have as many taps, or channels are few", async (gpu) => {
  const even = { batch: 4, inChannels: 3, outChannels: 24, inputSize: [8, 16] };
  const shapes: [Shape, { readonly [L in Layout]: RegExp }][] = [
    // Patches: neighbouring classes leave in one store.
    [
      { ...even, filterSize: [4, 4], stride: [4, 4] },
      { nchw: /_oe00_r4/, nhwc: /_oe00_r4/, chwn: /_oe00_c4/ },
    ],
    // Padding moves the first class out of the result.
    [
      { ...even, filterSize: [4, 4], stride: [4, 4], paddingBegin: [0, 2], paddingEnd: [0, 2] },
      { nchw: /_oe01_1/, nhwc: /_oe01_1/, chwn: /_oe01_c4/ },
    ],
    [
      { ...even, inChannels: 8, filterSize: [4, 4], stride: [2, 2], paddingBegin: [1, 1] },
      { nchw: /_oe11_1/, nhwc: /_oe11_r4/, chwn: /_oe11_c4/ },
    ],
    // Strides longer than the filter, and a filter whose classes differ.
    [
      { ...even, batch: 3, filterSize: [2, 3], stride: [4, 4] },
      { nchw: /_oe00_r4/, nhwc: /_oe00_r4/, chwn: /_oe00_1/ },
    ],
    [
      { ...even, filterSize: [7, 7], stride: [2, 2], paddingBegin: [3, 3], paddingEnd: [2, 2] },
      { nchw: /_oe00_p4/, nhwc: /_oe00_1/, chwn: /_oe00_c4/ },
    ],
  ];
  for (const [shape, stores] of shapes) {
    for (const layout of LAYOUTS) {
      for (const sizes of SIZES) {
        const kernel = await run(gpu, shape, layout, { sizes, schedule: { ...PACKED } });
        assert.match(kernel, /_classes_rr_/);
        assert.match(kernel, stores[layout]);
      }
      assert.match(await run(gpu, shape, layout, { schedule: { splits: 2, ...PACKED } }), /_split/);
      const streamed = await run(gpu, shape, layout, {
        ...STREAMED,
        schedule: { ...STREAMED.schedule, ...PACKED },
      });
      assert.match(streamed, /_streamk/);
    }
  }
});

test("a filter as large as its image meets each place once: as many products as elements of the filter", async (gpu) => {
  const shapes: Shape[] = [
    { batch: 3, inChannels: 6, outChannels: 10, inputSize: [4, 4], filterSize: [4, 4] },
    {
      batch: 2,
      inChannels: 12,
      outChannels: 8,
      groups: 2,
      inputSize: [3, 9],
      filterSize: [3, 2],
    },
    { batch: 2, inChannels: 3, outChannels: 4, inputSize: [3, 4, 5], filterSize: [3, 4, 5] },
    { batch: 2, inChannels: 5, outChannels: 6, inputSize: [9], filterSize: [9] },
  ];
  for (const shape of shapes) {
    for (const layout of LAYOUTS) {
      for (const sizes of SIZES) {
        assert.match(await run(gpu, shape, layout, { sizes }), /_classes_/);
      }
    }
  }
});
