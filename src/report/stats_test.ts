import assert from "#assert";
import { median, medianAbsoluteDeviation } from "./stats.ts";

Deno.test("median() is the middle of odd and the mean of the middle of even counts", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.throws(() => median([]), RangeError);
});

Deno.test("median() leaves its argument as it was", () => {
  const values = [3, 1, 2];
  median(values);
  assert.deepEqual(values, [3, 1, 2]);
});

Deno.test("medianAbsoluteDeviation() is not moved by one outlier", () => {
  assert.equal(medianAbsoluteDeviation([1, 2, 3, 4, 1000]), 1);
});
