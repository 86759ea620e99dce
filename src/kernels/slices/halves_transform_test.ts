import assert from "#assert";
import { identity, type Matrix, type Rational, rational } from "../../winograd/matrix.ts";
import { tileTransform } from "../../winograd/transform.ts";
import { halvesTransformText } from "./halves_transform.ts";
import { tileTransforms } from "./patch.ts";

const round = (value: number) => Math.f16round(value);

/** Runs the text on a value of each vector: its WGSL is JavaScript but for types, constants and fma, each of which is rounded. */
function run(matrix: Matrix, values: readonly number[]): { results: number[]; largest: number } {
  const names = values.map((_, j) => `x${j}`);
  const { statements, outputs } = halvesTransformText(matrix, "t", names);
  const text = [...statements, `return [${outputs.join(", ")}];`].join("\n")
    .replace(/fma\(vec4<f16>\(/g, "halfFma((").replace(/fma\(vec4f\(/g, "singleFma((")
    .replace(/vec4<f16>\(/g, "half(").replace(/vec4f\(/g, "(")
    .replace(/(-?[\d.]+)h \* (\w+)/g, "half($1 * $2)")
    .replace(/(-?[\d.]+)f \* (\w+)/g, "single($1 * $2)")
    .replace(/([\d.])[hf]\b/g, "$1");
  let largest = 0;
  const half = (value: number) => {
    largest = Math.max(largest, Math.abs(value));
    return round(value);
  };
  const scope = {
    half,
    single: Math.fround,
    halfFma: (a: number, b: number, c: number) => half(a * b + c),
    singleFma: (a: number, b: number, c: number) => Math.fround(a * b + c),
  };
  const body = new Function(...Object.keys(scope), ...names, text);
  return { results: body(...Object.values(scope), ...values), largest };
}

function exactly(matrix: Matrix, values: readonly number[]): number[] {
  return matrix.map((row) =>
    row.reduce((sum, factor, j) => sum + factor.valueOf() * values[j]!, 0)
  );
}

const transformsOf = (n: number, r: number) => {
  const { input, filter } = tileTransforms([tileTransform(n, r, "f16")], identity(1));
  return { data: input.columns, gradient: filter.columns };
};
const { data, gradient } = transformsOf(3, 2);
/** All whose rows are in f16: the data's of F(2,3) too. */
const IN_HALVES = [data, gradient, transformsOf(2, 3).data];

/** Halves of many sizes. */
function* halves(count: number): Generator<number[]> {
  for (let seed = 1, i = 0; i < 500; i++) {
    yield Array.from({ length: count }, () => {
      seed = seed * 16_807 % 2_147_483_647;
      return round((seed / 2 ** 30 - 1) * 2 ** (seed % 9 - 4));
    });
  }
}

Deno.test("sums of two halves are rounded once, by instructions of f16 alone", () => {
  for (const matrix of IN_HALVES) {
    const { statements, outputs } = halvesTransformText(matrix, "t", ["a", "b", "c", "d"]);
    assert.deepEqual(statements, []);
    assert.doesNotMatch(outputs.join(), /vec4f/);
    for (const values of halves(matrix[0]!.length)) {
      assert.deepEqual(run(matrix, values).results, exactly(matrix, values).map(round));
    }
  }
});

Deno.test("other rows are summed in f32 and rounded once", () => {
  for (const [n, r] of [[2, 3], [3, 6], [5, 4], [7, 2]] as const) {
    for (const matrix of Object.values(transformsOf(n, r))) {
      for (const values of halves(matrix[0]!.length)) {
        const exact = exactly(matrix, values);
        const scale = Math.max(...values.map(Math.abs));
        run(matrix, values).results.forEach((value, i) => {
          // Constants of larger transforms are no f32, and its sums are rounded on their way; the least half is 2^-24.
          const error = Math.abs(value - exact[i]!);
          const allowed = Math.abs(exact[i]!) * 2 ** -11 + scale * 2 ** -20 + 2 ** -24;
          assert.ok(error <= allowed, `F(${n},${r})`);
        });
      }
    }
  }
  const { gradient: three } = transformsOf(2, 3);
  const { statements, outputs } = halvesTransformText(three, "t", ["a", "b", "c"]);
  assert.deepEqual([outputs[0], outputs.at(-1)], ["a", "c"]);
  assert.equal(statements.filter((text) => text.includes(" = vec4f(")).length, 3);
});

Deno.test("the largest halves do not overflow on their way", () => {
  const most = 65_504;
  for (const matrix of IN_HALVES) {
    for (let signs = 0; signs < 2 ** matrix[0]!.length; signs++) {
      const values = matrix[0]!.map((_, j) => signs >> j & 1 ? -most : most);
      const { results, largest } = run(matrix, values);
      assert.ok(largest <= most);
      assert.deepEqual(results, exactly(matrix, values));
    }
  }
});

Deno.test("halves below 2^-13 are rounded as they are halved, and by no more than the least half", () => {
  let differ = 0;
  for (const matrix of IN_HALVES) {
    for (const values of halves(matrix[0]!.length)) {
      const tiny = values.map((value) => round(value * 2 ** -16));
      const exact = exactly(matrix, tiny);
      run(matrix, tiny).results.forEach((value, i) => {
        if (value !== round(exact[i]!)) differ++;
        assert.ok(Math.abs(value - exact[i]!) <= 2 ** -24);
      });
    }
  }
  assert.ok(differ > 0);
});

Deno.test("signs, rows of zeros, and factors other than 1 and a half", () => {
  const [zero, one, minus, two] = [0, 1, -1, 2].map((value) => rational(value)) as [
    Rational,
    Rational,
    Rational,
    Rational,
  ];
  const outputs = (...matrix: Rational[][]) => halvesTransformText(matrix, "t", ["a", "b"]).outputs;
  assert.deepEqual(outputs([one, zero], [zero, minus]), ["a", "-b"]);
  assert.deepEqual(outputs([one, minus]), ["fma(vec4<f16>(-1h), b, a)"]);
  assert.deepEqual(outputs([zero, zero]), ["vec4<f16>(vec4f(0f))"]);
  for (
    const row of [[rational("1/3"), one], [two, minus], [zero, two], [rational("1/4"), one]]
  ) {
    assert.match(outputs(row)[0]!, /^vec4<f16>\(t/);
  }
  // What overflows on its way in f16: 2 a.
  assert.deepEqual(run([[two, minus]], [60_000, 65_504]).results, [round(54_496)]);
});
