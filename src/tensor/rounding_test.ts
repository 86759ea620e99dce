import assert from "#assert";
import { bf16round, fromBf16, tf32round, tf32truncate, toBf16 } from "./convert.ts";

Deno.test("bf16round() gives what toBf16() keeps", () => {
  const values = Float64Array.from(
    { length: 4000 },
    (_, i) => Math.sin(i * 12.9898) * 10 ** (i % 80 - 42),
  );
  values.set([
    0,
    -0,
    NaN,
    Infinity,
    -Infinity,
    1 + 2 ** -8,
    1 + 3 * 2 ** -8,
    1 + 2 ** -8 + 2 ** -40,
  ]);
  values.set([3.3895e38, 3.4e38, -3.5e38, 2 ** -134, 2 ** -133 * 1.5], 8);
  const kept = new Float32Array(values.length);
  fromBf16(toBf16(values), kept);
  values.forEach((value, i) => assert.ok(Object.is(bf16round(value), kept[i]), `${value}`));
});

Deno.test("TF32 keeps eleven bits, rounded to even or cut off", () => {
  assert.equal(tf32round(1 + 2 ** -11), 1);
  assert.equal(tf32round(1 + 3 * 2 ** -11), 1 + 2 ** -9);
  assert.equal(tf32round(-(1 + 2 ** -11 + 2 ** -20)), -(1 + 2 ** -10));
  assert.equal(tf32round(1 + 2 ** -11 + 2 ** -50), 1 + 2 ** -10);
  assert.equal(tf32truncate(1 + 2 ** -10 + 2 ** -11 + 2 ** -12), 1 + 2 ** -10);
  assert.equal(tf32truncate(-1.9999999), -(2 - 2 ** -10));
  assert.deepEqual([NaN, -Infinity, 0].map(tf32round), [NaN, -Infinity, 0]);
  assert.deepEqual([NaN, Infinity].map(tf32truncate), [NaN, Infinity]);
});
