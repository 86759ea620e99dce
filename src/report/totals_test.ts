import assert from "#assert";
import { networkTotals, type TotalledCase } from "./totals.ts";

function record(problem: string, median: number, cache: "hot" | "cold" = "hot"): TotalledCase {
  const time_ms = { median, min: median, mad: 0, samples: [median], repeats: 1, clock: "wall" };
  const known = { op: "fwd", layout: "nchw", algorithm: "direct", flops: 2e6 };
  return { ...known, problem, time_ms, cache };
}

Deno.test("networkTotals() counts each layer as often as its name says", () => {
  const records = [
    record('ic1n"a*3"', 2),
    record('ic1n"b"', 4),
    record('ic1n"a*3"', 3, "cold"),
    { ...record("ic1", 1), time_ms: null },
  ];
  assert.deepEqual(networkTotals(records), [
    "total fwd nchw direct hot: 10.00 ms for 4 layers, 0.8000 GFLOP/s",
    "total fwd nchw direct cold: 9.000 ms for 3 layers, 0.6667 GFLOP/s",
  ]);
  assert.deepEqual(networkTotals([record('ic1n"b"', 4)]), []);
});
