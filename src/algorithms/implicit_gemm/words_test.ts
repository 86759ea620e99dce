import assert from "#assert";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { NO_EPILOGUE } from "../../problem/epilogue.ts";
import { DEFAULT_LIMITS } from "../plan.ts";
import { tryPlanConv } from "../planner.ts";
import { isRefusal } from "../refusal.ts";

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
