/** Filters that implicit GEMM packs, and reads without packing them, on the driver at hand, against the reference. */
import assert from "#assert";
import { H200 } from "../../src/algorithms/device/h200.ts";
import { convProblem } from "../../src/problem/conv_problem.ts";
import { filterLayoutFor, LAYOUTS } from "../../src/tensor/layout.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { test } from "./driver.ts";

const SIZES = ["constant", "uniform"] as const;

/** Filters that are small enough to be read as they lie in every layout, and vectors of which fit or do not. */
const SHAPES = [
  // Steps within taps, with and without channels beyond the last.
  { batch: 2, inChannels: 16, outChannels: 24, inputSize: [6, 7], filterSize: [3, 2] },
  { batch: 3, inChannels: 23, outChannels: 30, inputSize: [6, 5], filterSize: [2, 2] },
  // Steps that reach into several taps.
  { batch: 2, inChannels: 3, outChannels: 9, inputSize: [9, 8], filterSize: [3, 3] },
  { batch: 2, inChannels: 12, outChannels: 3, inputSize: [7, 8], filterSize: [2, 3] },
  { batch: 2, inChannels: 20, outChannels: 12, inputSize: [5, 6], filterSize: [1, 1] },
  { batch: 2, inChannels: 24, outChannels: 16, groups: 2, inputSize: [6, 6], filterSize: [3, 3] },
  { batch: 1, inChannels: 18, outChannels: 27, groups: 3, inputSize: [40], filterSize: [4] },
  { batch: 1, inChannels: 8, outChannels: 20, inputSize: [4, 5, 6], filterSize: [2, 2, 3] },
];

test("implicit GEMM reads small filters as they lie", async (gpu) => {
  for (const shape of SHAPES) {
    for (const op of ["fwd", "bwd-data"] as const) {
      for (const stride of [1, 2]) {
        const problem = convProblem({
          ...shape,
          op,
          stride: shape.inputSize.map(() => stride),
          paddingBegin: shape.inputSize.map(() => 1),
        });
        for (const [which, layout] of LAYOUTS.entries()) {
          const request = convRequest(gpu, problem, {
            algorithm: "implicit-gemm",
            layout,
            schedule: { policy: "tiny" },
            device: { ...H200, multiprocessors: 2 },
            sizes: SIZES[which % 2]!,
          });
          const { plan } = await checkedResult(gpu, request);
          assert.match(plan.kernel, new RegExp(`_${filterLayoutFor(layout)}[14][pds]b`));
          assert.ok(plan.passes.every(({ kernel }) => !kernel.name.startsWith("pack_")));
        }
      }
    }
  }
});

test("filters whose channels and rows are whole fours are packed by vectors", async (gpu) => {
  let [vectors, single] = [0, 0];
  for (
    const [rows, channels, groups] of [[4, 8, 1], [68, 40, 1], [36, 12, 2], [30, 8, 1], [
      8,
      6,
      1,
    ]] as const
  ) {
    for (const filterSize of [[1, 1], [3, 2]]) {
      const problem = convProblem({
        op: "fwd",
        batch: 2,
        inChannels: groups * channels,
        outChannels: groups * rows,
        groups,
        inputSize: [5, 6],
        filterSize,
      });
      for (const sizes of SIZES) {
        const request = convRequest(gpu, problem, {
          algorithm: "implicit-gemm",
          layout: "nhwc",
          schedule: { policy: "small", packedFilter: true },
          sizes,
        });
        const { plan } = await checkedResult(gpu, request);
        const { name } = plan.passes[0]!.kernel;
        // Rows are padded to whole tiles.
        assert.equal(/^pack_strided_f32x4_channel/.test(name), channels % 4 === 0, name);
        if (channels % 4 === 0) vectors++;
        else single++;
      }
    }
  }
  assert.ok(vectors > 10 && single > 2, `${vectors}, ${single}`);
});
