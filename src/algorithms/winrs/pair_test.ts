import assert from "#assert";
import fc from "fast-check";
import { nominal, parsePair } from "../../../tests/support/winrs_figures.ts";
import { admissible, type Omega, omegaName, OMEGAS } from "./omega.ts";
import { fastestPair, type KernelPair, pairCost, possiblePairs } from "./pair.ts";

function spell({ first, second, k0, k1 }: KernelPair): string {
  const part = (tiles: number, name: string) => `${tiles} x ${name}`;
  return second
    ? `${part(k0, omegaName(first))} + ${part(k1, omegaName(second))}`
    : part(k0, omegaName(first));
}

Deno.test("fastestPair() gives F_W = 3, O_W = 16 to Ω8(3,6) and Ω4(3,2), 12 and 4 columns wide", () => {
  const pair = fastestPair(3, 16, nominal);
  assert.equal(spell(pair), "2 x a8n3r6 + 2 x a4n3r2");
  assert.equal(pair.k0 * pair.first.r, 12);
  assert.equal(pair.k1 * pair.second!.r, 4);
  assert.equal(pair.width, 16);
  assert.equal(pair.first.n, 3);
});

Deno.test("parsePair() takes exact for the fastest pair that ends at the edge", () => {
  const padded = parsePair("a16n9r8", 9, 7, nominal);
  assert.equal(padded.width, 8);
  assert.equal(spell(parsePair("exact", 9, 7, nominal)), "1 x a8n3r6 + 1 x a2n1r1");
  const widths = Array.from({ length: 14 }, (_, i) => i + 1);
  for (const filterWidth of widths) {
    for (const outputWidth of widths) {
      const { width } = parsePair("exact", filterWidth, outputWidth);
      assert.equal(width, outputWidth, `${filterWidth} over ${outputWidth}`);
    }
  }
});

Deno.test("parsePair() takes two kernels in either order, whichever is faster", () => {
  assert.equal(spell(parsePair("a8n3r6,a4n3r2", 3, 16)), "2 x a8n3r6 + 2 x a4n3r2");
  const [first, second] = ["a4n3r2", "a8n3r6"];
  const turned = parsePair(`${first},${second}`, 3, 16);
  assert.deepEqual([turned.first, turned.second].map((omega) => omegaName(omega!)), [
    first,
    second,
  ]);
  assert.equal(turned.width, 16);
});

Deno.test("fastestPair() takes one kernel where its tiles fill the row", () => {
  assert.equal(spell(fastestPair(3, 24, nominal)), "4 x a8n3r6");
  assert.equal(spell(fastestPair(9, 112, nominal)), "14 x a16n9r8");
});

Deno.test("fastestPair() leaves a filter of prime width above 9 to the direct kernel", () => {
  assert.equal(spell(fastestPair(11, 20, nominal)), "20 x a2n1r1");
  assert.equal(spell(fastestPair(1, 7, nominal)), "7 x a2n1r1");
});

Deno.test("fastestPair() fills a last tile with zeros only where that costs less", () => {
  const narrow = fastestPair(9, 7, nominal);
  assert.equal(spell(narrow), "1 x a16n9r8");
  assert.equal(narrow.width, 8);
  assert.equal(spell(fastestPair(9, 7, nominal, { exact: true })), "1 x a8n3r6 + 1 x a2n1r1");
});

const widths = fc.record({
  filterWidth: fc.integer({ min: 1, max: 40 }),
  outputWidth: fc.integer({ min: 1, max: 400 }),
  rates: fc.array(fc.double({ min: 1, max: 200, noNaN: true }), {
    minLength: OMEGAS.length,
    maxLength: OMEGAS.length,
  }),
});

Deno.test("fastestPair() covers the row, with n that divide F_W, at the least cost, for any throughput", () => {
  fc.assert(fc.property(widths, fc.boolean(), ({ filterWidth, outputWidth, rates }, exact) => {
    const rate = (omega: Omega) => rates[OMEGAS.indexOf(omega)]!;
    const pair = fastestPair(filterWidth, outputWidth, rate, { exact });
    const { first, second, k0, k1, width } = pair;
    assert.equal(width, k0 * first.r + k1 * (second?.r ?? 0));
    assert.ok(k0 >= 1 && (second ? k1 >= 1 : k1 === 0));
    const last = second ?? first;
    assert.ok(width >= outputWidth && width - last.r < outputWidth);
    if (exact) assert.equal(width, outputWidth);
    for (const { n } of second ? [first, second] : [first]) assert.equal(filterWidth % n, 0);
    if (second) assert.ok(rate(second) <= rate(first));
    const least = Math.min(
      ...possiblePairs(filterWidth, outputWidth, rate, { exact }).map((p) => pairCost(p, rate)),
    );
    assert.ok(pairCost(pair, rate) <= least * (1 + 1e-8));
  }));
});

