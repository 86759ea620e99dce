import assert from "#assert";
import { temporaryDirectory } from "../../tests/cli.ts";
import { succeeds, wgconvHere } from "../../tests/support/in_process.ts";
import { readNpz } from "../npy/mod.ts";
import { parseTile } from "../winograd/tile.ts";
import {
  describeTransform,
  latexText,
  matrixTensors,
  transformJson,
  transformReport,
  wgslText,
} from "./transform.ts";

const describe = (tile: string, length?: number) =>
  describeTransform(parseTile(tile), "none", length);

Deno.test("transformReport() shows matrices, counts and limits", () => {
  const report = transformReport(describe("F(2,3)", 100), "fractions");
  assert.match(report, /^F\(2,3\): y = Aᵀ\[\(G w\) ∘ \(Dᵀ x\)\]\n\npoints: 0 1 -1 inf\n/);
  assert.match(report, /G =\n {4}1 +0 +0\n {2}1\/2 +1\/2 +1\/2\n/);
  assert.match(report, /\nfilter +4 +6 +3 +3 +4\n/);
  assert.match(report, /products +4 in place of 6: acceleration 1\.5/);
  assert.match(report, /amplification +1\.29/);
  assert.match(report, /relative L2 +1\.\de-7 in f32, of normal data with L = 99$/);
});

Deno.test("transformReport() names the axes of a rectangular tile, once where they are alike", () => {
  const rectangular = transformReport(describe("F(4x2,3x5)"), "decimals");
  assert.match(rectangular, /\nrows: F\(4,3\)\n/);
  assert.match(rectangular, /\ncolumns: F\(2,5\)\n/);
  assert.match(rectangular, /36 in place of 120: acceleration 3\.33/);
  assert.equal(transformReport(describe("F(2x2,3x3)"), "fractions").match(/Aᵀ =/g)?.length, 1);
});

Deno.test("transformJson() has exact matrices and the nested counts", () => {
  const { axes, operations, acceleration, length } = JSON.parse(
    transformJson(describe("F(2x2,3x3)")),
  );
  assert.deepEqual(axes[1].G[1], ["1/2", "1/2", "1/2"]);
  // Four additions on each of four rows, then on each of four columns.
  assert.equal(operations.input.simplified.additions, 32);
  assert.equal(operations.output.simplified.additions, 24);
  assert.deepEqual([acceleration, length], [2.25, 512 * 9]);
});

Deno.test("latexText() writes fractions", () => {
  const text = latexText(describe("F(2,3)"));
  assert.ok(text.startsWith("A^{\\mathsf T} = \\begin{bmatrix}\n  1 & 1 & 1 & 0 \\\\\n"));
  assert.ok(text.includes("  \\frac{1}{2} & -\\frac{1}{2} & \\frac{1}{2} \\\\\n"));
});

Deno.test("wgslText() writes a function for each transform", () => {
  const text = wgslText(describe("F(4x2,3x5)"), "vec2f");
  assert.deepEqual(text.match(/fn \w+/g), [
    "fn output_transform_rows",
    "fn filter_transform_rows",
    "fn input_transform_rows",
    "fn output_transform_columns",
    "fn filter_transform_columns",
    "fn input_transform_columns",
  ]);
  assert.ok(text.includes("(x: array<vec2f, 5>) -> array<vec2f, 6> {"));
});

Deno.test("matrixTensors() numbers the matrices of two axes", () => {
  const tensors = matrixTensors(describe("F(4x2,3x5)"));
  assert.deepEqual(Object.keys(tensors), ["A0", "G0", "D0", "A1", "G1", "D1"]);
  assert.deepEqual(tensors.G1!.shape, [6, 5]);
});

Deno.test("wgconv transform writes an archive and refuses what is no tile", async () => {
  using directory = temporaryDirectory();
  const path = `${directory.path}/f.npz`;
  await succeeds([
    "transform",
    "F(2, 3)",
    "--output",
    path,
    "--format",
    "decimals",
  ]);
  const { A, G, D } = await readNpz(path);
  assert.deepEqual([A!.shape, G!.shape, D!.shape], [[4, 2], [4, 3], [4, 4]]);
  assert.deepEqual([...G!.data as Float64Array].slice(3, 9), [0.5, 0.5, 0.5, 0.5, -0.5, 0.5]);

  const refusals: [string[], string][] = [
    [["F(2,33)"], "Cannot use tile F(2,33): n + r - 1 of F(2,33) is 34, above 16"],
    [["6,3"], 'Cannot read tile "6,3": expected F(6,3) or F(2x2,3x3)'],
    [["F(6,3)", "--output", "t.npy"], "Cannot write t.npy: several matrices need an .npz"],
  ];
  for (const [args, sentence] of refusals) {
    const { code, stderr, stdout } = await wgconvHere(["transform", ...args]);
    assert.deepEqual([code, stderr, stdout], [2, `wgconv: ${sentence}\n`, ""]);
  }
});
