import assert from "#assert";
import { ONE, rational, ZERO } from "./matrix.ts";
import {
  SCALINGS,
  slicesTransform,
  tileTransform,
  type WinogradTransform,
  winogradTransform,
} from "./transform.ts";

/** Asserts Σ_a A[a][i]·G[a][k]·D[b][a] = 1 where b is i + k, else 0: so y[i] is Σ_k x[i + k]·w[k] for all data. */
function assertCorrelation({ n, r, alpha, a, g, d }: WinogradTransform): void {
  for (let k = 0; k < r; k++) {
    for (let i = 0; i < n; i++) {
      const products = a.map((row, p) => row[i]!.mul(g[p]![k]!));
      for (let b = 0; b < alpha; b++) {
        const sum = products.reduce(
          (total, product, p) => product.equals(0) ? total : total.add(product.mul(d[b]![p]!)),
          ZERO,
        );
        assert.ok(sum.equals(b === i + k ? ONE : ZERO), `F(${n},${r}) at ${i}, ${k}, ${b}`);
      }
    }
  }
}

Deno.test("winogradTransform() gives the exact correlation for every F(n,r)", () => {
  let count = 0;
  for (let n = 1; n <= 16; n++) {
    for (let r = 1; n + r - 1 <= 16; r++) {
      const transform = winogradTransform(n, r);
      assert.equal(transform.alpha, n + r - 1);
      assert.deepEqual([transform.a.length, transform.a[0]!.length], [n + r - 1, n]);
      assert.deepEqual([transform.g.length, transform.g[0]!.length], [n + r - 1, r]);
      assertCorrelation(transform);
      count++;
    }
  }
  assert.equal(count, 136);
});

Deno.test("slicesTransform() gives parts whose results add up to the correlation", () => {
  const whole = winogradTransform(9, 8, { scaling: "power-of-two" });
  const parts = [[15, 0, 1, 2, 3], [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]]
    .map((slices) => ({ slices, ...slicesTransform(whole, slices) }));
  assert.equal(slicesTransform(whole, [0, 1]), slicesTransform(whole, [0, 1]));
  assert.equal(slicesTransform(whole, whole.a.map((_, slice) => slice)), whole);
  for (const { slices, a, g, d } of parts) {
    assert.deepEqual([a.length, g.length, d[0]!.length], Array(3).fill(slices.length));
    assert.deepEqual([a[0]!.length, g[0]!.length, d.length], [9, 8, 16]);
  }
  assertCorrelation({
    ...whole,
    a: parts.flatMap(({ a }) => a),
    g: parts.flatMap(({ g }) => g),
    d: whole.d.map((_, row) => parts.flatMap(({ d }) => d[row]!)),
  });
});

Deno.test("winogradTransform() gives the exact correlation in every scaling", () => {
  for (const scaling of SCALINGS) {
    for (const [n, r] of [[2, 3], [6, 3], [3, 6], [8, 9]] as const) {
      assertCorrelation(winogradTransform(n, r, { scaling }));
    }
  }
});

Deno.test("winogradTransform() of F(2,3) is Winograd's own", () => {
  const { points, a, g, d } = winogradTransform(2, 3);
  assert.deepEqual(points, ["0", "1", "-1", "inf"]);
  const text = (matrix: typeof a) => matrix.map((row) => row.map((value) => value.toFraction()));
  assert.deepEqual(text(a), [["1", "0"], ["1", "1"], ["1", "-1"], ["0", "1"]]);
  assert.deepEqual(text(g), [
    ["1", "0", "0"],
    ["1/2", "1/2", "1/2"],
    ["1/2", "-1/2", "1/2"],
    ["0", "0", "1"],
  ]);
  assert.deepEqual(text(d), [
    ["1", "0", "0", "0"],
    ["0", "1", "-1", "-1"],
    ["-1", "1", "1", "0"],
    ["0", "0", "0", "1"],
  ]);
});

Deno.test("winogradTransform() makes rows of G and D of unit L1 norm, exactly or within a factor of 2", () => {
  const norms = ({ g, d, alpha }: WinogradTransform) => {
    const columns = Array.from({ length: alpha }, (_, p) => d.map((row) => row[p]!));
    return [...g, ...columns].map((row) => row.reduce((sum, value) => sum.add(value.abs()), ZERO));
  };
  for (const norm of norms(winogradTransform(9, 8, { scaling: "unit-l1" }))) {
    assert.ok(norm.equals(ONE));
  }
  const plain = winogradTransform(9, 8);
  const scaled = winogradTransform(9, 8, { scaling: "power-of-two" });
  for (const norm of norms(scaled)) {
    assert.ok(norm.compare(ONE) <= 0 && norm.compare(rational("1/2")) > 0, norm.toFraction());
  }
  for (const [p, row] of scaled.g.entries()) {
    const column = row.findIndex((value) => !value.equals(0));
    const { n, d } = row[column]!.div(plain.g[p]![column]!);
    assert.ok((n & (n - 1n)) === 0n && (d & (d - 1n)) === 0n);
  }
});

Deno.test("tileTransform() scales by powers of two what is kept in f16, and nothing else", () => {
  assert.equal(tileTransform(7, 10), winogradTransform(7, 10));
  assert.equal(tileTransform(7, 10, "f32"), winogradTransform(7, 10));
  assert.equal(tileTransform(7, 10, "f16"), winogradTransform(7, 10, { scaling: "power-of-two" }));
});

Deno.test("winogradTransform() gives the same object for the same arguments", () => {
  assert.equal(winogradTransform(4, 3), winogradTransform(4, 3, { scaling: "none" }));
  assert.notEqual(winogradTransform(4, 3), winogradTransform(4, 3, { scaling: "unit-l1" }));
});

Deno.test("winogradTransform() needs no additions where n or r is 1", () => {
  const { points, g, d, a } = winogradTransform(1, 5);
  assert.deepEqual(points, []);
  assert.deepEqual([g.length, d.length, a.length], [5, 5, 5]);
  assert.ok([...g, ...d].every((row) => row.filter((value) => !value.equals(0)).length === 1));
});

Deno.test("winogradTransform() refuses sizes out of range", () => {
  assert.throws(() => winogradTransform(0, 3), {
    name: "RangeError",
    message: "Cannot make F(0,3): both must be whole numbers >= 1",
  });
  assert.throws(() => winogradTransform(2.5, 3), RangeError);
  assert.throws(() => winogradTransform(15, 3), {
    name: "RangeError",
    message: "Cannot make F(15,3): n + r - 1 is 17, above 16",
  });
});
