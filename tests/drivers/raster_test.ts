/** Workgroups in bands of rows of tiles, on the driver at hand: results do not depend on it. */
import assert from "#assert";
import { softwareDevice } from "../../src/algorithms/device/software.ts";
import { convProblem, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { type Choice, multiply } from "../gemm_matrix.ts";
import { ONE_WORKGROUP } from "../support/one_workgroup.ts";
import { test } from "./driver.ts";

/** Bands of one row of tiles, of some that do not divide them, and of more than there are. */
const RASTERS = [1, 4, 9];
const STREAMED = {
  schedule: { splits: undefined, balance: "stream-k" },
  device: softwareDevice(4),
} as const;

test("products agree with the reference in every order of tiles, and with each other", async (gpu) => {
  // Six by three tiles of `tiny`, twice.
  const problem = { m: 165, n: 70, k: 37, batch: 2, bias: "row" } as const;
  const cuts: readonly Choice[] = [{}, { schedule: { splits: 3 } }, STREAMED];
  for (const cut of cuts) {
    for (const sizes of ["constant", "uniform"] as const) {
      const rows = await multiply(gpu, problem, { ...cut, sizes });
      for (const raster of RASTERS) {
        const { plan, result, checked } = await multiply(gpu, problem, {
          ...cut,
          sizes,
          schedule: { ...cut.schedule, raster },
        });
        assert.match(plan.kernel, new RegExp(`_grouped${raster}`));
        assert.equal(checked?.verdict, "pass", checked?.message);
        // Of stream-K other tiles are the last, whose depth is split.
        if (cut !== STREAMED) assert.deepEqual(result, rows.result, plan.kernel);
      }
    }
  }
});

const SHAPE = {
  batch: 2,
  inChannels: 68,
  outChannels: 70,
  groups: 2,
  inputSize: [7, 9],
  filterSize: [3, 2],
  paddingBegin: [1, 0],
  paddingEnd: [0, 1],
};

test("convolutions agree with the reference in bands, classes of strides too", async (gpu) => {
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      for (const stride of [[1, 1], [2, 2]]) {
        for (
          const cut of [{}, { schedule: { balance: "stream-k" }, device: ONE_WORKGROUP }] as const
        ) {
          const problem = convProblem({ ...SHAPE, stride, op });
          const { plan } = await checkedResult(
            gpu,
            convRequest(gpu, problem, {
              algorithm: "implicit-gemm",
              layout,
              epilogue: NO_EPILOGUE,
              sizes: "uniform",
              ...cut,
              schedule: { policy: "tiny", raster: 2, ...cut.schedule },
            }),
          );
          assert.match(plan.kernel, /_grouped2/);
          assert.equal(/_streamk/.test(plan.kernel), "schedule" in cut);
        }
      }
    }
  }
});
