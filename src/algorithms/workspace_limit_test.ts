import assert from "#assert";
import { request as planRequest } from "../../tests/plan_request.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { planConv } from "./planner.ts";
import { withWorkspaceBytes } from "./tensors.ts";

const request = planRequest(parseDescriptor("mb32ic64ih56oc64kh3ph1"), { layout: "nhwc" });
const bytes = 4 * (2 * 32 * 64 * 56 * 56 + 64 * 64 * 9);

Deno.test("withWorkspaceBytes() makes bytes of a share of the tensors, and keeps the smaller limit", () => {
  const half = withWorkspaceBytes({ ...request, dtype: "f16", maxWorkspaceShare: 1 });
  assert.equal(half.maxWorkspaceBytes, bytes / 2);
  assert.equal(withWorkspaceBytes(request), request);
  const { maxWorkspaceBytes, maxWorkspaceShare } = withWorkspaceBytes({
    ...request,
    maxWorkspaceShare: 0.5,
  });
  assert.deepEqual([maxWorkspaceBytes, maxWorkspaceShare], [bytes / 2, undefined]);
  const both = withWorkspaceBytes({ ...request, maxWorkspaceShare: 1, maxWorkspaceBytes: 1000 });
  assert.equal(both.maxWorkspaceBytes, 1000);
});

Deno.test("planConv() keeps within a share of the tensors", () => {
  assert.ok(planConv(request).workspaceBytes > bytes);
  for (const maxWorkspaceShare of [0, 0.01, 0.3, 1]) {
    const { workspaceBytes } = planConv({ ...request, maxWorkspaceShare });
    assert.ok(workspaceBytes <= maxWorkspaceShare * bytes, `${maxWorkspaceShare}`);
  }
});