Deno.test("possiblePairs() leaves out no k0 that would be cheaper", () => {
  fc.assert(fc.property(widths, ({ filterWidth, outputWidth }) => {
    const best = pairCost(fastestPair(filterWidth, outputWidth, nominal), nominal);
    const kernels = admissible(filterWidth);
    for (const first of kernels) {
      for (const second of kernels) {
        for (let k0 = 0; k0 * first.r <= outputWidth; k0++) {
          const k1 = Math.ceil((outputWidth - k0 * first.r) / second.r);
          const cost = k0 * first.r / nominal(first) + k1 * second.r / nominal(second);
          assert.ok(best <= cost * (1 + 1e-8));
        }
      }
    }
  }));
});

Deno.test("possiblePairs() has nested kernels behind nested ones alone, and pairs that are admitted", () => {
  const all = possiblePairs(3, 16, nominal, { tiledRows: 3 });
  const behind = all.filter(({ second }) => second?.rows !== undefined);
  assert.ok(behind.length > 0 && behind.every(({ first }) => first.rows !== undefined));
  const full = possiblePairs(3, 16, nominal, {
    tiledRows: 3,
    admits: ({ width }) => width === 16,
  });
  assert.deepEqual(full, all.filter(({ width }) => width === 16));
  assert.ok(full.length < all.length);
});

Deno.test("parsePair() forces a pair or a single kernel", () => {
  assert.equal(spell(parsePair("a8n3r6,a4n3r2", 3, 16)), "2 x a8n3r6 + 2 x a4n3r2");
  assert.equal(spell(parsePair("a8n3r6, a4n3r2", 3, 28)), "4 x a8n3r6 + 2 x a4n3r2");
  const single = parsePair("a8n3r6", 3, 16);
  assert.equal(spell(single), "3 x a8n3r6");
  assert.equal(single.width, 18);
});

Deno.test("parsePair() gives a row too narrow for both to the second kernel", () => {
  assert.equal(spell(parsePair("a8n3r6,a4n3r2", 3, 4)), "2 x a4n3r2");
});

Deno.test("parsePair() fills the second kernel's last tile where it must", () => {
  const pair = parsePair("a8n3r6,a4n3r2", 3, 13);
  assert.equal(spell(pair), "2 x a8n3r6 + 1 x a4n3r2");
  assert.equal(pair.width, 14);
});

Deno.test("parsePair() refuses unknown kernels, wrong numbers of them and a wrong n", () => {
  assert.throws(() => parsePair("a8n3r7", 3, 16), RangeError);
  assert.throws(() => parsePair("a8n3r6,a8n3r6", 3, 16), SyntaxError);
  assert.throws(() => parsePair("a8n3r6,a4n3r2,a2n1r1", 3, 16), SyntaxError);
  assert.throws(() => parsePair("a8n3r6,a4n2r3", 3, 16), {
    name: "RangeError",
    message:
      "Cannot choose WinRS kernels: a4n2r3 yields 2 filter columns at once, which does not divide the " +
      "filter's width 3; those that fit are a2n1r1, a4n3r2, a8n3r6",
  });
});

Deno.test("parsePair() refuses a nested kernel whose rows do not divide the filter's, or may not be tiled", () => {
  const parse = (tiledRows: number) => parsePair("a4n3r2xa4n3r2", 3, 16, undefined, tiledRows);
  assert.equal(spell(parse(6)), "8 x a4n3r2xa4n3r2");
  assert.throws(
    () => parse(4),
    /yields 3 filter rows at once, which does not divide the filter's 4;/,
  );
  assert.throws(() => parse(0), /goes along rows, of which there are none without a stride or dil/);
});

Deno.test("fastestPair() refuses widths that are no positive whole numbers", () => {
  assert.throws(() => fastestPair(0, 4, nominal), RangeError);
  assert.throws(() => fastestPair(3, 1.5, nominal), RangeError);
});
