import assert from "#assert";
import { normalQuantile, RandomWords } from "./random.ts";

function firstWords(seed: number): string[] {
  const words = new Uint32Array(6);
  new RandomWords(seed).fill(words);
  return Array.from(words, (word) => word.toString(16));
}

Deno.test("RandomWords gives the words of SplitMix64 and xoshiro128**", () => {
  // From an independent program with whole numbers of any size.
  assert.deepEqual(
    firstWords(0),
    "dec9045d 9a089d75 ab77d362 c3e16405 5c95a8da 60dea056".split(" "),
  );
  assert.deepEqual(
    firstWords(1),
    "650941ba 54d30301 25d2f321 3fabdca9 2ab8e0a6 f9890067".split(" "),
  );
  assert.deepEqual(
    firstWords(2 ** 53 - 1),
    "4980a133 4cb68966 277278c2 b0783cff 9b095106 3dc1dbe9".split(" "),
  );
});

Deno.test("RandomWords goes on where a fill stopped", () => {
  const whole = new Uint32Array(10);
  new RandomWords(7).fill(whole);
  const parts = new Uint32Array(10);
  const random = new RandomWords(7);
  random.fill(parts.subarray(0, 3));
  random.fill(parts.subarray(3));
  assert.deepEqual(parts, whole);
});

Deno.test("RandomWords refuses seeds that are no whole numbers", () => {
  for (const seed of [-1, 0.5, NaN, 2 ** 53]) {
    assert.throws(() => new RandomWords(seed), { name: "RangeError", message: /seed .* whole/ });
  }
});

Deno.test("normalQuantile() agrees with the quantile of the normal distribution", () => {
  // Words and values of an implementation with 16 digits.
  const cases: [word: number, value: number][] = [
    [0, -6.337957754553789],
    [100, -5.463062554389539],
    [12345, -4.535422762090429],
    [100_000_000, -1.990225241389144],
    [320_000_000, -1.443031449374635],
    [330_000_000, -1.4266936213460024],
    [1_000_000_000, -0.7295565530758739],
    [2 ** 31, 2.9180993729166234e-10],
    [3_000_000_000, 0.5200680618488762],
    [2 ** 32 - 1, 6.337957754553789],
  ];
  for (const [word, value] of cases) {
    assert(Math.abs(normalQuantile(word) - value) < 1e-6, `${word}: ${normalQuantile(word)}`);
  }
});

Deno.test("normalQuantile() is odd and grows", () => {
  let last = -Infinity;
  for (let word = 0; word < 2 ** 32; word += 1_048_573) {
    const value = normalQuantile(word);
    assert(value > last, `${word}`);
    assert.equal(normalQuantile(2 ** 32 - 1 - word), -value);
    last = value;
  }
});
