import assert from "#assert";
import { request } from "../../../tests/plan_request.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { depthwiseTime } from "./algorithm.ts";

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

Deno.test("depthwiseTime() of few channels innermost is what a device took, whether threads share a run or not", () => {
  // Microseconds: threads with a run each on an H200, those that share one on an H100, of problems that memory does not bind.
  for (
    const [descriptor, op, us] of [
      ["g32mb32ic256ih28oc256kh3ph1", "bwd-data", 79.9],
      ["mb32ic3ih224oc64kh3ph1", "bwd-data", 251.2],
      ["mb64ic3ih64oc64kh4sh2ph1", "bwd-data", 24.7],
      ["mb32ic3ih224oc64kh7sh2ph3", "bwd-data", 380.3],
      ["mb4ic1ih256oc64kh9ph4", "bwd-data", 103.7],
      ["mb8ic256ih128oc8kh3ph1", "fwd", 183.5],
      ["mb16ic64ih96oc3kh9ph4", "fwd", 162.7],
      ["mb16ic32iw16384oc1kw7pw3", "fwd", 10.1],
    ] as const
  ) {
    const problem = parseDescriptor(descriptor, op);
    const ratio = depthwiseTime(request(problem, { layout: "nhwc" })) / us;
    assert.ok(ratio > 0.83 && ratio < 1.21, `${descriptor}: ${ratio}`);
  }
});
