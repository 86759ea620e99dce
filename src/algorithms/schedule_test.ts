import assert from "#assert";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { DEFAULT_LIMITS } from "./plan.ts";
import { tryPlanConv } from "./planner.ts";
import { isRefusal } from "./refusal.ts";
import { type Schedule, SCHEDULE_FIELDS } from "./schedule.ts";

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

Deno.test("implicit-gemm takes every field, and auto passes over how sums are cut", () => {
  const schedule: Schedule = { policy: "small", splits: 2, flush: 0, prefetch: false, raster: 2 };
  assert.equal(refused("implicit-gemm", schedule), "");
  assert.equal(refused("auto", { flush: 64 }), "");
  for (const name of ["policy", "splits", "flush", "prefetch", "raster"] as const) {
    assert.ok(SCHEDULE_FIELDS.includes(name), name);
  }
});
