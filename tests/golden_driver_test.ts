/**
 * Each algorithm, operation and layout once on the driver at hand, by kernels that compile fast: the first of a few golden
 * cases that the algorithm can do. `tests/drivers` has all cases, policies and variants.
 */
import assert from "#assert";
import { tryPlanConv } from "../src/algorithms/planner.ts";
import { isRefusal } from "../src/algorithms/refusal.ts";
import { algorithms } from "../src/algorithms/registry.ts";
import { OPERATIONS } from "../src/problem/conv_problem.ts";
import { LAYOUTS } from "../src/tensor/layout.ts";
import { loadGoldenCases } from "./golden.ts";
import { agrees, goldenRequest, type GoldenRun } from "./golden_conv.ts";
import { test } from "./drivers/driver.ts";

/** Sizes that divide no tile, and a case for the algorithm whose groups have one channel. */
const CASES = ["odd_channels", "depthwise"];

/** Cheap to compile, where an algorithm takes these options. */
const CHEAP: Pick<GoldenRun, "policy" | "variant"> = {
  policy: "tiny",
  variant: { unroll: false },
};

/** What has no such kernels. */
const NONE: Readonly<Record<string, readonly string[]>> = {
  "winograd2d": ["bwd-filter"],
  "winograd1d": ["bwd-filter"],
  "winrs": ["fwd", "bwd-data"],
  "im2win": ["bwd-data", "bwd-filter"],
  "im2win-fused": ["bwd-data", "bwd-filter"],
  im2col: ["bwd-data", "bwd-filter"],
};

const golden = loadGoldenCases().filter(({ name }) => CASES.includes(name));

for (const { name: algorithm, options } of algorithms()) {
  for (const op of OPERATIONS) {
    test(`${algorithm} ${op} agrees with PyTorch in every layout`, async (gpu) => {
      for (const layout of LAYOUTS) {
        const run: GoldenRun = {
          op,
          algorithm,
          layout,
          ...(algorithm === "winrs" || !options.includes("prefetch") ? {} : CHEAP),
        };
        const able = golden.find((one) => !isRefusal(tryPlanConv(goldenRequest(gpu, one, run))));
        const none = NONE[algorithm]?.includes(op) ?? false;
        assert.equal(able === undefined, none, `${algorithm} ${op} ${layout}`);
        if (able === undefined) continue;
        await agrees(gpu, able, run);
      }
    });
  }
}
