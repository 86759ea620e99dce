import assert from "#assert";
import { mixedReference } from "./mixed.ts";

const values = new Float64Array(8);
const magnitudes = Float64Array.from([0, 2, 2, 4, 0, 0, 0, 1]);

Deno.test("mixedReference() raises small magnitudes to their channel's root mean square", () => {
  const { magnitudes: raised } = mixedReference({ values, magnitudes, shape: [1, 2, 4] }, 1);
  const [first, second] = [Math.sqrt(6), 0.5];
  assert.deepEqual([...raised], [first, first, first, 4, second, second, second, 1]);
});

Deno.test("mixedReference() finds the channels of a sample", () => {
  const sample = {
    values: new Float64Array(3),
    magnitudes: Float64Array.from([0, 4, 0]),
    shape: [2, 2, 4],
    indices: Float64Array.from([1, 8, 15]),
  };
  const { magnitudes: raised } = mixedReference(sample, 1);
  assert.deepEqual([...raised], [Math.sqrt(8), 4, 0]);
});

Deno.test("mixedReference() leaves infinite products aside", () => {
  const infinite = Float64Array.from([Infinity, 2, NaN, 2]);
  const { magnitudes: raised } = mixedReference(
    { values: new Float64Array(4), magnitudes: infinite, shape: [1, 1, 4] },
    1,
  );
  assert.deepEqual([...raised], [Infinity, 2, NaN, 2]);
});
