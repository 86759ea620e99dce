import assert from "#assert";
import { request } from "../../../tests/plan_request.ts";
import { gemmProblem } from "../../problem/gemm_problem.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { unknownModel } from "../device/known.ts";
import { tryPlanGemm } from "../gemm/plan.ts";
import { DEFAULT_LIMITS } from "../plan.ts";
import { planConv } from "../planner.ts";
import { expectPlanned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { planKey, shortlist, shortlistProduct } from "./shortlist.ts";

const REQUEST = request(parseDescriptor("mb8ic64ih28oc64kh3ph1"), {
  limits: DEFAULT_LIMITS,
  device: unknownModel("NVIDIA GeForce RTX 9999"),
});
const PRODUCT = { problem: gemmProblem({ m: 200, n: 300, k: 4096 }), dtype: "f32" as const };

Deno.test("shortlist() begins with the planner's choice, and has other algorithms and no plan twice", () => {
  for (const op of ["fwd", "bwd-data", "bwd-filter"] as const) {
    const request = { ...REQUEST, problem: { ...REQUEST.problem, op } };
    const entrants = shortlist(request, 4);
    assert.equal(entrants.length, 4);
    const keys = entrants.map(({ plan }) => planKey(plan));
    assert.equal(keys[0], planKey(planConv(request)));
    assert.equal(new Set(keys).size, 4);
    assert.ok(new Set(entrants.map(({ plan }) => plan.algorithm)).size > 1);
  }
});

Deno.test("what shortlist() offers auto takes as measured, with what follows the sums", () => {
  const epilogue = { bias: true, activation: "relu" as const };
  for (const { key, choice, plan } of shortlist({ ...REQUEST, epilogue }, 5)) {
    const tuning = new Map([[key, choice]]);
    const taken = planConv({ ...REQUEST, tuning });
    assert.ok(taken.measured);
    assert.equal(planKey(taken), planKey(plan));
    assert.ok(planConv({ ...REQUEST, epilogue, tuning }).measured);
  }
});

Deno.test("shortlist() leaves alone what is named, cannot be planned or is empty", () => {
  const none = (change: Partial<PlanRequest>) =>
    assert.deepEqual(shortlist({ ...REQUEST, ...change }, 3), []);
  none({ algorithm: "implicit-gemm" });
  none({ schedule: { policy: "tiny" } });
  none({ limits: { ...DEFAULT_LIMITS, maxBufferSize: 16 } });
  none({ problem: parseDescriptor("mb0ic64ih28oc64kh3ph1") });
  const depthwise = { ...REQUEST, problem: parseDescriptor("g256mb1ic256ih28oc256kh7ph3") };
  assert.equal(shortlist(depthwise, 3)[0]!.plan.algorithm, "depthwise");
});

Deno.test("what shortlistProduct() offers gemm takes as measured, with what follows the sums", () => {
  const request = { ...PRODUCT, limits: DEFAULT_LIMITS, device: REQUEST.device! };
  const entrants = shortlistProduct(request, 3);
  assert.equal(new Set(entrants.map(({ plan }) => planKey(plan))).size, 3);
  assert.equal(planKey(entrants[0]!.plan), planKey(expectPlanned(tryPlanGemm(request))));
  for (const { key, choice, plan } of entrants) {
    const tuning = new Map([[key, choice]]);
    const taken = expectPlanned(tryPlanGemm({ ...request, tuning }));
    assert.ok(taken.measured);
    assert.equal(planKey(taken), planKey(plan));
    const problem = gemmProblem({ ...PRODUCT.problem, bias: "row", activation: "gelu" });
    assert.ok(expectPlanned(tryPlanGemm({ ...request, problem, tuning })).measured);
    assert.ok(
      !expectPlanned(tryPlanGemm({ ...request, schedule: { policy: "tiny" }, tuning })).measured,
    );
    const outdated = new Map([[key, { ...choice, kernels: ["another"] }]]);
    assert.ok(!expectPlanned(tryPlanGemm({ ...request, tuning: outdated })).measured);
  }
  assert.deepEqual(shortlistProduct({ ...request, schedule: { policy: "tiny" } }, 3), []);
});
