import assert from "#assert";
import { F32, judge, measureAccuracy, NO_ERRORS, rmsLimit, type Yardstick } from "./mod.ts";
import { errorStatistics } from "./statistics.ts";

const UNIT_ROUNDOFF = 2 ** -24;

/** A yardstick whose errors are normal of deviation 1, in units of the scale. */
function yardstick(deviation = 1): Yardstick {
  const sample = {
    count: 5000,
    rms: deviation,
    typical: 3.29 * deviation,
    largest: 3.9 * deviation,
    largestError: 0,
    kurtosis: 3,
    squareRms: 1,
    relL2: 1,
  };
  return { sample, of: () => sample, again: () => [sample] };
}

function measured(got: readonly number[], values: readonly number[]) {
  const exact = Float64Array.from(values);
  const reference = { values: exact, magnitudes: exact.map(Math.abs), shape: [1, 1, got.length] };
  return measureAccuracy(got, reference, { strides: [got.length, got.length, 1], precision: F32 });
}

Deno.test("judge() fails where nothing was checked", () => {
  for (const value of [[], [NaN]]) {
    const { verdict, reasons } = judge(measured(value, value), yardstick(), F32);
    assert.deepEqual([verdict, reasons], ["fail", ["no finite output was checked"]]);
  }
});

Deno.test("judge() passes results that are right to the last place of subnormal numbers", () => {
  const values = Array.from({ length: 64 }, (_, i) => (i + 0.4) * 2 ** -140);
  for (const got of [values.map(Math.fround), values.map(() => 0)]) {
    assert.deepEqual(judge(measured(got, values), yardstick(0), F32).reasons, []);
  }
});

Deno.test("judge() allows 7 times the typical error and no more", () => {
  const ones = Array.from({ length: 1000 }, () => 1);
  const off = (units: number) =>
    measured(ones.map((one, i) => i === 7 ? one + units * UNIT_ROUNDOFF : one), ones);
  assert.equal(judge(off(22), yardstick(), F32).verdict, "pass");
  assert.equal(judge(off(24), yardstick(), F32).verdict, "fail");
});

Deno.test("judge() wants an exact result where simulated errors are 0", () => {
  const exact = { sample: NO_ERRORS, of: () => NO_ERRORS, again: () => [] };
  assert.equal(judge(measured([1, 2], [1, 2]), exact, F32).verdict, "pass");
  assert.equal(judge(measured([1, 2 + UNIT_ROUNDOFF], [1, 2]), exact, F32).verdict, "fail");
});

Deno.test("rmsLimit() falls to 2.5 as outputs grow, and heeds the errors' tails", () => {
  const { sample } = yardstick();
  assert.ok(rmsLimit(sample, 1e6) < 2.51);
  assert.ok(rmsLimit(sample, 32) > 3.1 && rmsLimit(sample, 32) < 3.2);
  assert.ok(rmsLimit({ ...sample, kurtosis: 20 }, 32) > 4.3);
});

Deno.test("errorStatistics() gives moments, and a tail for few errors", () => {
  const { rms, kurtosis, typical, largest } = errorStatistics([1, -1, 3, -3], [1, 1, 1, 1], {
    largestError: 3,
    relL2: 0,
  });
  assert.deepEqual([rms, largest], [Math.sqrt(5), 3]);
  assert.equal(kurtosis, 4 * (2 + 2 * 81) / (20 * 20));
  assert.equal(typical, 4.5);
  const many = Float64Array.from({ length: 10_000 }, (_, i) => i);
  assert.equal(errorStatistics(many, many, { largestError: 0, relL2: 0 }).typical, 9989);
});
