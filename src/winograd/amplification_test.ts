import assert from "#assert";
import { amplification, amplification2d, halfError, ROUNDED_F16 } from "./amplification.ts";
import { winogradTransform } from "./transform.ts";

Deno.test("amplification() is 1 of plain sums and known of F(2,3)", () => {
  assert.equal(amplification(winogradTransform(1, 3)), 1);
  assert.equal(amplification(winogradTransform(5, 1)), 1);
  // Both results sum three products; variances 2·1, 2·3/4, 2·3/4 and 2·1 of them make 5, a plain sum has 3.
  assert.ok(Math.abs(amplification(winogradTransform(2, 3)) - Math.sqrt(5 / 3)) < 1e-12);
});

Deno.test("amplification() does not depend on the scaling and grows with the tile", () => {
  const plain = amplification(winogradTransform(6, 3));
  const scaled = amplification(winogradTransform(6, 3, { scaling: "unit-l1" }));
  assert.ok(Math.abs(plain - scaled) < 1e-9 * plain);
  const grown = [2, 4, 6, 8, 14].map((n) => amplification(winogradTransform(n, 3)));
  assert.deepEqual(grown, grown.toSorted((a, b) => a - b));
});

Deno.test("amplification2d() is the product of its axes", () => {
  const [rows, columns] = [winogradTransform(4, 3), winogradTransform(2, 5)];
  const product = amplification(rows) * amplification(columns);
  assert.ok(Math.abs(amplification2d(rows, columns) - product) < 1e-12 * product);
  assert.equal(amplification2d(winogradTransform(1, 3), columns), amplification(columns));
});

Deno.test("ROUNDED_F16 is what rounding numbers of evenly spread logarithms errs by", () => {
  let squares = 0;
  const count = 20_000;
  for (let i = 0; i < count; i++) {
    const value = 2 ** ((i + 0.5) / count);
    squares += (Math.f16round(value) / value - 1) ** 2;
  }
  assert.ok(Math.abs(Math.sqrt(squares / count) / ROUNDED_F16 - 1) < 0.01);
});

Deno.test("halfError() is 0 of plain products, and of F(2,3) that of two roundings enlarged", () => {
  assert.equal(halfError([winogradTransform(1, 1)]), 0);
  const expected = Math.sqrt(5 / 3) * Math.SQRT2 * ROUNDED_F16;
  assert.ok(Math.abs(halfError([winogradTransform(2, 3)]) / expected - 1) < 1e-12);
});
