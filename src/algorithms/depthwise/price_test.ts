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

Deno.test("depthwiseTime() of few channels innermost is what an H200 took, whatever rows share", () => {
  // Milliseconds of bench/results/h200-2026-11-22/few_channels.jsonl.
  for (
    const [descriptor, ms] of [
      ["mb16ic3ih224oc64kh3ph1", 0.8994],
      ["mb64ic3ih64oc64kh4sh2ph1", 0.0360],
      ["mb64ic3ih224oc64kh7sh2ph3", 0.8110],
      ["mb4ic1ih256oc64kh9ph4", 0.4674],
      ["mb8ic1iw160000oc512kw10sw5", 0.3411],
      ["g32mb32ic256ih28oc256kh3ph1", 0.0799],
    ] as const
  ) {
    const problem = parseDescriptor(descriptor, "bwd-data");
    const ratio = depthwiseTime(request(problem, { layout: "nhwc" })) / 1e3 / ms;
    assert.ok(ratio > 0.85 && ratio < 1.15, `${descriptor}: ${ratio}`);
  }
});
