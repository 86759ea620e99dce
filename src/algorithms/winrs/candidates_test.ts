import assert from "#assert";
import { request } from "../../../tests/plan_request.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { expectPlanned } from "../refusal.ts";
import { configured } from "./plan.ts";
import { winrsCandidates } from "./price.ts";

const asked = (sizes: string, layout: "nchw" | "nhwc") =>
  request(parseDescriptor(sizes, "bwd-filter"), { layout });

Deno.test("winrsCandidates() counts the errors of kernels that may be chosen alone", () => {
  const enlarged = (layout: "nchw" | "nhwc") =>
    winrsCandidates(asked("mb32ic64ih28oc64kh3ph1", layout), Infinity)[0]!.amplification;
  // Of Ω8(3,6), and of that with Ω4(3,2) along rows, whose slices are in two kernels.
  assert.ok(Math.abs(enlarged("nchw") - 5.1) < 0.01, `${enlarged("nchw")}`);
  assert.ok(Math.abs(enlarged("nhwc") - 7.21) < 0.01, `${enlarged("nhwc")}`);
});

Deno.test("winrsCandidates() has the pair that is configured of kernels within the error allowed", () => {
  for (
    const [sizes, allowed, others] of [
      ["mb32ic64ih28oc64kh3ph1", 6, ["a4n3r2", "a4n3r2xa4n3r2", "a8n3r6"]],
      ["mb32ic64ih14oc64kh9ph4", 100, ["a4n3r2", "a8n3r6", "a2n1r1"]],
      ["mb64ic256ih56oc256kh3ph1", 3, ["a4n3r2", "a4n3r2xa4n3r2", "a2n1r1"]],
    ] as const
  ) {
    const wanted = asked(sizes, "nhwc");
    const { pair, amplification } = winrsCandidates(wanted, allowed)[0]!;
    assert.ok(amplification <= allowed, `${pair}: ${amplification}`);
    const ms = (pair: string) => expectPlanned(configured({ ...wanted, pair })).predictedMs;
    for (const other of others) {
      assert.ok(ms(pair!) <= ms(other) * 1.03, `${sizes}: ${pair}, not ${other}`);
    }
  }
});
