import assert from "#assert";
import { request as planRequest } from "../../../tests/plan_request.ts";
import { UnsupportedError } from "../../errors.ts";
import { type ConvProblem, convProblem, OPERATIONS } from "../../problem/conv_problem.ts";
import { LAYOUTS } from "../../tensor/layout.ts";
import { formatTile } from "../../winograd/tile.ts";
import { DEFAULT_LIMITS } from "../plan.ts";
import { planConv, tryPlanConv } from "../planner.ts";
import { expectPlanned, isRefusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { defaultTile, nonfusedReason } from "./geometry.ts";
import { nonfusedGeometry, nonfusedTime } from "./price.ts";
import { DEFAULT_CHUNK_BYTES } from "./workspace.ts";

function problemOf(
  batch: number,
  channels: number,
  size: readonly number[],
  filter: readonly number[],
): ConvProblem {
  return convProblem({
    batch,
    inChannels: channels,
    outChannels: channels,
    inputSize: size,
    filterSize: filter,
    paddingBegin: filter.map((length) => Math.floor(length / 2)),
  });
}

const conv2 = problemOf(64, 64, [56, 56], [3, 3]);

const request = (problem: ConvProblem, more: Partial<PlanRequest> = {}) =>
  planRequest(problem, { algorithm: "winograd2d-nonfused", ...more });

Deno.test("defaultTile() steps by 4, by less where that leaves fewer products", () => {
  const tile = (size: number, filter: readonly number[], op: ConvProblem["op"] = "fwd") =>
    formatTile(defaultTile({ ...problemOf(1, 1, filter.map(() => size), filter), op }));
  assert.equal(tile(56, [3, 3]), "F(4x4,3x3)");
  assert.equal(tile(7, [3, 3]), "F(4x4,3x3)");
  assert.equal(tile(5, [3, 3]), "F(3x3,3x3)");
  assert.equal(tile(56, [5, 5]), "F(4x4,5x5)");
  assert.equal(tile(56, [7, 7]), "F(2x2,7x7)");
  assert.equal(tile(56, [9, 9]), "F(2x2,9x9)");
  assert.equal(tile(56, [1, 7]), "F(1x2,1x7)");
  assert.equal(tile(56, [1, 1]), "F(1x1,1x1)");
  assert.equal(tile(56, [3]), "F(4,3)");
  assert.equal(tile(56, [3, 3], "bwd-filter"), "F(3x3,4x4)");
  assert.equal(tile(56, [5, 5], "bwd-filter"), "F(5x5,4x4)");
  assert.equal(tile(56, [3, 3], "bwd-data"), "F(4x4,3x3)");
});

Deno.test("nonfusedReason() says what there is no algorithm for", () => {
  const stride = { ...conv2, stride: [2, 1], outputSize: [28, 56] };
  assert.equal(nonfusedReason(request(stride)), "its stride is 2x1, not 1");
  const halves = { ...request({ ...conv2, dilation: [1, 2] }), math: "f16x3" as const };
  assert.match(nonfusedReason(halves)!, /dilation is 1x2, in math f16x3/);
  const solid = problemOf(1, 1, [4, 4, 4], [3, 3, 3]);
  assert.match(nonfusedReason(request(solid))!, /3 spatial axes, 1 and 2 are supported/);
  const long = problemOf(1, 1, [40, 40], [17, 17]);
  assert.match(nonfusedReason(request(long))!, /filter is 17 long, 16 are supported/);
  const tile = "F(4x4,5x5)";
  assert.match(nonfusedReason(request(conv2, { tile }))!, /for filters of 5x5, this one is 3x3/);
  assert.equal(nonfusedReason(request(conv2, { tile: "F(6x2,3x3)" })), undefined);
  const gradient: ConvProblem = { ...conv2, op: "bwd-filter" };
  assert.equal(nonfusedReason(request(gradient, { tile: "F(3x3,2x2)" })), undefined);
  assert.match(nonfusedReason(request(gradient, { tile: "F(2x2,3x3)" }))!, /filters of 2x2/);
  assert.throws(
    () => planConv(request(stride)),
    /winograd2d-nonfused does not support this problem: its stride is 2x1, not 1/,
  );
});

Deno.test("the workspace is both transformed operands and the products, 36 floats of each for F(4x4,3x3)", () => {
  for (const layout of LAYOUTS) {
    const plan = planConv(request(conv2, { layout, schedule: { policy: "small", splits: 1 } }));
    const tiles = 64 * 14 * 14;
    assert.equal(plan.workspaceBytes, 4 * 36 * (64 * 64 + 64 * tiles + 64 * tiles));
    assert.equal(plan.passes.length, 4);
    assert.equal(plan.multiplications, 36 * 64 * 64 * tiles);
    const [transform, , product] = plan.passes;
    assert.equal(transform!.multiplications, 0);
    assert.equal(product!.multiplications, 64 * 64 * 64 * 56 * 56 * 9);
    assert.match(plan.kernel, /^winograd2d_nonfused_fwd_f32_m4x4r3x3_64x64x16_/);
  }
});

Deno.test("backward-filter sums its products over all tiles", () => {
  const gradient: ConvProblem = { ...conv2, op: "bwd-filter" };
  const plan = planConv(request(gradient, { schedule: { policy: "small", splits: 4 } }));
  const tiles = 64 * 14 * 14;
  const products = 36 * 64 * 64;
  assert.equal(plan.workspaceBytes, 4 * (2 * 36 * 64 * tiles + products + 4 * products));
  assert.equal(plan.passes.length, 5);
});

Deno.test("a batch is divided so that a chunk's operand and products stay below the default", () => {
  const vgg = problemOf(32, 64, [224, 224], [3, 3]);
  const plan = planConv(request(vgg));
  const [filter, ...others] = plan.buffers.filter(({ role }) => role === "workspace");
  assert.match(filter!.name, /filter/);
  const bytes = others.reduce((sum, buffer) => sum + buffer.bytes, 0);
  assert.ok(bytes <= DEFAULT_CHUNK_BYTES && bytes > DEFAULT_CHUNK_BYTES / 2, `${bytes}`);
  assert.equal((plan.passes.length - 1) % 3, 0);
  assert.ok(plan.passes.length > 4);
  // A limit of the user's stands in place of the default.
  const once = planConv(request(vgg, { maxWorkspaceBytes: 2 ** 32 }));
  assert.equal(once.passes.length, 4);
});

/** What the refusal says that it takes at least. */
function leastWorkspace(problem: ConvProblem, more: Partial<PlanRequest>): number {
  const refused = tryPlanConv(request(problem, { ...more, maxWorkspaceBytes: 1000 }));
  const text = isRefusal(refused) ? refused.text : "planned";
  return Number(/takes at least (\d+) bytes of workspace/.exec(text)![1]);
}

Deno.test("chunks of backward-filter are as many as split sums need, where whole ones are slow", () => {
  // 36 products of 64 x 64: whole, they are 36 tiles. In one chunk the sums of splits take more than the limit.
  const problem = { ...conv2, op: "bwd-filter" } as const;
  const plan = planConv(request(problem, { layout: "nhwc", maxWorkspaceBytes: 128e6 }));
  assert.match(plan.kernel, /_split$/);
  assert.ok(plan.workspaceBytes <= 128e6);
  const ms = (more: Partial<PlanRequest>) =>
    nonfusedTime(expectPlanned(nonfusedGeometry(request(problem, { layout: "nhwc", ...more }))));
  assert.ok(ms({ maxWorkspaceBytes: 128e6 }) < 1.2 * ms({}));
  // Of tiles that are padded less more of the batch has room: little above the least, four images.
  const conv5 = { ...problemOf(32, 512, [7, 7], [3, 3]), op: "fwd" } as const;
  const least = leastWorkspace(conv5, { layout: "nhwc" });
  const tight = planConv(
    request(conv5, { layout: "nhwc", maxWorkspaceBytes: Math.floor(1.06 * least) }),
  );
  assert.equal(tight.passes.length, 1 + 8 * 3);
});

Deno.test("every limit from the least on is kept, and the refusal names the least", () => {
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      const problem: ConvProblem = { ...problemOf(12, 24, [14, 14], [3, 3]), op };
      const at = (maxWorkspaceBytes: number) =>
        planConv(request(problem, { layout, maxWorkspaceBytes }));
      assert.throws(() => at(1000), RangeError);
      const least = leastWorkspace(problem, { layout });
      assert.equal(at(least).workspaceBytes, least);
      assert.throws(() => at(least - 1), RangeError);
      let passes = Infinity;
      for (const factor of [1, 1.3, 2, 4, 16]) {
        const plan = at(Math.floor(factor * least));
        assert.ok(plan.workspaceBytes <= factor * least);
        assert.ok(plan.passes.length <= passes);
        passes = plan.passes.length;
        for (const { bindings } of plan.passes) {
          for (const { buffer, offset, size } of bindings) {
            assert.ok(offset % 256 === 0 && size > 0);
            assert.ok(offset + size <= plan.buffers[buffer]!.bytes);
          }
        }
      }
    }
  }
});

Deno.test("a plan refuses what a device cannot hold", () => {
  const huge = problemOf(1, 512, [512, 512], [3, 3]);
  const limits = {
    ...DEFAULT_LIMITS,
    maxBufferSize: 2 ** 29,
    maxStorageBufferBindingSize: 2 ** 29,
  };
  assert.throws(() => planConv(request(huge, { limits })), UnsupportedError);
});

Deno.test("plans say how much they enlarge errors, and describe themselves", () => {
  const at = (tile: string) => planConv(request(conv2, { tile }));
  const [small, large] = [at("F(2x2,3x3)"), at("F(6x6,3x3)")];
  assert.ok(small.amplification! >= 1 && large.amplification! > small.amplification!);
  assert.match(at("F(4x4,3x3)").notes[0]!, /12544 tiles of 4 x 4, 0 % of them beyond the edge/);
  const seven = planConv(request(problemOf(64, 8, [7, 7], [3, 3])));
  assert.match(seven.notes[0]!, /23 % of them beyond the edge; 36 products in place of 144/);
  assert.match(seven.notes[1]!, /in one chunk of the batch/);
});
