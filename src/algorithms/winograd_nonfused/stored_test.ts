import assert from "#assert";
import { convProblem, OPERATIONS } from "../../problem/conv_problem.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { NO_EPILOGUE } from "../../problem/epilogue.ts";
import { filterLayoutFor } from "../../tensor/layout.ts";
import { parseTile } from "../../winograd/tile.ts";
import { predictMs, rankRivals } from "../cost/choose.ts";
import { DEFAULT_LIMITS } from "../plan.ts";
import { planConv, tryPlanConv } from "../planner.ts";
import { isRefusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { halvedError } from "./stored.ts";

const LIMITS = {
  ...DEFAULT_LIMITS,
  maxComputeWorkgroupStorageSize: 49152,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxStorageBufferBindingSize: 2 ** 31 - 4,
  maxBufferSize: 2 ** 32,
};
const CONV3 = parseDescriptor("mb64ic128ih28oc128kh3ph1");

function request(more: Partial<PlanRequest> = {}): PlanRequest {
  const layout = more.layout ?? "nchw";
  return {
    problem: CONV3,
    dtype: "f16",
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: NO_EPILOGUE,
    algorithm: "winograd2d-nonfused",
    limits: LIMITS,
    ...more,
  };
}

const halved = (more: Partial<PlanRequest>) =>
  planConv(request(more)).kernel.includes("_half_transforms");

Deno.test("transformed data of f16 takes half the bytes where that is asked for, in all operations", () => {
  for (const op of OPERATIONS) {
    for (const layout of ["nchw", "nhwc"] as const) {
      const problem = { ...CONV3, op };
      const tile = op === "bwd-filter" ? "F(3x3,4x4)" : "F(4x4,3x3)";
      const free = { problem, layout, tile };
      const asked = { ...free, splits: 1, variant: { halfTransforms: true } };
      assert.ok(halved(asked), `${op} ${layout}`);
      const whole = planConv(request({ ...free, splits: 1, dtype: "f32" })).workspaceBytes;
      const half = planConv(request(asked)).workspaceBytes;
      assert.equal(half, whole / 2, `${op} ${layout}`);
      // An H200 takes 1.2 to 1.6 times as long.
      const thin = { ...parseDescriptor("mb32ic64ih56oc64kh3ph1"), op };
      const time = (halfTransforms: boolean) => {
        const named = request({ ...free, problem: thin, variant: { halfTransforms } });
        return predictMs(named, "winograd2d-nonfused") as number;
      };
      assert.ok(time(true) > time(false), `${op} ${layout}: ${time(true)} ${time(false)}`);
    }
  }
});

Deno.test("it stays in f32 unasked, and takes half the bytes of any tile, layout and result that are named", () => {
  const tile = "F(4x4,3x3)";
  assert.ok(!halved({ tile }));
  assert.ok(!halved({ tile, variant: { halfTransforms: false } }));
  const variant = { halfTransforms: true };
  for (
    const more of [{ tile }, { tile: "F(6x6,3x3)" }, { tile, outDtype: "f32" }, {
      tile,
      layout: "chwn",
    }] as const
  ) {
    assert.ok(halved({ ...more, variant }));
  }
});

Deno.test("halvedError() has tiles of one axis, two, and unlike ones", () => {
  const of = (tile: string) => halvedError(parseTile(tile));
  assert.equal(of("F(4,3)"), 1.8);
  assert.equal(of("F(1x4,1x3)"), 1.8);
  assert.ok(Math.abs(of("F(4x4,3x3)") - 3.49) < 1e-9);
  assert.ok(of("F(4x2,3x3)") > of("F(2x2,3x3)") && of("F(4x2,3x3)") < of("F(4x4,3x3)"));
  assert.equal(of("F(8x8,3x3)"), Infinity);
  assert.equal(of("F(1x1,3x3)"), 1);
});

Deno.test("auto weighs half the bytes where they are asked for, of tiles that err little enough", () => {
  const best = (more: Partial<PlanRequest>) =>
    rankRivals(request({ algorithm: "auto", ...more }))[0]!;
  const variant = { halfTransforms: true };
  const half = best({ variant });
  assert.deepEqual([half.algorithm, half.tile], ["winograd2d-nonfused", "F(4x4,3x3)"]);
  const whole = best({});
  assert.equal(whole.algorithm, "winograd2d-nonfused");
  assert.ok(half.predictedMs! > whole.predictedMs!);
  const tiles = (more: Partial<PlanRequest>) =>
    rankRivals(request({ algorithm: "auto", variant, ...more }))
      .filter(({ reason }) => reason === undefined).map(({ tile }) => tile);
  assert.ok(!tiles({}).includes("F(6x6,3x3)"));
  assert.ok(tiles({ maxBoundRatio: 1e9 }).includes("F(6x6,3x3)"));
});

Deno.test("half-transforms is refused where there are none, of f32, and where errors would fail the gate", () => {
  const variant = { halfTransforms: true };
  const refused = (more: Partial<PlanRequest>) => {
    const planned = tryPlanConv(request({ variant, ...more }));
    return isRefusal(planned) ? planned.text : "";
  };
  assert.match(refused({ algorithm: "direct" }), /keeps no transformed data/);
  assert.match(refused({ dtype: "f32" }), /half-transforms is of f16/);
  const large = { tile: "F(14x14,3x3)" };
  assert.match(refused(large), /in half the bytes, 0\.02 is allowed/);
  assert.equal(refused({ ...large, maxBoundRatio: 1e9 }), "");
  assert.match(refused({ tile: "F(6x6,3x3)", outDtype: "f32" }), /0\.001 is allowed/);
  const small = convProblem({
    batch: 1,
    inChannels: 0,
    outChannels: 4,
    inputSize: [5, 5],
    filterSize: [3, 3],
  });
  assert.equal(refused({ problem: small }), "");
});
