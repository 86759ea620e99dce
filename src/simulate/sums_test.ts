import assert from "#assert";
import { fillTensor } from "../tensor/fill.ts";
import type { SumSource } from "./sum_source.ts";
import { simulateSums } from "./sums.ts";

/** Sums of so many products of halves from 0 to 1, 24 of one factor with 24 of the other. */
function halves(units: number): SumSource {
  const fill = (seed: number) =>
    fillTensor("f64", [units, 24], "uniform01", seed).data.map((x) => Math.f16round(Number(x)));
  const [a, b] = [fill(1), fill(2)];
  return {
    units,
    lefts: 24,
    rights: 24,
    load(unit, lefts, rights) {
      lefts.set(a.subarray(24 * unit, 24 * unit + 24) as Float64Array);
      rights.set(b.subarray(24 * unit, 24 * unit + 24) as Float64Array);
    },
  };
}

/** Mean relative error, signed and not. */
function errors(units: number, chain?: number) {
  const { values, exact, rounded } = simulateSums(halves(units), {
    unit: 16,
    ...(chain === undefined ? {} : { chain }),
  });
  assert.ok(rounded);
  const relative = values.map((value, i) => (value - exact[i]!) / exact[i]!);
  const mean = (data: Float64Array) => data.reduce((sum, one) => sum + one, 0) / data.length;
  return { signed: mean(relative), size: mean(relative.map(Math.abs)) };
}

Deno.test("sums of matrix units are cut off as an H200's are", () => {
  // The errors of its units on such data, of 16 x 16 x 16 (docs/accuracy.md).
  for (const [units, measured] of [[64, 1.8e-7], [256, 1.1e-6], [1152, 6.7e-6]] as const) {
    const { signed, size } = errors(units);
    assert.ok(size > measured / 1.4 && size < measured * 1.4, `${units}: ${size}`);
    assert.ok(signed < -0.9 * size, `${units}: ${signed}`);
  }
});

Deno.test("sums that leave the units every 128 products err no more with their length", () => {
  const { size } = errors(1152, 128);
  assert.ok(size > 3e-7 && size < 1e-6, `${size}`);
});

Deno.test("sums of matrix units that need no rounding are exact", () => {
  const source: SumSource = {
    units: 40,
    lefts: 1,
    rights: 1,
    load(unit, lefts, rights) {
      lefts[0] = unit - 20;
      rights[0] = 3;
    },
  };
  const { values, exact, rounded } = simulateSums(source, { unit: 16 });
  assert.deepEqual([...values], [...exact]);
  assert.equal(rounded, false);
});
