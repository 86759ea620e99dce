import assert from "#assert";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { DEFAULT_LIMITS } from "./plan.ts";
import { planConv, tryPlanConv } from "./planner.ts";
import { isRefusal } from "./refusal.ts";
import { type Schedule, SCHEDULE_FIELDS, scheduleText } from "./schedule.ts";
import { algorithmNames } from "./registry.ts";
import { filterLayoutFor } from "../tensor/layout.ts";
import { defined } from "../defined.ts";

/** The refusal of a schedule by an algorithm; nothing where it takes it. */
function refused(algorithm: string, schedule: Schedule, op = "fwd" as const): string {
  const plan = tryPlanConv({
    problem: parseDescriptor("mb2ic16ih14oc16kh3ph1", op),
    ...{ dtype: "f32", layout: "nchw", filterLayout: "kcrs", epilogue: NO_EPILOGUE },
    ...{ algorithm, schedule, limits: DEFAULT_LIMITS },
  });
  return isRefusal(plan) ? plan.text : "";
}

Deno.test("fields of a schedule that a named algorithm does not take are refused", () => {
  assert.match(refused("direct", { policy: "small" }), /it has no tile policies \(--policy is of/);
  assert.match(refused("direct", { flush: 64 }), /it has no flush intervals /);
  assert.match(refused("depthwise", { balance: "stream-k" }), /it has no tiles that are split/);
  assert.match(refused("direct", { prefetch: false }), /its kernels come in one variant only /);
  assert.match(refused("winograd2d", { peel: false }), /kernels differ by rotated-loop alone /);
  assert.equal(refused("winograd2d", { rotatedLoop: false, splits: 2, flush: 8 }), "");
});

Deno.test("a plan's schedule, asked for, gives the plan", () => {
  const own = { dtype: "f32", epilogue: NO_EPILOGUE, limits: DEFAULT_LIMITS } as const;
  for (const algorithm of algorithmNames()) {
    for (const layout of ["nchw", "nhwc"] as const) {
      const problem = parseDescriptor(
        algorithm === "depthwise" ? "g32mb2ic32ih14oc32kh3ph1" : "mb2ic64ih14oc64kh3ph1",
        algorithm === "winrs" ? "bwd-filter" : "fwd",
      );
      const filterLayout = filterLayoutFor(layout);
      // Tiles of Winograd and pairs of WinRS are no part of a schedule.
      const tile = { winograd1d: "F(4,3)", winograd2d: "F(4x4,3x3)" }[algorithm];
      const pair = algorithm === "winrs" ? "a8n3r6,a4n3r2" : undefined;
      const chosen = { algorithm, ...defined({ tile, pair }) };
      const request = { ...own, problem, layout, filterLayout, ...chosen };
      const { schedule = {}, passes } = planConv(request);
      const again = planConv({ ...request, schedule });
      assert.deepEqual(again.schedule ?? {}, schedule);
      assert.deepEqual(
        again.passes.map(({ kernel }) => kernel.name),
        passes.map(({ kernel }) => kernel.name),
        scheduleText(schedule),
      );
    }
  }
});

Deno.test("a schedule in words", () => {
  const schedule: Schedule = { splits: 2, balance: "split-k", raster: 0, doubleBuffer: true };
  assert.equal(scheduleText(schedule), "splits 2 (split-k), raster rows, with double-buffer");
});

Deno.test("implicit-gemm takes every field, and auto passes over how sums are cut", () => {
  const schedule: Schedule = { policy: "small", splits: 2, flush: 0, prefetch: false, raster: 2 };
  assert.equal(refused("implicit-gemm", schedule), "");
  assert.equal(refused("auto", { flush: 64 }), "");
  for (const name of ["policy", "splits", "flush", "prefetch", "raster"] as const) {
    assert.ok(SCHEDULE_FIELDS.includes(name), name);
  }
});
