/** Fused Winograd along one axis whose tiles go over all rows, on the driver at hand: right against FP64, and only where it saves tiles. */
import assert from "#assert";
import { openDevice } from "../../src/gpu/device.ts";
import { DEFAULT_LIMITS } from "../../src/algorithms/plan.ts";
import { planConv } from "../../src/algorithms/planner.ts";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import { convProblem, type ConvProblemInit } from "../../src/problem/conv_problem.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { H200 } from "../../src/algorithms/device/h200.ts";
import { FEW_WORKGROUPS } from "../support/few_workgroups.ts";
import { backend } from "./driver.ts";
import { SMALLEST } from "./winograd_fused.ts";

const algorithm = "winograd1d";
const policy = SMALLEST;
/** Few workgroups at once, so that a row's kernel of its own for what is left, or tiles beyond each row's end, cost. */
const device = { ...H200, multiprocessors: 1, registers: 8192 };

function problemOf(more: Partial<ConvProblemInit>) {
  return convProblem({
    batch: 2,
    inChannels: 6,
    outChannels: 10,
    inputSize: [6, 7],
    filterSize: [3, 3],
    paddingBegin: [1, 1],
    ...more,
  });
}

Deno.test("joined rows are right in every layout, both ways and with constant and uniform sizes", async () => {
  using gpu = await openDevice({ backend });
  for (
    const [op, layout, sizes, choice, spatial] of [
      ["fwd", "nhwc", "constant", { tile: "F(6,3)" }, {}],
      ["fwd", "nchw", "constant", { tile: "F(4,3)" }, { inputSize: [7, 9] }],
      ["fwd", "chwn", "constant", { tile: "F(3,3)" }, { batch: 4 }],
      ["bwd-data", "nchw", "uniform", { tile: "F(6,3)" }, { groups: 2 }],
      ["bwd-data", "nhwc", "constant", { tile: "F(4,3)", splits: 2 }, {
        paddingEnd: [2, 0],
        inputSize: [7, 9],
      }],
      ["bwd-data", "chwn", "uniform", { tile: "F(6,3)" }, { batch: 3 }],
      ["fwd", "nhwc", "constant", { tile: "F(6,3)", device: FEW_WORKGROUPS }, { batch: 6 }],
      ["fwd", "nhwc", "uniform", { tile: "F(5,3)" }, { dilation: [3, 1], paddingBegin: [3, 1] }],
      ["fwd", "nchw", "constant", { tile: "F(6,3)" }, { paddingBegin: [0, 0], inputSize: [8, 9] }],
      ["fwd", "nhwc", "constant", { tile: "F(4,5)" }, {
        filterSize: [1, 5],
        paddingBegin: [0, 2],
        inputSize: [6, 9],
      }],
      ["fwd", "nchw", "constant", { tile: "F(6,3)" }, {
        inputSize: [3, 5, 7],
        filterSize: [2, 3, 3],
        paddingBegin: [1, 1, 1],
      }],
    ] as const
  ) {
    const problem = problemOf({ op, ...spatial });
    const request = {
      ...{ algorithm, policy, layout, sizes, device },
      ...("device" in choice ? {} : { splits: 1 }),
      ...choice,
    } as const;
    const { plan } = await checkedResult(gpu, convRequest(gpu, problem, request));
    assert.match(plan.kernel, /_joined/, `${op} ${layout} ${JSON.stringify(spatial)}`);
    assert.equal("device" in choice, /_spans/.test(plan.kernel));
  }
});

Deno.test("rows that steps skip, pieces of a filter, and what is asked to stay alone are not joined", () => {
  const plan = (spatial: Partial<ConvProblemInit>, choice: Partial<PlanRequest> = {}) => {
    const problem = problemOf({ inputSize: [9, 7], ...spatial });
    const request = { algorithm, policy, splits: 1, device, tile: "F(6,3)", ...choice } as const;
    return planConv(convRequest({ limits: DEFAULT_LIMITS }, problem, request));
  };
  assert.match(plan({}).kernel, /_joined1/);
  assert.match(plan({}).notes[0]!, /F\(6,3\): 12 tiles of 9 joined rows of 7/);
  for (
    const { kernel } of [
      plan({}, { variant: { joinedRows: false } }),
      plan({ stride: [2, 1] }),
      plan({ filterSize: [3, 5], paddingBegin: [1, 2] }),
      plan({ inputSize: [1, 7] }),
      plan({ inputSize: [9], filterSize: [3], paddingBegin: [1] }),
      // Tiles as wide as whole rows.
      plan({ inputSize: [9, 6] }),
    ]
  ) assert.doesNotMatch(kernel, /_joined/);
  const two = {
    algorithm: "winograd2d",
    tile: "F(2x2,3x3)",
    variant: { joinedRows: false },
  } as const;
  assert.throws(() => plan({}, two), /it joins no rows/);
});
