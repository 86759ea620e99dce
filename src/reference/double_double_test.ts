import assert from "#assert";
import { addTo, productError, sumError, times } from "./double_double.ts";

const SPECIAL = [0, -0, 1, -3, 1e39, 1e300, -1e308, 5e-324, Infinity, -Infinity, NaN];

Deno.test("errors of sums and products are finite whatever their parts, and 0 beside infinities and NaN", () => {
  for (const a of SPECIAL) {
    for (const b of SPECIAL) {
      for (const [error, whole] of [[productError, a * b], [sumError, a + b]] as const) {
        const left = error(a, b, whole);
        assert.ok(Number.isFinite(left), `${error.name}(${a}, ${b})`);
        if (!Number.isFinite(whole)) assert.equal(left, 0);
      }
    }
  }
  // Parts whose halves would overflow.
  const product = 2 ** 1000 * (1 + 2 ** -52);
  assert.equal(
    productError(product, 1 + 2 ** -52, product * (1 + 2 ** -52)),
    2 ** 1000 * 2 ** -104,
  );
});

Deno.test("sums and products of doubles twice as precise are what doubles have of infinities and NaN", () => {
  for (const value of SPECIAL) {
    for (const y of SPECIAL) {
      for (const [made, plain] of [[addTo, value + y], [times, value * y]] as const) {
        const { value: got, rest } = made({ value, rest: 0 }, y);
        assert.deepEqual(got, plain);
        assert.ok(Number.isFinite(rest) && Object.is(got + rest, plain + rest), `${value}, ${y}`);
      }
    }
  }
});
