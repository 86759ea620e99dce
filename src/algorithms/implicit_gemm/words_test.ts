import assert from "#assert";
import { request as planRequest } from "../../../tests/plan_request.ts";
import { H200_LIMITS, H200_UNITS } from "../../../bench/h200_limits.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { NO_EPILOGUE } from "../../problem/epilogue.ts";
import { DEFAULT_LIMITS } from "../plan.ts";
import { planConv, tryPlanConv } from "../planner.ts";
import { isRefusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { wordWays, writtenBytes } from "./written.ts";

const request = (problem: string, more: Partial<PlanRequest> = {}) =>
  planRequest(parseDescriptor(problem), {
    ...{ dtype: "i8", layout: "nhwc", algorithm: "implicit-gemm" },
    limits: H200_LIMITS,
    matrixUnits: H200_UNITS,
    ...more,
  });

Deno.test("the sums of int8 results that a pass of its own stores count as workspace, splits beside them too", () => {
  let [planned, split] = [0, 0];
  for (const problem of ["mb2ic64ih14oc66kh3ph1", "mb1ic512ih7oc66kh3ph1", "mb4ic30ih9oc7kh3"]) {
    for (const maxWorkspaceBytes of [5e4, 1e5, 1.1e5, 2e5, 4e5, 1e6]) {
      const plan = tryPlanConv({
        problem: parseDescriptor(problem),
        dtype: "i8",
        outDtype: "i8",
        layout: "nhwc",
        filterLayout: "krsc",
        epilogue: { ...NO_EPILOGUE, scale: 0.001 },
        algorithm: "implicit-gemm",
        limits: DEFAULT_LIMITS,
        maxWorkspaceBytes,
      });
      if (isRefusal(plan)) continue;
      planned++;
      if (plan.passes.some(({ kernel }) => kernel.name.startsWith("reduce"))) split++;
      assert.ok(plan.workspaceBytes <= maxWorkspaceBytes, `${problem} ${plan.workspaceBytes}`);
    }
  }
  assert.ok(planned > 10 && split > 3, `${planned} planned, ${split} of them split`);
});

Deno.test("wordWays() reads whole words as they lie, pads others, and has whole vectors on matrix units alone", () => {
  const ways = (problem: string, more: Partial<PlanRequest> = {}) =>
    wordWays(request(problem, more)).map(({ request: { problem }, operands }) => ({
      words: problem.inChannels,
      taps: problem.filterSize,
      copies: operands.map(({ which, elements }) => `${which} ${elements}`).join(", "),
    }));
  const taps = [3, 3];
  const lying = { words: 16, taps, copies: "" };
  assert.deepEqual(ways("mb2ic64ih8oc8kh3ph1"), [lying]);
  assert.deepEqual(ways("mb2ic64ih8oc8kh3ph1", { matrixUnits: { ...H200_UNITS, units: [] } }), [
    lying,
  ]);
  // 24 channels are six words, padded to eight; 72 with three taps among them are too many.
  assert.deepEqual(ways("mb2ic24ih8oc8kh3ph1"), [
    { words: 6, taps, copies: "" },
    { words: 8, taps, copies: `input ${2 * 64 * 8}, filter ${8 * 9 * 8}` },
  ]);
  // Three are padded to a word, to a vector, or with three taps to nine of sixteen.
  assert.deepEqual(ways("mb2ic3ih8oc8kh3ph1"), [
    { words: 1, taps, copies: `input ${2 * 64}, filter ${8 * 9}` },
    { words: 4, taps, copies: `input ${2 * 64 * 4}, filter ${8 * 9 * 4}` },
    { words: 4, taps: [3, 1], copies: `input ${2 * 64 * 4}, filter ${8 * 3 * 4}` },
  ]);
  assert.deepEqual(
    ways("mb2ic3ih8oc8kh3ph1", { matrixUnits: { ...H200_UNITS, units: [] } }).length,
    1,
  );
  // Groups are padded one by one.
  assert.deepEqual(ways("g2mb2ic6ih8oc8kh3ph1").map(({ words }) => words), [2, 8]);
  // One channel becomes 16 times as large at most, seven taps of three 32 for 3.
  assert.deepEqual(ways("mb2ic1ih8oc8kh1").map(({ words }) => words), [1, 4]);
  assert.deepEqual(ways("mb2ic3ih9oc8kh7ph3").map(({ words }) => words), [1, 4, 8]);
});

Deno.test("few channels of int8 take as much workspace as there is", () => {
  const asked = request("mb32ic3ih224oc64kh3ph1");
  const names = (more: Partial<PlanRequest>) => {
    const plan = planConv({ ...asked, ...more });
    return plan.passes.map(({ kernel }) => kernel.name.replace(/_.*/, ""));
  };
  assert.deepEqual(names({}), ["unfold", "pack", "implicit"]);
  const [word] = wordWays(asked);
  const room = writtenBytes(word) + 2 ** 20;
  const plan = planConv({ ...asked, maxWorkspaceBytes: room });
  assert.ok(plan.workspaceBytes <= room, `${plan.workspaceBytes}`);
  assert.ok(!names({ maxWorkspaceBytes: room }).includes("unfold"));
  const refused = tryPlanConv({ ...asked, maxWorkspaceBytes: 2 ** 20 });
  assert.ok(isRefusal(refused), "a copy has no room");
  // Rows of taps that are padded, and asked for, are none without room.
  const rows = { schedule: { tapRows: true } } as const;
  const few = request("mb2ic12ih32oc16kh3", rows);
  assert.match(planConv(few).kernel, /_row3_/);
  for (
    const one of [few, {
      ...few,
      dtype: "f16",
      schedule: { ...few.schedule, halfTile: true },
    }] as const
  ) {
    const lying = planConv({ ...one, maxWorkspaceBytes: 0 });
    assert.doesNotMatch(lying.kernel, /_row3_/);
    assert.equal(lying.workspaceBytes, 0);
  }
});
