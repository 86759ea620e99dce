/** Fused Winograd whose workgroups share depths, on the driver at hand: all blocks, or those behind whole waves of others. */
import assert from "#assert";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { checkedResult } from "../checked_plan.ts";
import { FEW_WORKGROUPS } from "../support/few_workgroups.ts";
import { full, test } from "./driver.ts";
import { ALGORITHMS, OPS, requestFor } from "./winograd_fused.ts";

/** 13 channels a group are four steps a tap, of which five and seven splits are uneven. */
const problemOf = (columns: number) => parseDescriptor(`g2mb4ic26ih5iw${columns}oc20kh3ph1`);

test("workgroups that share a depth agree with the reference, and the epilogue follows their sums", async (gpu) => {
  const problem = problemOf(9);
  let run = 0;
  for (const algorithm of ALGORITHMS) {
    for (const layout of LAYOUTS) {
      for (const splits of full ? [2, 3, 5, 7, 40] : [[2, 5], [3, 40], [7]][run % 3]!) {
        const op = OPS[run % 2]!;
        const sizes = run++ % 3 === 0 ? "constant" as const : "uniform" as const;
        const epilogue = op === "fwd" ? { bias: true, activation: "relu" as const } : NO_EPILOGUE;
        // Splits of which each is two parts and more, too.
        const more = {
          algorithm,
          layout,
          schedule: { splits, flush: run % 4 === 0 ? 8 : 0 },
          sizes,
          epilogue,
        };
        const request = requestFor(gpu, { ...problem, op }, more);
        const { plan } = await checkedResult(gpu, request);
        assert.match(plan.kernel, /_split$/);
        assert.match(plan.passes.at(-1)!.kernel.name, /_parts_/);
      }
    }
  }
});

test("blocks behind whole waves of others share depths: each result agrees with the reference", async (gpu) => {
  for (
    const [layout, op, sizes, tile, ends, choice, columns = 23] of [
      ["nhwc", "fwd", "constant", "F(4,3)", /_tail$/, {}],
      ["nhwc", "bwd-data", "uniform", "F(4,3)", /_tail$/, {}],
      ["nhwc", "fwd", "constant", "F(6,3)", /_tail$/, {}],
      ["nchw", "fwd", "constant", "F(6,3)", /_tail$/, {}],
      ["chwn", "bwd-data", "constant", "F(6,3)", /_tail$/, {}],
      ["chwn", "fwd", "uniform", "F(6,3)", /_tail$/, {}],
      // Threads that have all slices.
      ["nhwc", "fwd", "constant", "F(4,3)", /4x4a_.*_tail$/, {
        schedule: { policy: "16x16x4_4x4a" },
      }, 27],
      [
        "chwn",
        "fwd",
        "uniform",
        "F(6,3)",
        /4x4a_.*_tail$/,
        { schedule: { policy: "8x16x4_4x4a" } },
        27,
      ],
    ] as const
  ) {
    const epilogue = op === "fwd" ? { bias: true, activation: "relu" as const } : NO_EPILOGUE;
    const more = {
      algorithm: "winograd1d",
      tile,
      layout,
      sizes,
      epilogue,
      device: FEW_WORKGROUPS,
      ...choice,
    } as const;
    const { plan } = await checkedResult(
      gpu,
      requestFor(gpu, { ...problemOf(columns), op }, more),
    );
    assert.match(plan.kernel, ends);
    assert.match(plan.passes.at(-1)!.kernel.name, /_parts_/);
    assert.equal(plan.arithmetic.segment, undefined);
  }
});
