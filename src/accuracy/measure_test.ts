import assert from "#assert";
import { tensor } from "../tensor/tensor.ts";
import type { ReferenceResult } from "../reference/reference.ts";
import { compareTensors, F16, F32, F64, measureAccuracy, type MeasureOptions } from "./mod.ts";

const UNIT_ROUNDOFF = 2 ** -24;

/** [1, 2, 2]: two channels of two outputs. */
const OPTIONS = { strides: [4, 2, 1], precision: F32 };

function reportOf(got: ArrayLike<number>, ref: ReferenceResult, options: MeasureOptions = OPTIONS) {
  return measureAccuracy(got, ref, options).report;
}

function reference(values: number[], magnitudes: number[], shape = [1, 2, 2]) {
  return { values: Float64Array.from(values), magnitudes: Float64Array.from(magnitudes), shape };
}

function near(got: number | null, want: number, tolerance = 1e-12): void {
  assert.ok(got !== null && Math.abs(got / want - 1) < tolerance, `${got}, expected ${want}`);
}

Deno.test("measureAccuracy() computes every metric by its definition", () => {
  const u = UNIT_ROUNDOFF;
  const report = reportOf(
    [1 + 2 * u, 2 - 8 * u, -4, 8 + 32 * u],
    reference([1, 2, -4, 8], [1, 4, 4, 16]),
    OPTIONS,
  );
  near(report.mare, (2 * u + 4 * u + 0 + 4 * u) / 4);
  near(report.median_rel, 2 * u, 2e-3);
  near(report.p99_rel, 4 * u, 2e-3);
  near(report.max_rel, 4 * u);
  // The last place is 2u at 1, 4u at 2 and 16u at 8.
  near(report.max_ulp, 2);
  near(report.rel_l2, u * Math.sqrt((4 + 64 + 1024) / 85));
  near(report.max_bound_ratio, 2);
  near(report.mean_signed, (u * (2 - 2 + 2)) / 4);
  near(report.condition, Math.sqrt((1 + 16 + 16 + 256) / 85));
  assert.deepEqual(
    [report.nan, report.inf, report.mismatched, report.zero_ref, report.checked, report.total],
    [0, 0, 0, 0, 4, 4],
  );
  assert.deepEqual(report.worst.map(({ index }) => index), [[0, 0, 0], [0, 0, 1], [0, 1, 1]]);
});

Deno.test("measureAccuracy() finds sampled elements through the strides of the memory layout", () => {
  // Canonical [2, 3, 2] in memory as CHWN: value 100n + 10c + w.
  const memory: number[] = [];
  for (let c = 0; c < 3; c++) {
    for (let w = 0; w < 2; w++) for (let n = 0; n < 2; n++) memory.push(100 * n + 10 * c + w);
  }
  const indices = Float64Array.of(11, 0, 1, 8, 9);
  const sampled = {
    ...reference([121, 0, 1, 110, 111], [121, 1, 1, 110, 111], [2, 3, 2]),
    indices,
  };
  const options = { strides: [1, 4, 2], precision: F32 };
  const report = reportOf(memory, sampled, options);
  assert.deepEqual([report.max_bound_ratio, report.checked, report.total], [0, 5, 12]);
  assert.equal(report.zero_ref, 1);
});

Deno.test("measureAccuracy() counts a zero reference for the bound ratio and L2 alone", () => {
  const report = reportOf([1e-6, 2, 3, 4], reference([0, 2, 3, 4], [1, 2, 3, 4]), OPTIONS);
  assert.deepEqual([report.zero_ref, report.mare, report.max_rel], [1, 0, 0]);
  near(report.max_bound_ratio, 1e-6 / UNIT_ROUNDOFF);
  near(report.rel_l2, 1e-6 / Math.sqrt(29));
});

Deno.test("measureAccuracy() takes any error of an empty sum as infinite", () => {
  const wrong = reportOf([1e-30, 2, 3, 4], reference([0, 2, 3, 4], [0, 2, 3, 4]), OPTIONS);
  assert.equal(wrong.max_bound_ratio, Infinity);
  const right = reportOf([0, 2, 3, 4], reference([0, 2, 3, 4], [0, 2, 3, 4]), OPTIONS);
  assert.equal(right.max_bound_ratio, 0);
});

Deno.test("measureAccuracy() wants NaN and infinity where the reference has them", () => {
  const ref = reference([NaN, Infinity, -Infinity, 1e39], [1, 1, 1, 1e39]);
  const right = reportOf([NaN, Infinity, -Infinity, Infinity], ref, OPTIONS);
  assert.deepEqual([right.nan, right.inf, right.mismatched], [1, 3, 0]);
  const wrong = reportOf([0, -Infinity, NaN, 1e38], ref, OPTIONS);
  assert.deepEqual([wrong.nan, wrong.inf, wrong.mismatched], [1, 1, 3]);
  assert.deepEqual(wrong.worst.map(({ index }) => index), [[0, 0, 0], [0, 0, 1], [0, 1, 0]]);
});

