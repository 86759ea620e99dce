import assert from "#assert";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { request } from "../../../tests/plan_request.ts";
import { expectPlanned } from "../refusal.ts";
import { nonfusedGeometry, nonfusedTime } from "./price.ts";

Deno.test("nonfusedTime() of one image is what an H200 took: large transforms take longer, however little they move", () => {
  // Milliseconds measured on an H200.
  const problem = parseDescriptor("mb1ic64ih56oc64kh3ph1", "fwd");
  for (
    const [tile, ms] of [
      ["F(2x2,3x3)", 0.01577],
      ["F(4x4,3x3)", 0.01920],
      ["F(6x6,3x3)", 0.02331],
    ] as const
  ) {
    const geometry = expectPlanned(nonfusedGeometry(request(problem, { layout: "nhwc", tile })));
    const ratio = nonfusedTime(geometry) / 1e3 / ms;
    assert.ok(ratio > 0.85 && ratio < 1.15, `${tile}: ${ratio}`);
  }
});
