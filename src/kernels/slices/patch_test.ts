import assert from "#assert";
import { identity } from "../../winograd/matrix.ts";
import { slicesTransform, winogradTransform } from "../../winograd/transform.ts";
import {
  patchSize,
  type PatchTransform,
  readsRow,
  tileTransforms,
  transformResults,
  transformText,
} from "./patch.ts";

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
