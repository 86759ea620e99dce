import assert from "#assert";
import {
  halvesTransformText,
  patchSize,
  type PatchTransform,
  readsRow,
  tileTransforms,
  transformResults,
  transformText,
} from "./patch.ts";
import { identity, type Matrix, type Rational, rational } from "../../winograd/matrix.ts";
import { slicesTransform, tileTransform, winogradTransform } from "../../winograd/transform.ts";

/** Runs the statements of a transform on numbers: their WGSL is JavaScript but for constants and fma. */
function run(transform: PatchTransform, patch: readonly (readonly number[])[]): number[] {
  const names = patch.map((row, i) => row.map((_, j) => `x${i}_${j}`));
  const { statements, outputs } = transformText(transform, "t", (i, j) => names[i]![j]!, "f32");
  const text = [...statements, `return [${outputs.join(", ")}];`].join("\n")
    .replace(/(?<=\d)f\b/g, "");
  const body = new Function("fma", ...names.flat(), text);
  return body((a: number, b: number, c: number) => a * b + c, ...patch.flat());
}

function close(got: readonly number[], expected: readonly number[]) {
  assert.equal(got.length, expected.length);
  got.forEach((value, i) => assert.ok(Math.abs(value - expected[i]!) < 1e-6, `${value}`));
}

const input = (height: number, width: number) =>
  Array.from(
    { length: height },
    (_, i) => Array.from({ length: width }, (_, j) => Math.sin(1 + 7 * i + 3 * j)),
  );

for (const [rows, columns] of [[undefined, [6, 3]], [[2, 3], [2, 3]], [[4, 3], [2, 5]]] as const) {
  const axes = [...(rows === undefined ? [] : [rows]), columns].map(([n, r]) =>
    winogradTransform(n, r)
  );
  const name = axes.map(({ n, r }) => `F(${n},${r})`).join(" nested with ");
  Deno.test(`the transforms' text of ${name} computes the correlation`, () => {
    const transforms = tileTransforms(axes, identity(1));
    const [height, width] = patchSize(transforms.input);
    const [filterHeight, filterWidth] = patchSize(transforms.filter);
    const [x, w] = [input(height, width), input(filterHeight, filterWidth)];
    const a = run(transforms.input, x);
    const b = run(transforms.filter, w);
    assert.equal(a.length, transformResults(transforms.input));
    const products = a.map((value, i) => value * b[i]!);
    const square = Array.from(
      { length: height },
      (_, i) => products.slice(i * width, (i + 1) * width),
    );
    const expected: number[] = [];
    for (let i = 0; i + filterHeight <= height; i++) {
      for (let j = 0; j + filterWidth <= width; j++) {
        let sum = 0;
        w.forEach((row, k) => row.forEach((value, l) => sum += value * x[i + k]![j + l]!));
        expected.push(sum);
      }
    }
    close(run(transforms.output, square), expected);
  });
}

Deno.test("texts of sets of rows add up to all rows', read no more of a patch than they need, and go along rows first where that is less", () => {
  const [rows, columns] = [winogradTransform(3, 2), winogradTransform(3, 6)];
  const whole = tileTransforms([rows, columns], identity(1));
  const setOf = (set: number[], shortest = true) =>
    tileTransforms([slicesTransform(rows, set), columns], identity(1), shortest);
  const sets = [[3, 0], [1, 2]].map((set) => setOf(set));
  const [x, w] = [input(4, 8), input(2, 6)];
  const results = ({ input, filter, output }: typeof whole) => {
    const [a, b] = [run(input, x), run(filter, w)];
    const width = columns.alpha;
    const products = Array.from(
      { length: a.length / width },
      (_, i) => a.slice(i * width, (i + 1) * width).map((value, j) => value * b[i * width + j]!),
    );
    return run(output, products);
  };
  const parts = sets.map(results);
  close(parts[0]!.map((value, i) => value + parts[1]![i]!), results(whole));
  const read = sets.map(({ input }) => [0, 1, 2, 3].filter((row) => readsRow(input, row)));
  assert.deepEqual(read, [[0, 1, 2, 3], [1, 2]]);
  const text = (transform: PatchTransform) =>
    transformText(transform, "t", (i, j) => `x${i}_${j}`, "f32").statements;
  assert.ok(!/x[03]_/.test(text(sets[1]!.input).join("\n")));
  // Two rows of eight columns of four rows each: sixteen sums and two transforms, for four and sixteen sums.
  const along = text(tileTransforms([columns], identity(1)).input).length;
  assert.equal(text(sets[0]!.input).length, 16 + 2 * along);
  assert.equal(text(setOf([3, 0], false).input).length, 16 + 4 * along);
});

const round = (value: number) => Math.f16round(value);

/** Runs the text on a value of each vector: its WGSL is JavaScript but for types, constants and fma, each of which is rounded. */
function runHalves(
  matrix: Matrix,
  values: readonly number[],
): { results: number[]; largest: number } {
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
      assert.deepEqual(runHalves(matrix, values).results, exactly(matrix, values).map(round));
    }
  }
});

Deno.test("other rows are summed in f32 and rounded once", () => {
  for (const [n, r] of [[2, 3], [3, 6], [5, 4], [7, 2]] as const) {
    for (const matrix of Object.values(transformsOf(n, r))) {
      for (const values of halves(matrix[0]!.length)) {
        const exact = exactly(matrix, values);
        const scale = Math.max(...values.map(Math.abs));
        runHalves(matrix, values).results.forEach((value, i) => {
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
      const { results, largest } = runHalves(matrix, values);
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
      runHalves(matrix, tiny).results.forEach((value, i) => {
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
  assert.deepEqual(runHalves([[two, minus]], [60_000, 65_504]).results, [round(54_496)]);
});
