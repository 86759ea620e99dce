import assert from "#assert";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { request } from "../../../tests/plan_request.ts";
import { depthwiseTime } from "./price.ts";

Deno.test("depthwiseTime() counts the products of each image of a vector", () => {
  for (
    const [descriptor, op] of [
      ["mb16ic3ih224oc64kh3ph1", "bwd-data"],
      ["g32mb32ic256ih28oc256kh3ph1", "fwd"],
      ["mb4ic1ih256oc64kh9ph4", "bwd-data"],
    ] as const
  ) {
    const problem = parseDescriptor(descriptor, op);
    const time = (layout: "nchw" | "chwn") => depthwiseTime(request(problem, { layout }));
    const ratio = time("chwn") / time("nchw");
    assert.ok(ratio > 0.7 && ratio < 1.6, `${descriptor}: ${ratio}`);
  }
});
