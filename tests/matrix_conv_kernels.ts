/** Convolutions on matrix units tap by tap, for tests of what their kernels are: of every shape that NVIDIA's GPUs have. */
import assert from "#assert";
import { planConv } from "../src/algorithms/planner.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import type { Kernel } from "../src/kernels/kernel.ts";
import { matrixPolicies } from "../src/kernels/matrix_policies.ts";
import {
  type ConvProblem,
  convProblem,
  type ConvProblemInit,
  type Operation,
  OPERATIONS,
} from "../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { type Layout, LAYOUTS } from "../src/tensor/layout.ts";
import { limits, type PRODUCTS } from "./matrix_kernels.ts";
import { request } from "./plan_request.ts";

type Asked = Partial<PlanRequest> & Pick<PlanRequest, "algorithm">;

/** A convolution of two axes, with what of it matters to how its kernels load and store. */
function conv(
  op: Operation,
  [groups, inChannels, outChannels]: readonly [number, number, number],
  filterSize: readonly [number, number],
  more: Partial<ConvProblemInit> = {},
): ConvProblem {
  return convProblem({
    ...{ op, batch: 8, groups, inChannels, outChannels, filterSize, inputSize: [28, 30] },
    ...more,
  });
}

const [TAPWISE, LAST] = [{ algorithm: "implicit-gemm" }, {
  algorithm: "implicit-gemm",
  schedule: { channelsLast: true },
}] as const satisfies readonly Asked[];

/**
 * Convolutions of f16 tap by tap, by how their operands lie: what kernels' names say of each. Strides along the last axis, and filters
 * of one tap along it, have no rows of taps.
 */
const HALF_CONVS: readonly (readonly [ConvProblem, Layout, Asked, RegExp])[] = [
  [conv("fwd", [1, 64, 200], [3, 3], { stride: [1, 2] }), "nhwc", TAPWISE, /_nhwc_2d_tap_/],
  [conv("fwd", [1, 24, 72], [3, 3], { stride: [2, 2] }), "nhwc", TAPWISE, /_nhwc_2d_(linear|tap)_/],
  [conv("fwd", [1, 72, 200], [1, 1]), "nhwc", TAPWISE, /_nhwc_2d_point_/],
  [conv("bwd-data", [1, 72, 128], [3, 1]), "nhwc", TAPWISE, /_nhwc_2d_tap_/],
  [conv("bwd-data", [1, 72, 200], [1, 1]), "nhwc", TAPWISE, /_nhwc_2d_point_/],
  [conv("bwd-filter", [1, 72, 200], [3, 3], { stride: [2, 2] }), "nhwc", TAPWISE, /_nhwc_2d_rsc_/],
  [conv("bwd-filter", [1, 72, 200], [1, 1]), "nhwc", TAPWISE, /_nhwc_2d_point_/],
  // Channels of groups are not padded, so that images are read as they lie.
  ...OPERATIONS.flatMap((op) =>
    (["nchw", "chwn"] as const).flatMap((layout) =>
      [40, 120].map((channels) =>
        [
          conv(op, [2, channels, channels], [3, 3]),
          layout,
          TAPWISE,
          new RegExp(`_${layout}_2d_`),
        ] as const
      )
    )
  ),
  [conv("bwd-filter", [1, 20, 40], [1, 1]), "chwn", TAPWISE, /_chwn_2d_point_/],
  ...OPERATIONS.map((op) =>
    [
      conv(op, [1, 40, 72], [3, 3], { stride: [2, 1] }),
      "nchw",
      LAST,
      op === "bwd-filter" ? /_nhwc_2d_/ : /_nhwc_to_nchw_2d_/,
    ] as const
  ),
  // Few channels, with the taps of the last axis among them, and such as are padded.
  [conv("fwd", [1, 3, 64], [7, 7], { stride: [2, 2] }), "nhwc", TAPWISE, /_nhwc_2d_/],
  [conv("bwd-filter", [1, 3, 64], [7, 7], { stride: [2, 2] }), "nchw", LAST, /_nhwc_2d_/],
  [conv("bwd-data", [1, 64, 21], [3, 3]), "nhwc", LAST, /_nhwc_2d_/],
  ...LAYOUTS.map((layout) =>
    [
      conv("fwd", [1, 40, 72], [3, 3]),
      layout,
      { algorithm: "im2win-fused" },
      new RegExp(`^im2win_fused_.*_${layout}_2d_`),
    ] as const
  ),
];

