import assert from "#assert";
import { caseFields, timeOf } from "../../tests/support/test_records.ts";
import { chartPoints } from "./charts/points.ts";
import { precisionNote, precisionsOf } from "./precisions.ts";
import { CaseSchema, readRecord } from "./record_schema.ts";

const PRODUCTS = ["256 256 256", "512 512 512", "1024 1024 1024"];

/** A record of a product, or of another problem. */
const product = (at: number, ms: number, error: number | null, more: object = {}) =>
  readRecord(
    CaseSchema,
    caseFields({
      problem: PRODUCTS[at],
      op: "gemm",
      algorithm: "gemm",
      time_ms: timeOf(ms),
      accuracy: error === null ? null : { rel_l2: error },
      ...more,
    }),
    "test",
  );
const TF32 = { provider: "cublas", dtype: "tf32", verdict: undefined };
const f32 = [product(0, 1, 1e-7), product(1, 2, 3e-7), product(2, 9, 2e-7)];
const split = [0, 1, 2].map((at) => product(at, 0.5, 2e-7, { math: "f16x3" }));
const tf32 = [product(0, 0.25, 2e-4, TF32), product(1, 0.25, 3e-4, TF32)];
const precisions = (...records: ReturnType<typeof product>[]) => precisionsOf(chartPoints(records));

Deno.test("precisionsOf() is over the cases that every series has", () => {
  const slower = product(0, 3, 1e-9, { layout: "nt" });
  const failed = product(0, 0.01, 0.5, { verdict: "fail" });
  const [found, ...more] = precisions(...tf32, ...f32, ...split, slower, failed);
  assert.equal(more.length, 0);
  const { facet, series, labels, shared, others } = found!;
  assert.deepEqual([facet, shared, others], ["products, uniform01 data", true, 1]);
  assert.deepEqual([...labels.values()], ["256 256 256", "512 512 512"]);
  assert.deepEqual(series.map(({ name }) => name), ["wgconv f32", "wgconv f16x3", "cublas tf32"]);
  for (const { cases } of series) assert.equal(cases.size, 2);
  const { gflops, error } = series[0]!.usual;
  // 2 n^3 flops in 1 and 2 ms; the slower record of the first product does not count, nor the wrong one.
  assert.ok(Math.abs(gflops / (2e-6 * Math.sqrt(256 ** 3 / 1 * 512 ** 3 / 2)) - 1) < 1e-9);
  assert.ok(Math.abs(error - 2e-7) < 1e-15);
});

Deno.test("precisionsOf() says where series share no case, and which have no errors", () => {
  const [found] = precisions(f32[0]!, tf32[1]!, product(0, 1, null, { dtype: "f16" }));
  assert.deepEqual([found!.shared, found!.others, found!.labels.size], [false, 0, 2]);
  assert.deepEqual(found!.series.map(({ cases }) => cases.size), [1, 1]);
  assert.deepEqual(found!.unchecked, ["wgconv f16"]);
  assert.equal(
    precisionNote(found!),
    "No case is common to all series: each shows its own cases. Not shown, their records have no errors: wgconv f16.",
  );
});

Deno.test("precisionsOf() needs two precisions with errors, of one kind of problem and data", () => {
  assert.deepEqual(precisions(...f32), []);
  assert.deepEqual(precisions(...f32, product(0, 1, 1e-7, { provider: "cublas" })), []);
  assert.deepEqual(precisions(...f32, product(0, 1, null, TF32)), []);
  assert.deepEqual(precisions(...f32, product(0, 1, 1e-4, { ...TF32, fill: "normal" })), []);
  const conv = { problem: "mb2ic4ih8oc4kh3ph1", op: "fwd" };
  assert.deepEqual(precisions(...f32, product(0, 1, 1e-4, { ...TF32, ...conv })), []);
});

Deno.test("precisionsOf() names what operands are, how they are multiplied and summed, and cold caches", () => {
  const half = { dtype: "f16" };
  const [found] = precisions(
    f32[0]!,
    product(0, 1, 2e-4, half),
    product(0, 1, 3e-4, { ...half, accumulate: "f16" }),
    product(0, 1, 4e-5, { ...half, out_dtype: "f32" }),
    product(0, 1, 5e-4, { ...half, cache: "cold" }),
  );
  assert.deepEqual(found!.series.map(({ name }) => name), [
    "wgconv f32",
    "wgconv f16 to f32",
    "wgconv f16",
    "wgconv f16 summed in f16",
    "wgconv f16 cold",
  ]);
});
