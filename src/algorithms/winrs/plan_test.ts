import assert from "#assert";
import { request as planRequest } from "../../../tests/plan_request.ts";
import { H200_LIMITS } from "../../../bench/h200_limits.ts";
import { H200 } from "../device/h200.ts";
import { DEFAULT_LIMITS } from "../plan.ts";
import { expectPlanned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import {
  planConfiguration as tryPlanConfiguration,
  planWinrs as tryPlanWinrs,
  segmentPicture,
  winrsGeometry,
  winrsReason,
} from "./plan.ts";
import { gridSegments, tileSegments } from "./segments.ts";
import type { SizeMode } from "../../kernels/module.ts";
import { convProblem } from "../../problem/conv_problem.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { configureAs, parsePair } from "../../../tests/support/winrs_figures.ts";

/** Figure 5's widths: ∇Y of 16 columns, a filter of 3. */
function request(more: Partial<PlanRequest> = {}): PlanRequest {
  const problem = convProblem({
    op: "bwd-filter",
    batch: 32,
    inChannels: 64,
    outChannels: 64,
    inputSize: [16, 16],
    filterSize: [3, 3],
    paddingBegin: [1, 1],
  });
  const limits = { ...DEFAULT_LIMITS, maxComputeInvocationsPerWorkgroup: 1024 };
  return planRequest(problem, { layout: "nhwc", algorithm: "winrs", limits, ...more });
}

const planWinrs = (asked: PlanRequest, mode: SizeMode) =>
  expectPlanned(tryPlanWinrs(expectPlanned(winrsGeometry(asked)), mode));
const planConfiguration = (...asked: Parameters<typeof tryPlanConfiguration>) =>
  expectPlanned(tryPlanConfiguration(...asked));

Deno.test("planWinrs() runs both kernels of Figure 5 and sums their buckets, one of which is the result", () => {
  const plan = planWinrs(request({ pair: "a8n3r6,a4n3r2", schedule: { splits: 4 } }), "constant");
  const names = plan.passes.map(({ kernel }) => kernel.name);
  assert.match(names[0]!, /^winrs_f32_a8n3r6_/);
  assert.match(names[1]!, /^winrs_f32_a4n3r2_/);
  assert.match(names[2]!, /^reduce_splits_onto_/);
  assert.ok(plan.notes.some((note) => note.includes("columns of 4 or 6")), plan.notes.join("\n"));
  const z = Number(/Z = (\d+)/.exec(plan.notes[0]!)![1]);
  assert.equal(plan.workspaceBytes, (z - 1) * 64 * 64 * 9 * 4);
  assert.ok(plan.predictedMs! > 0);
});

Deno.test("planWinrs() takes no workspace where one segment is asked for, and adds the second kernel", () => {
  const plan = planWinrs(request({ pair: "a8n3r6,a4n3r2", schedule: { splits: 1 } }), "constant");
  assert.equal(plan.workspaceBytes, 0);
  assert.equal(plan.passes.length, 2);
  assert.match(plan.passes[1]!.kernel.name, /_add_wide\./);
});

Deno.test("planWinrs() loads vectors of channels where every thread has some", () => {
  const kernels = (more: Partial<PlanRequest>) =>
    planWinrs(
      request({ pair: "a8n3r6,a4n3r2", ...more, schedule: { splits: 1, ...more.schedule } }),
      "constant",
    ).passes
      .map(({ kernel }) => kernel);
  const { problem } = request();
  const wide = (more: Partial<PlanRequest>) =>
    kernels(more).map(({ name }) => name.includes("_wide"));
  assert.deepEqual(wide({}), [false, true]);
  assert.deepEqual(wide({ layout: "chwn", filterLayout: "crsk" }), [false, false]);
  assert.deepEqual(wide({ problem: { ...problem, outChannels: 66 } }), [false, false]);
  assert.deepEqual(wide({ schedule: { policy: "16x16x4_4x4" } }), [false, false]);
  assert.deepEqual(wide({ schedule: { policy: "16x16x4_8x8" } }), [false, true]);
});

Deno.test("planWinrs() makes one kernel for all numbers of segment rows", () => {
  const { problem } = request();
  const pair = parsePair("a4n3r2", 3, 16);
  const [few, many] = [2, 16].map((rows) =>
    planConfiguration(
      request(),
      "constant",
      configureAs(problem, pair, gridSegments(16, 16, pair, rows, 1)),
    ).passes[0]!
  );
  assert.equal(few!.kernel.wgsl, many!.kernel.wgsl);
  assert.equal(8 * few!.grid[0], many!.grid[0]);
});

Deno.test("planWinrs() keeps to the workspace that is allowed", () => {
  const free = planWinrs(request(), "constant");
  assert.ok(free.workspaceBytes > 0);
  const half = planWinrs(request({ maxWorkspaceBytes: free.workspaceBytes / 2 }), "constant");
  assert.ok(half.workspaceBytes <= free.workspaceBytes / 2);
});

Deno.test("planWinrs() stores long sums in parts, as long as is asked for", () => {
  const one = { pair: "a4n3r2", schedule: { splits: 1 } };
  const long = planWinrs(request(one), "constant");
  assert.match(long.kernel, /_partial_/);
  assert.ok(long.notes.some((note) => note.includes("sums stored every 2048 products")));
  assert.doesNotMatch(
    planWinrs(request({ ...one, schedule: { ...one.schedule, flush: 0 } }), "constant").kernel,
    /_partial/,
  );
  assert.doesNotMatch(
    planWinrs(request({ ...one, schedule: { ...one.schedule, splits: 16 } }), "constant").kernel,
    /_partial/,
  );
});

Deno.test("planWinrs() takes Ω2(1,1) where every axis has a stride", () => {
  const strided = convProblem({
    op: "bwd-filter",
    batch: 2,
    inChannels: 8,
    outChannels: 8,
    inputSize: [9, 9],
    filterSize: [3, 3],
    stride: [2, 2],
  });
  assert.match(planWinrs(request({ problem: strided }), "constant").kernel, /^winrs_f32_a2n1r1_/);
});

Deno.test("planWinrs() refuses devices that no policy fits, and pairs that do not fit the filter", () => {
  const limits = { ...DEFAULT_LIMITS, maxComputeInvocationsPerWorkgroup: 8 };
  assert.throws(
    () => planWinrs(request({ limits, pair: "a8n3r6" }), "constant"),
    /no policy of 8 slices fits/,
  );
  assert.throws(() => planWinrs(request({ pair: "a8n4r5" }), "constant"), RangeError);
});

Deno.test("winrsReason() is given for everything but filter gradients", () => {
  assert.equal(winrsReason(request()), undefined);
  const forward = convProblem({ ...request().problem, op: "fwd" });
  assert.match(winrsReason(request({ problem: forward }))!, /bwd-filter/);
});

Deno.test("planWinrs() plans exact pairs, of a stride along the width the direct kernel", () => {
  const sized = (more: Partial<Parameters<typeof convProblem>[0]>) =>
    request({
      pair: "exact",
      problem: convProblem({
        op: "bwd-filter",
        batch: 2,
        inChannels: 8,
        outChannels: 8,
        inputSize: [15, 15],
        filterSize: [9, 9],
        ...more,
      }),
    });
  const exact = planWinrs(sized({}), "constant");
  assert.match(exact.kernel, /a8n3r6/);
  const strided = planWinrs(sized({ stride: [2, 2] }), "constant");
  assert.match(strided.kernel, /a2n1r1/);
  for (const steps of [{ stride: [2, 2] }, { dilation: [2, 2], inputSize: [30, 30] }]) {
    const { problem } = sized(steps);
    assert.match(winrsReason(request({ problem, pair: "a8n3r6" }))!, /only a2n1r1 is capable$/);
    assert.equal(winrsReason(request({ problem, pair: "a2n1r1" })), undefined);
  }
});

Deno.test("planWinrs() takes nested kernels in f32 where rows and columns fill their tiles, on devices that have a rate of them", () => {
  const asked = (sizes: string, more: Partial<PlanRequest> = {}) => {
    const problem = parseDescriptor(`mb32ic256${sizes}oc256`, "bwd-filter");
    return request({ problem, limits: H200_LIMITS, ...more });
  };
  const kernel = (...of: Parameters<typeof asked>) => planWinrs(asked(...of), "constant").kernel;
  assert.match(kernel("ih28kh2"), /_a4n2r3xa4n2r3_64x32x8_/);
  assert.match(kernel("ih28kh3ph1"), /_a4n3r2xa4n3r2_64x32x8_/);
  // 14 of 15 places along either axis, rows with a stride, and f16.
  assert.match(kernel("ih15kh2"), /_a4n2r3_/);
  assert.match(kernel("ih28iw28kh2kw2sh2sw1"), /_a4n2r3_/);
  const half = { dtype: "f16", schedule: { halfTile: true }, maxBoundRatio: 1e9 } as const;
  assert.doesNotMatch(kernel("ih28kh2", half), /_a4n2r3xa4n2r3_/);
  const { "a4n2r3xa4n2r3": _, ...winrs } = H200.rates.winrs;
  const device = { ...H200, rates: { ...H200.rates, winrs } };
  assert.match(kernel("ih28kh2", { device }), /_a4n2r3_/);
  // What the gate simulates.
  const nested = asked("ih28kh2");
  const { arithmetic } = planWinrs(nested, "constant");
  const tile = { n: 2, r: 3 };
  assert.deepEqual(arithmetic.tiles!.map(({ axes }) => axes), [[tile, tile]]);
});

Deno.test("planWinrs() multiplies 32 slices in two kernels, of channels innermost alone unless asked, and where these take long", () => {
  const kernels = (sizes: string, more: Partial<PlanRequest> = {}) => {
    const problem = parseDescriptor(sizes, "bwd-filter");
    const plan = planWinrs(request({ problem, limits: H200_LIMITS, ...more }), "constant");
    return plan.passes.map(({ kernel }) => kernel.name).filter((name) => name.startsWith("winrs"));
  };
  const large = "mb64ic256ih56oc256kh3ph1";
  const [first, second] = kernels(large);
  assert.match(first!, /_a4n3r2xa8n3r6_64x32x8_8x16_.*_set0\b/);
  assert.match(second!, /_a4n3r2xa8n3r6_64x32x8_8x16_.*_add_set1\b/);
  assert.match(kernels("mb32ic128ih65oc128kh4ph1")[0]!, /_a4n2r3xa8n4r5_/);
  assert.match(kernels("mb64ic64ih56oc64kh3ph1")[0]!, /_a4n3r2xa4n3r2_/);
  for (const layout of ["nchw", "chwn"] as const) {
    assert.doesNotMatch(kernels(large, { layout }).join(), /_set/);
    assert.match(kernels(large, { layout, pair: "a4n3r2xa8n3r6" }).join(), /_set1/);
  }
});

Deno.test("winrsReason() has nested kernels first of a pair or behind each other, and in f32 tiles", () => {
  const reason = (pair: string, more: Partial<PlanRequest> = {}) =>
    winrsReason(request({ pair, ...more }));
  assert.equal(reason("a4n3r2xa4n3r2,a8n3r6"), undefined);
  assert.equal(reason("a4n3r2xa8n3r6,a4n3r2xa4n3r2"), undefined);
  assert.match(reason("a8n3r6,a4n3r2xa4n3r2")!, /which the first of its pair does not$/);
  const half = { dtype: "f16", schedule: { halfTile: true } } as const;
  assert.match(reason("a4n3r2xa4n3r2", half)!, /in f32 tiles alone$/);
});

Deno.test("segmentPicture() draws Figure 3's nine segments with their heights, widths and numbers", () => {
  const pair = parsePair("a8n3r6,a4n3r2", 3, 28);
  assert.deepEqual(segmentPicture(tileSegments(28, 28, pair, { height: 9, width: 12 })), [
    "        12a   12a    4b",
    "   10     0     1     2",
    "    9     3     4     5",
    "    9     6     7     8",
  ]);
});

Deno.test("segmentPicture() leaves out the middle of many rows, and draws nothing of one segment", () => {
  const pair = parsePair("a4n3r2", 3, 8);
  assert.deepEqual(segmentPicture(gridSegments(16, 8, pair, 8, 1)), [
    "         8a",
    "    2     0",
    "    2     1",
    "  ...   ...",
    "    2     7",
  ]);
  assert.deepEqual(segmentPicture(gridSegments(16, 8, pair, 1, 1)), []);
});
