import assert from "#assert";
import { request } from "../../../tests/plan_request.ts";
import { UnsupportedError } from "../../errors.ts";
import { convProblem, OPERATIONS } from "../../problem/conv_problem.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { LAYOUTS } from "../../tensor/layout.ts";
import { H200 } from "../device/h200.ts";
import { softwareDevice } from "../device/software.ts";
import { DEFAULT_LIMITS, type DeviceLimits } from "../plan.ts";
import { planConv, tryPlanConv } from "../planner.ts";
import { expectPlanned, refusal } from "../refusal.ts";
import { planFastest } from "./auto.ts";

const CONV3 = parseDescriptor("mb32ic128ih28oc128kh3ph1", "fwd");

Deno.test("auto explains its choice and lists its rivals", () => {
  const plan = planConv(request(CONV3));
  assert.equal(plan.algorithm, "winograd2d-nonfused");
  assert.equal(plan.rivals![0]!.predictedMs, plan.predictedMs);
  assert.ok(plan.rivals!.some(({ algorithm }) => algorithm === "implicit-gemm"));
  assert.match(
    plan.notes.at(-1)!,
    /^auto: winograd2d-nonfused F\(\dx\d,3x3\) is predicted to take 0\.\d+ ms on an NVIDIA H200, winograd/,
  );
});

Deno.test("auto stays below the workspace that the user allows", () => {
  for (const op of OPERATIONS) {
    for (const maxWorkspaceBytes of [64e6, 8e6, 1e6, 0]) {
      const plan = planConv(request({ ...CONV3, op }, { maxWorkspaceBytes }));
      assert.ok(plan.workspaceBytes <= maxWorkspaceBytes, `${op}: ${plan.workspaceBytes}`);
    }
  }
});

Deno.test("auto plans every kind of problem in every layout", () => {
  const problems = [
    "mb2ic8iw40oc8kw5pw2",
    "mb1ic6id5ih6iw7oc4kd3kh3kw3pd1ph1pw1",
    "mb2ic8ih9oc8kh3sh2ph1",
    "mb2ic8ih9oc8kh3dh1ph2",
    "mb2g4ic64ih9oc64kh3ph1",
    "mb2g8ic8ih9oc8kh3ph1",
    "mb1ic3ih16oc5kh1",
    "mb1ic3ih20oc5kh11ph5",
    "mb1ic3ih20iw31oc5kh1kw9pw4",
  ];
  for (const text of problems) {
    for (const op of OPERATIONS) {
      for (const layout of LAYOUTS) {
        const plan = planConv(request(parseDescriptor(text, op), { layout }));
        assert.ok(plan.passes.length > 0, `${text} ${op} ${layout}`);
      }
    }
  }
  const empty = planConv(request(convProblem({ ...CONV3, batch: 0 })));
  assert.deepEqual(empty.passes, []);
});

Deno.test("auto leaves thin groups and single channels to depthwise, on CPUs too", () => {
  const thin = planConv(request(parseDescriptor("mb2g16ic64ih9oc64kh3ph1", "fwd")));
  assert.equal(thin.algorithm, "depthwise");
  assert.match(thin.notes.at(-1)!, /^auto: groups of 4 rows/);
  // Groups of a few more rows are weighed; those that fill tiles are products.
  const algorithmOf = (groups: number) => {
    const wide = planConv(request(parseDescriptor(`mb32g${groups}ic512ih14oc512kh3ph1`, "fwd")));
    assert.ok(wide.rivals!.some(({ algorithm }) => algorithm === "depthwise"));
    return wide.algorithm;
  };
  assert.equal(algorithmOf(64), "depthwise");
  assert.notEqual(algorithmOf(16), "depthwise");
  for (const device of [H200, softwareDevice(4)]) {
    const single = parseDescriptor("mb2g64ic64ih9oc128kh3ph1", "fwd");
    const plan = planConv(request(single, { device }));
    assert.equal(plan.algorithm, "depthwise");
    assert.equal(plan.notes.at(-1), "auto: one filter a channel");
  }
});

Deno.test("auto keeps to the tiles, pairs and policies that are asked for", () => {
  const tiled = planConv(request(CONV3, { tile: "F(2x2,3x3)" }));
  assert.match(tiled.algorithm, /^winograd2d/);
  assert.match(tiled.kernel, /2x2r3x3/);
  assert.equal(planConv(request(CONV3, { tile: "F(6,3)" })).algorithm, "winograd1d");
  const paired = planConv(request({ ...CONV3, op: "bwd-filter" }, { pair: "a4n3r2" }));
  assert.match(paired.kernel, /^winrs_f32_a4n3r2/);
  assert.equal(
    planConv(request(CONV3, { schedule: { policy: "small" } })).algorithm,
    "implicit-gemm",
  );
  const strided = parseDescriptor("mb2ic8ih9oc8kh3sh2ph1", "fwd");
  assert.throws(
    () => planConv(request(strided, { tile: "F(2x2,3x3)" })),
    /no algorithm can \(winograd2d-nonfused: its stride is 2x2, not 1; winograd2d: stride 2/,
  );
});

Deno.test("planFastest() takes the next where a candidate does not fit, and says so", () => {
  const asked = request(CONV3, { limits: DEFAULT_LIMITS });
  const plan = expectPlanned(
    planFastest(
      asked,
      (one) =>
        one.algorithm === "winograd2d-nonfused"
          ? refusal("limit", "the device is too small")
          : tryPlanConv(one),
    ),
  );
  assert.notEqual(plan.algorithm, "winograd2d-nonfused");
  const refused = plan.rivals!.filter(({ reason }) => reason === "the device is too small");
  assert.deepEqual(refused.map(({ tile }) => tile).sort(), [
    "F(2x2,3x3)",
    "F(4x4,3x3)",
    "F(5x5,3x3)",
    "F(6x6,3x3)",
  ]);
});

Deno.test("planFastest() is refused as the last candidate, and lets faults through", () => {
  const limits: DeviceLimits = { ...DEFAULT_LIMITS, maxStorageBuffersPerShaderStage: 1 };
  assert.throws(() => planConv(request(CONV3, { limits })), UnsupportedError);
  assert.throws(
    () =>
      planFastest(request(CONV3), () => {
        throw new TypeError("a fault");
      }),
    TypeError,
  );
});