Deno.test("measureAccuracy() takes infinity as right beyond the range of the results' dtype", () => {
  const ref = reference([65519, 65520, -1e6, 3e38], [1e5, 1e5, 1e6, 3e38]);
  const results = [65504, Infinity, -Infinity, Infinity];
  const half = reportOf(results, ref, { ...OPTIONS, precision: F16 });
  assert.deepEqual([half.inf, half.mismatched], [3, 0]);
  assert.equal(reportOf(results, ref, OPTIONS).mismatched, 3);
});

Deno.test("measureAccuracy() forgives a flushed subnormal number", () => {
  const report = reportOf(
    [0, 1, 1, 1],
    reference([1e-40, 1, 1, 1], [1e-40, 1, 1, 1]),
    OPTIONS,
  );
  assert.ok(report.max_bound_ratio < 1);
});

Deno.test("measureAccuracy() refuses another number of results", () => {
  assert.throws(
    () => measureAccuracy([1], reference([1, 2, 3, 4], [1, 2, 3, 4]), OPTIONS),
    new TypeError(
      "Cannot compare with the reference: shape [1,2,2] has 4 elements, the results have 1",
    ),
  );
});

Deno.test("compareTensors() compares any dtypes, and refuses other shapes", () => {
  const ref = tensor("i64", [2, 2], BigInt64Array.of(1n, 2n, 3n, 0n));
  const got = tensor("f32", [2, 2], Float32Array.of(1, 2, 3.75, 0));
  const report = compareTensors(got, ref);
  near(report.max_rel, 0.25);
  assert.deepEqual([report.zero_ref, report.worst[0]], [1, { index: [1, 0], got: 3.75, ref: 3 }]);
  assert.throws(
    () => compareTensors(got, tensor("f32", [4], new Float32Array(4))),
    new TypeError("Cannot compare tensors: shapes are [2,2] and [4]"),
  );
  assert.equal(
    compareTensors(tensor("f32", [], Float32Array.of(2)), tensor("f32", [], Float32Array.of(2)))
      .checked,
    1,
  );
});

Deno.test("measureAccuracy() stays finite where squares of f64 do not", () => {
  const large = [1e200, -2e200, 3e300, 4e250];
  const off = large.map((value) => value * (1 + 1e-15));
  const report = reportOf(off, reference(large, large.map(Math.abs)), {
    ...OPTIONS,
    precision: F64,
  });
  near(report.rel_l2, 1e-15, 0.2);
  const small = large.map((value) => value * 1e-308 * 1e-150);
  const same = reportOf(small, reference(small, small.map(Math.abs)), {
    ...OPTIONS,
    precision: F64,
  });
  assert.deepEqual([same.rel_l2, same.max_bound_ratio], [0, 0]);
});

Deno.test("measureAccuracy() measures f16 results by their last place, subnormal ones too", () => {
  const values = [2 ** -20 * 1.3, 2 ** -24 * 3, 0.1, 1000.3];
  const rounded = values.map(Math.f16round);
  const report = reportOf(rounded, reference(values, values), { ...OPTIONS, precision: F16 });
  assert.ok(report.max_bound_ratio <= 1, `${report.max_bound_ratio}`);
  const off = reportOf([...rounded.slice(0, 3), 1002], reference(values, values), {
    ...OPTIONS,
    precision: F16,
  });
  assert.ok(off.max_bound_ratio > 3);
});

Deno.test("measureAccuracy() adds up errors by channel, image and tile, each where it is", () => {
  // Two images of 40 channels and 8 x 8 places; errors of one rounding in channel 33 of image 1 alone.
  const shape = [2, 40, 8, 8];
  const values = new Float64Array(2 * 40 * 64).fill(1);
  const got = values.map((value, i) => Math.floor(i / 64) === 73 ? value + UNIT_ROUNDOFF : value);
  const measured = measureAccuracy(got, { values, magnitudes: values, shape }, {
    strides: [40 * 64, 64, 8, 1],
    precision: F32,
    grouping: { rowAxis: 1, names: ["channel", "image"], otherInner: false, tile: [1, 1] },
  });
  const wrong = measured.groups.filter(({ rms }) => rms > 0);
  assert.deepEqual(wrong.map(({ name, count }) => [name, count]), [
    ["channel 33", 128],
    ["image 1", 2560],
    ["the tile of channels 32 to 39 and columns 64 to 95", 256],
    ["the tile of channels 32 to 39 and columns 96 to 127", 256],
  ]);
  near(wrong[0]!.rms, Math.SQRT1_2, 1e-9);
  assert.deepEqual(measured.members(wrong[0]!, 2).map(({ index }) => index), [33 * 64, 73 * 64]);
});
