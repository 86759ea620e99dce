import assert from "#assert";
import { caseFigures } from "./case_figures.ts";
import { parseRecords } from "./read_records.ts";
import { caseLine, timeOf } from "../../tests/support/test_records.ts";

const figures = (changes: Record<string, unknown>) =>
  caseFigures(parseRecords(caseLine(changes), "test").cases[0]!);

Deno.test("caseFigures() derives a convolution's from its descriptor", () => {
  assert.deepEqual(figures({ time_ms: timeOf(2), gflops: 77 }), {
    label: "LayerN2",
    batch: 2,
    flops: 2 * 2 * 4 * 64 * 36,
    bytes: 4 * (2 * 4 * 64 + 4 * 4 * 9 + 2 * 4 * 64),
    accumulation: 36,
    gflops: 2 * 2 * 4 * 64 * 36 / 2e6,
  });
  const filter = figures({ op: "bwd-filter", problem: "mb3ic4ih8oc4kh3" });
  assert.equal(filter.accumulation, 3 * 36);
});

Deno.test("caseFigures() derives a product's by dtype, and takes the record's word for the rest", () => {
  const gemm = figures({ op: "gemm", problem: "4 5 6 t n x3", dtype: "i8" });
  assert.equal(gemm.flops, 2 * 3 * 4 * 5 * 6);
  assert.equal(gemm.bytes, 3 * (24 + 30 + 4 * 20));
  assert.deepEqual([gemm.batch, gemm.accumulation], [3, 6]);
  const unknown = figures({ op: "fft", problem: "8x8", flops: 5e6, time_ms: null, gflops: 3 });
  assert.deepEqual([unknown.label, unknown.flops, unknown.bytes, unknown.gflops], [
    "8x8",
    5e6,
    null,
    3,
  ]);
});
