import assert from "#assert";
import { leastP, rankTest } from "./speed_change.ts";

/** Samples of n and m values, without ties, whose U is `u`. */
function samplesOf(n: number, m: number, u: number): [number[], number[]] {
  let left = u;
  const a = Array.from({ length: n }, (_, i) => {
    const above = Math.min(m, left);
    left -= above;
    return above + 0.5 + i / 1000;
  });
  return [a, Array.from({ length: m }, (_, i) => i + 1)];
}

Deno.test("rankTest() agrees with the published tables of critical values", () => {
  const critical: [level: number, n: number, m: number, u: number][] = [
    [0.05, 4, 4, 0],
    [0.05, 5, 5, 2],
    [0.05, 6, 9, 10],
    [0.05, 8, 8, 13],
    [0.05, 10, 10, 23],
    [0.05, 10, 15, 39],
    [0.05, 20, 20, 127],
    [0.01, 5, 5, 0],
    [0.01, 10, 10, 16],
    [0.01, 15, 15, 51],
    [0.01, 20, 20, 105],
  ];
  for (const [level, n, m, u] of critical) {
    const at = rankTest(...samplesOf(n, m, u));
    assert.equal(at.u, u);
    assert.ok(at.p <= level, `${n}, ${m}: p of ${u} is ${at.p}`);
    const next = rankTest(...samplesOf(n, m, u + 1));
    assert.ok(next.p > level, `${n}, ${m}: p of ${u + 1} is ${next.p}`);
    const mirrored = rankTest(...samplesOf(n, m, n * m - u));
    assert.ok(Math.abs(mirrored.p - at.p) < 1e-15);
  }
});

// Values of scipy.stats.mannwhitneyu 1.17.1, two-sided.
Deno.test("rankTest() is exact without ties", () => {
  const few = rankTest([1.1, 2.2, 3.3, 4.4, 5.5, 9.1], [2.1, 3.2, 4.3, 8.8, 9.9]);
  assert.equal(few.u, 13);
  assert.ok(Math.abs(few.p - 0.7922077922077921) < 1e-12, String(few.p));
  const a = Array.from({ length: 15 }, (_, i) => i);
  const shifted = rankTest(a, a.map((value) => value + 4.5));
  assert.equal(shifted.u, 55);
  assert.ok(Math.abs(shifted.p - 0.016431722219385665) < 1e-12, String(shifted.p));
});

Deno.test("rankTest() corrects its approximation for ties and continuity", () => {
  const tied = rankTest([1, 2, 2, 3, 4, 4, 4, 5], [3, 4, 4, 5, 6, 7, 7, 7, 8]);
  assert.equal(tied.u, 10);
  assert.ok(Math.abs(tied.p - 0.012582599228583628) < 1e-12, String(tied.p));
  const many = rankTest(
    Array.from({ length: 60 }, (_, i) => i),
    Array.from({ length: 70 }, (_, i) => i + 20.5),
  );
  assert.equal(many.u, 780);
  assert.ok(Math.abs(many.p / 7.171586165991692e-10 - 1) < 1e-8, String(many.p));
  assert.deepEqual(rankTest([0, 0, 0], [0, 0]), { u: 3, p: 1 });
});

Deno.test("rankTest() refuses an empty sample", () => {
  assert.throws(() => rankTest([], [1]), /^RangeError: Cannot test ranks: a sample is empty$/);
});

Deno.test("leastP() is the probability of a complete separation", () => {
  assert.ok(Math.abs(leastP(5, 5) - 2 / 252) < 1e-15);
  assert.equal(leastP(1, 1), 1);
  const [a, b] = samplesOf(4, 7, 0);
  assert.ok(Math.abs(leastP(4, 7) - rankTest(a, b).p) < 1e-15);
});
