import assert from "#assert";
import { F32 } from "../accuracy/precision.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { simulateConv } from "../../tests/support/simulate_conv.ts";

const problem = parseDescriptor("mb1ic2ih6oc1kh3");

/** The largest relative error of results to which a channel of so large values, met by zeros, adds nothing. */
function errorBeside(bright: number, scaled: PlanArithmetic["scaled"]): number {
  const input = Float32Array.from({ length: 72 }, (_, i) => i < 36 ? bright : 1 + i % 5);
  const filter = Float32Array.from({ length: 18 }, (_, i) => i < 9 ? 0 : 1 + i % 3);
  const { result, reference } = simulateConv({
    problem,
    inputs: {
      input: { data: input, layout: "nchw" },
      filter: { data: filter, layout: "kcrs" },
    },
    epilogue: NO_EPILOGUE,
    arithmetic: {
      tiles: [{ axes: [{ n: 4, r: 3 }, { n: 4, r: 3 }] }],
      ...{ unit: 16, math: "f16x3", chain: 128, ...(scaled && { scaled }) },
    },
    precision: F32,
    seed: 1,
  });
  return Math.max(...Array.from(result, (value, i) => Math.abs(value / reference.values[i]! - 1)));
}

Deno.test("simulated halves doubt what bright neighbours leave nothing of, and sum it in f32", () => {
  for (const scaled of ["tiles", undefined] as const) {
    // Dark by 2^20 and 2^60, and a scale beyond halves.
    for (const bright of [1, 1e4, 1e6, 1e18, 1e30, 3e38]) {
      const error = errorBeside(bright, scaled);
      assert.ok(error < 3e-6, `${bright} ${scaled}: ${error}`);
    }
  }
});