/** The same of int8, whose channels are words of four, and padded where they are not. */
const BYTE_CONVS: typeof HALF_CONVS = [
  [conv("fwd", [1, 64, 200], [3, 3], { stride: [1, 2] }), "nhwc", TAPWISE, /_nhwc_2d_tap_/],
  [conv("fwd", [1, 3, 64], [7, 7], { stride: [2, 2] }), "nhwc", TAPWISE, /_nhwc_2d_(linear|tap)_/],
  [conv("fwd", [1, 24, 72], [3, 3], { stride: [2, 2] }), "nhwc", TAPWISE, /_nhwc_2d_(linear|tap)_/],
  [conv("fwd", [1, 96, 72], [1, 1]), "nhwc", TAPWISE, /_nhwc_2d_point_/],
  [conv("fwd", [2, 12, 10], [3, 3]), "nhwc", TAPWISE, /_nhwc_2d_/],
];

/** What of the kernels' names tells how they walk taps, and which passes stand beside them. */
const HALF_TRAITS =
  "nhwc_2d_tap nhwc_2d_linear nhwc_2d_point nhwc_to_nchw_2d_tap nchw_2d_tap nchw_2d_linear chwn_2d_tap chwn_2d_linear _rsc_ _crs_ _classes _stored _flush unfold"
    .split(" ");
const BYTE_TRAITS = "nhwc_2d_tap nhwc_2d_linear nhwc_2d_point quantize pack_bytes unfold_i8".split(
  " ",
);

/** Convolutions by implicit GEMM and from windows built on the way, with every policy of the unit. */
export function convKernels({ unit, lanes, dtype }: (typeof PRODUCTS)[number]): Kernel[] {
  const found = new Map<string, Kernel>();
  const bytes = dtype === "i8";
  for (const [problem, layout, asked, name] of bytes ? BYTE_CONVS : HALF_CONVS) {
    const gathered = !bytes && layout === "nhwc" && problem.op !== "bwd-filter" &&
      asked.algorithm === "implicit-gemm";
    const ways: readonly Partial<PlanRequest>[] = bytes
      ? [{}, { outDtype: "i8", epilogue: { ...NO_EPILOGUE, scale: 0.01 } }]
      : [{}, { outDtype: "f32", schedule: { flush: 128 } }];
    const policies = matrixPolicies(unit, lanes, false, { gathered });
    for (const [i, { name: policy }] of policies.entries()) {
      const plan = planConv(
        request(problem, {
          ...{ dtype, layout, limits, matrixUnits: { lanes, units: [unit] } },
          ...asked,
          ...ways[i % 2],
          sizes: i % 4 < 2 ? "constant" : "uniform",
          schedule: { policy, ...asked.schedule, ...ways[i % 2]?.schedule },
        }),
      );
      assert.match(plan.kernel, name, policy);
      assert.match(plan.kernel, /_mma/);
      for (const { kernel } of plan.passes) {
        assert.ok(kernel.workgroupBytes <= 49_152, `${kernel.name}: ${kernel.workgroupBytes}`);
        found.set(kernel.name, kernel);
      }
    }
  }
  const traits = bytes ? BYTE_TRAITS : HALF_TRAITS;
  const names = [...found.keys()].join();
  for (const trait of traits) assert.ok(names.includes(trait), `${trait} is in no name`);
  return [...found.values()];
}
