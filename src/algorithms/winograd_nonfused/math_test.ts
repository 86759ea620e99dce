import assert from "#assert";
import { H200_LIMITS, H200_UNITS as matrixUnits } from "../../../bench/h200_limits.ts";
import { h200, request } from "../../../tests/plan_request.ts";
import type { ConvProblem } from "../../problem/conv_problem.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { H200 } from "../device/h200.ts";
import { softwareDevice } from "../device/software.ts";
import { planConv, tryPlanConv } from "../planner.ts";
import { expectPlanned, isRefusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { geometryOf } from "./geometry.ts";
import { nonfusedGeometry, nonfusedTime } from "./price.ts";
import { operandMarks } from "./workspace.ts";

/** A request for Winograd in separate passes, of a device with matrix units. */
function asked(
  descriptor: string,
  op: ConvProblem["op"] = "fwd",
  more: Partial<PlanRequest> = {},
): PlanRequest {
  const problem = { ...parseDescriptor(descriptor), op };
  return request(problem, {
    algorithm: "winograd2d-nonfused",
    layout: "nhwc",
    matrixUnits,
    ...more,
  });
}

const CONV4 = "mb64ic256ih14oc256kh3ph1";

Deno.test("auto takes halves where they are predicted to take less, and never where they may not be", () => {
  const mathOf = (descriptor: string, more: Partial<PlanRequest> = {}) => {
    const { kernel, arithmetic } = planConv(asked(descriptor, "fwd", more));
    assert.equal(kernel.includes("_f16x3_"), arithmetic.math === "f16x3", kernel);
    return arithmetic.math ?? "f32";
  };
  assert.equal(mathOf(CONV4), "f16x3");
  assert.equal(mathOf(CONV4, { algorithm: "auto" }), "f16x3");
  // 64 channels are four steps of a tile, whose products then take as long to store.
  assert.equal(mathOf("mb64ic64ih56oc64kh3ph1"), "f32");
  assert.equal(mathOf(CONV4, { math: "f32" }), "f32");
  assert.equal(mathOf(CONV4, { schedule: { policy: "tall" } }), "f32");
  assert.equal(mathOf(CONV4, { schedule: { policy: "matrix-tall" } }), "f16x3");
  const { matrixUnits: _, ...without } = asked(CONV4);
  assert.equal(planConv(without).arithmetic.math, undefined);
  const device = { ...H200, shares: { ...H200.shares, f16x3: 0 } };
  assert.equal(mathOf(CONV4, { device }), "f32");
  assert.equal(mathOf(CONV4, { device, math: "f16x3" }), "f16x3");
  const exact = planConv(asked(CONV4, "fwd", { algorithm: "auto", exact: true }));
  assert.equal(exact.algorithm, "implicit-gemm");
  // What it takes is what takes less.
  const time = (more: Partial<PlanRequest>) =>
    nonfusedTime(expectPlanned(nonfusedGeometry(asked(CONV4, "fwd", more))));
  assert.ok(time({}) === time({ math: "f16x3" }) && time({}) < 0.95 * time({ math: "f32" }));
});

Deno.test("auto takes the tile and the products that were measured to be fastest on an H100, or within 5 % of it", () => {
  // Measured on an H100, nhwc.
  const fastest = [
    ["mb32ic512ih28oc512kh3ph1", "bwd-filter", /_f16x3_m3x3r7x7_/],
    ["mb32ic512ih14oc512kh3ph1", "bwd-filter", /_f16x3_m3x3r5x5_/],
    ["mb64ic512ih7oc512kh3ph1", "bwd-filter", /_f16x3_m3x3r4x4_/],
    ["mb128ic128ih28oc128kh3ph1", "bwd-filter", /_f32_m3x3r7x7_/],
    ["mb64ic64ih56oc64kh3ph1", "bwd-filter", /_f32_m3x3r7x7_/],
    [CONV4, "fwd", /_f16x3_m5x5r3x3_/],
    ["mb32ic128ih112oc128kh3ph1", "fwd", /_f16x3_m6x6r3x3_/],
  ] as const;
  for (const [descriptor, op, kernel] of fastest) {
    const plan = planConv(asked(descriptor, op, { algorithm: "auto", limits: H200_LIMITS }));
    assert.match(plan.kernel, kernel, `${op} ${descriptor}`);
  }
});

Deno.test("a geometry says how products are multiplied, and leaves other types alone", () => {
  const half = expectPlanned(nonfusedGeometry(asked(CONV4, "fwd", { dtype: "f16" })));
  assert.equal(half.request.math, undefined);
  const split = expectPlanned(nonfusedGeometry(asked(CONV4)));
  assert.equal(split.request.math, "f16x3");
});

Deno.test("convolutions that cannot be in halves are refused with a sentence that says why", () => {
  const cases: (readonly [PlanRequest, RegExp])[] = [
    [asked(CONV4, "fwd", { dtype: "f16", math: "f16x3" }), /^math f16x3 is of f32 operands, /],
    [asked(CONV4, "fwd", { dtype: "f16", math: "f32" }), /^math f32 is of f32 operands, the dtype/],
    [
      asked(CONV4, "fwd", { math: "f16x3", matrixUnits: { lanes: 32, units: [] } }),
      /^math f16x3 wants matrix units of f16 with f32 sums/,
    ],
    [
      asked("mb2g2ic16ih9oc16kh3sh2", "fwd", { algorithm: "auto", math: "f16x3" }),
      /^no algorithm can in math f16x3 \(implicit-gemm: its halves are of one group; winograd2d-nonfused: its stride is 2x2, not 1\)$/,
    ],
    [
      asked(CONV4, "fwd", { algorithm: "im2col", math: "f16x3" }),
      /^im2col does not support this problem: it multiplies f32 as it is/,
    ],
    [
      asked(CONV4, "fwd", { schedule: { policy: "tall" }, math: "f16x3" }),
      /^policy tall has no matrix units, which math f16x3 multiplies on$/,
    ],
    [
      asked("mb2ic20ih5oc8kh1", "fwd", { algorithm: "auto", math: "f16x3", exact: true }),
      /^math f16x3 makes three products of one, which exact forbids$/,
    ],
  ];
  for (const [one, expected] of cases) {
    const refused = tryPlanConv(one);
    assert.match(isRefusal(refused) ? refused.text : refused.kernel, expected);
  }
});

Deno.test("operandMarks() gives every key and row of both operands a word of its own", () => {
  for (const op of ["fwd", "bwd-data", "bwd-filter"] as const) {
    for (const [layout, by] of [["nhwc", "tile"], ["nchw", "image"]] as const) {
      const one = asked("mb6g2ic24ih13oc40kh3ph1", op, { layout, math: "f16x3" });
      const geometry = geometryOf(one);
      const { words, marks } = operandMarks(geometry, 32, 2);
      const spans = marks.flatMap(({ by, firstKey, firstRow, rows }) => [
        [firstKey, by === "image" ? 6 : 2 * rows] as const,
        [firstRow, 2 * rows] as const,
      ]).toSorted(([a], [b]) => a - b);
      let next = 0;
      for (const [first, count] of spans) {
        assert.equal(first, next);
        next = first + count;
      }
      assert.equal(next, words);
      const [data] = marks.filter((_, which) => geometry.operands[which]!.role === "data");
      assert.equal(data!.by, op === "bwd-filter" ? "row" : by);
      // Chunks after the first have tiles of their own.
      assert.deepEqual(data!.before, { images: 2, tiles: 2 * 4 * 4 });
    }
  }
  // More channels than a workgroup has threads for are scaled by image.
  const wide = asked("mb2ic600ih9oc8kh3ph1", "fwd", { math: "f16x3" });
  const by = (depth: number, limits = h200) =>
    operandMarks(geometryOf({ ...wide, limits }), depth).marks[0].by;
  assert.deepEqual([by(512), by(528), by(0)], ["tile", "image", "image"]);
  assert.equal(by(272, { ...h200, maxComputeInvocationsPerWorkgroup: 256 }), "image");
});

Deno.test("what halves have no bindings for is in f32, where nobody asks for halves", () => {
  const limits = { ...h200, maxStorageBuffersPerShaderStage: 8, maxBufferSize: 2 ** 40 };
  const huge = (more: Partial<PlanRequest>) =>
    tryPlanConv(asked("mb256ic128ih224oc128kh3ph1", "bwd-filter", { limits, ...more }));
  const refused = huge({ math: "f16x3" });
  assert.match(isRefusal(refused) ? refused.text : refused.kernel, / binds \d+ storage buffers/);
  for (const algorithm of ["auto", "winograd2d-nonfused"] as const) {
    const plan = huge({ algorithm });
    if (isRefusal(plan)) throw new Error(`${algorithm}: ${plan.text}`);
    assert.equal(plan.algorithm, "winograd2d-nonfused");
    assert.equal(plan.arithmetic.math, undefined);
  }
});

Deno.test("workspace of halves is what is said to be the least, marks included", () => {
  for (const op of ["fwd", "bwd-data", "bwd-filter"] as const) {
    const small = (maxWorkspaceBytes: number) =>
      tryPlanConv(asked("mb4ic40ih12oc24kh3ph1", op, { math: "f16x3", maxWorkspaceBytes }));
    const refused = small(1);
    const least = Number(/at least (\d+) bytes/.exec(isRefusal(refused) ? refused.text : "")?.[1]);
    const plan = small(least);
    if (isRefusal(plan)) throw new Error(`${op}: ${plan.text}`);
    assert.equal(plan.workspaceBytes, least);
    assert.ok(isRefusal(small(least - 1)));
    // What a run before left must not count for the next.
    const [first] = plan.passes;
    assert.match(first!.kernel.name, /^split_clear/);
    assert.equal(plan.buffers[first!.bindings[0]!.buffer]!.name, "marks");
  }
});

Deno.test("nothing to sum, and nothing to store, are planned in halves as in f32", () => {
  for (const descriptor of ["mb2ic0ih9oc8kh3ph1", "mb2ic8ih9oc0kh3ph1", "mb0ic8ih9oc8kh3ph1"]) {
    for (const op of ["fwd", "bwd-data", "bwd-filter"] as const) {
      for (const layout of ["nhwc", "nchw"] as const) {
        const plan = planConv(asked(descriptor, op, { math: "f16x3", layout }));
        for (const { grid, kernel } of plan.passes) {
          assert.ok(grid.every((size) => Number.isInteger(size) && size > 0), kernel.name);
        }
      }
    }
  }
});

Deno.test("a software device's loops are long enough for sums of what halves do not hold", () => {
  const math = (descriptor: string, op: ConvProblem["op"]) => {
    const plan = tryPlanConv(asked(descriptor, op, { math: "f16x3", device: softwareDevice(4) }));
    return isRefusal(plan) ? plan.kind : plan.arithmetic.math;
  };
  for (const op of ["fwd", "bwd-data", "bwd-filter"] as const) {
    assert.equal(math("mb2ic64ih14oc64kh3ph1", op), "f16x3", op);
    assert.equal(math("mb8ic128ih28oc128kh3ph1", op), "f16x3", op);
    assert.equal(math("mb1ic1024ih14oc1024kh3ph1", op), "f16x3", op);
  }
  // A gradient's sum is as long as there are places of all images.
  assert.equal(math(CONV4, "fwd"), "f16x3");
  assert.equal(math(CONV4, "bwd-filter"), "limit");
});
