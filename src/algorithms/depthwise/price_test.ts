import assert from "#assert";
import { request } from "../../../tests/plan_request.ts";
import type { Operation } from "../../problem/conv_problem.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { depthwiseTime } from "./algorithm.ts";

/** Checks that a time is about the microseconds that a device took. */
function takes(
  descriptor: string,
  op: Operation,
  asked: Parameters<typeof request>[1],
  us: number,
  [least, most]: readonly [number, number],
): void {
  const ratio = depthwiseTime(request(parseDescriptor(descriptor, op), asked)) / us;
  assert.ok(ratio > least && ratio < most, `${descriptor} ${op}: ${ratio}`);
}

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
    takes(descriptor, op, { layout: "nhwc" }, us, [0.83, 1.21]);
  }
});

Deno.test("depthwiseTime() of filters' gradients counts what sums cost on the way to memory", () => {
  // Microseconds on an H200, from threads that meet 300 places to those that meet 20,000.
  for (
    const [descriptor, layout, us] of [
      ["mb1ic3ih224oc32oh112kh3sh2ph1", "nchw", 13.8],
      ["mb1ic3ih224oc64oh112kh7sh2ph3", "nchw", 47.3],
      ["mb1ic3ih224oc64oh112kh7sh2ph3", "nhwc", 30.7],
      ["g8mb32ic32ih28oc32oh28kh5ph2", "nchw", 30.1],
      ["g32mb32ic512ih14oc512oh14kh3ph1", "nchw", 110.1],
      ["mb64ic3ih64oc64oh32kh4sh2ph1", "nchw", 48.1],
      ["mb64ic3ih64oc64oh32kh4sh2ph1", "nhwc", 43.8],
      ["mb64ic3ih224oc32oh112kh3sh2ph1", "nchw", 123.5],
      ["mb1ic128ih512oc3oh512kh3ph1", "nchw", 97],
      ["mb32ic3ih224oc64oh224kh3ph1", "nchw", 319.4],
    ] as const
  ) {
    takes(descriptor, "bwd-filter", { layout }, us, [0.65, 1.2]);
  }
});

Deno.test("depthwiseTime() of bf16 counts the atomic operations that write single results", () => {
  for (
    const [descriptor, op, us] of [
      ["mb8ic1iw24000oc32kw7pw3", "fwd", 23.6],
      ["g54mb4ic54id16ih56iw56oc54kd3kh3kw3pd1ph1pw1", "fwd", 104.5],
    ] as const
  ) {
    takes(descriptor, op, { layout: "nhwc", dtype: "bf16" }, us, [0.5, 1.3]);
  }
});
