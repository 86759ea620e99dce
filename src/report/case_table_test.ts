import assert from "#assert";
import { networkTotals, type TotalledCase } from "./case_table.ts";

function record(problem: string, median: number, cache: "hot" | "cold" = "hot"): TotalledCase {
  const time_ms = { median, min: median, mad: 0, samples: [median], repeats: 1, clock: "wall" };
  const known = { op: "fwd", dtype: "f32", layout: "nchw", algorithm: "direct", flops: 2e6 };
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
    "total fwd f32 nchw direct hot: 10.00 ms for 4 layers, 0.8000 GFLOP/s",
    "total fwd f32 nchw direct cold: 9.000 ms for 3 layers, 0.6667 GFLOP/s",
  ]);
  assert.deepEqual(networkTotals([record('ic1n"b"', 4)]), []);
  const product = { op: "gemm", algorithm: "gemm", layout: "nt" };
  const products = [{ ...record('1 2 3 n t n"f*2"', 5), ...product }, {
    ...record("9 9 9", 7),
    ...product,
  }];
  assert.deepEqual(networkTotals(products), [
    "total gemm f32 gemm hot: 10.00 ms for 2 layers, 0.4000 GFLOP/s",
  ]);
});

Deno.test("networkTotals() has a line a network where names are of several, without gradients of images", () => {
  const of = (op: string, problem: string, median: number) => ({ ...record(problem, median), op });
  const layers = [
    of("bwd-data", 'mb1ic3ih8oc4kh3n"one_stem"', 7),
    of("bwd-data", 'mb1ic8ih8oc4kh3n"one_conv*3"', 2),
    of("bwd-data", 'mb1ic8ih8oc4kh1n"two_head"', 4),
  ];
  const forward = layers.map((one) => ({ ...one, op: "fwd" }));
  assert.deepEqual(networkTotals([...layers, ...forward]).slice(0, 3), [
    "total bwd-data f32 nchw direct hot: 10.00 ms for 4 layers, 0.8000 GFLOP/s",
    "  one: 6.000 ms for 3 layers, 1.000 GFLOP/s",
    "  two: 4.000 ms for 1 layer, 0.5000 GFLOP/s",
  ]);
  // Alone it is a transposed layer.
  assert.match(networkTotals(layers)[1]!, /^ {2}one: 13.00 ms for 4 layers/);
  assert.match(networkTotals(forward)[1]!, /^ {2}one: 13.00 ms for 4 layers/);
});
