import { type Tensor, tensor } from "../tensor/tensor.ts";
import { appliedMatrix } from "../winograd/counts.ts";
import { linearProgram } from "../winograd/linear_program.ts";
import { type Matrix, type Rational, toNumbers } from "../winograd/matrix.ts";
import type { WgslFloat } from "../winograd/program.ts";
import { distinctAxes, SYMBOLS, type TransformDescription } from "./transform_report.ts";

/** One JSON document: exact matrices as text, counts, limits. */
export function transformJson(description: TransformDescription): string {
  const { name, scaling, axes, counts, products, plainProducts, length, relL2 } = description;
  const text = (matrix: Matrix) => matrix.map((row) => row.map((value) => value.toFraction()));
  return JSON.stringify({
    schema: 1,
    kind: "transform",
    tile: name,
    scaling,
    axes: axes.map(({ n, r, alpha, points, a, g, d }) => ({
      n,
      r,
      alpha,
      points,
      A: text(a),
      G: text(g),
      D: text(d),
    })),
    operations: counts,
    products,
    plain_products: plainProducts,
    acceleration: plainProducts / products,
    amplification: description.amplification,
    length,
    rel_l2: relL2,
  });
}

/** The matrices as LaTeX for amsmath. */
export function latexText(description: TransformDescription): string {
  return distinctAxes(description).flatMap(({ axis, title }) => [
    ...(title === "" ? [] : [`% ${title}: F(${axis.n},${axis.r})`]),
    ...SYMBOLS.map(([which, symbol]) => {
      const rows = appliedMatrix(axis, which).map((row) => `  ${row.map(latexNumber).join(" & ")}`);
      const left = symbol.replace("ᵀ", "^{\\mathsf T}");
      return `${left} = \\begin{bmatrix}\n${rows.join(" \\\\\n")}\n\\end{bmatrix}`;
    }),
  ]).join("\n");
}

function latexNumber(value: Rational): string {
  const { s, n, d } = value;
  const sign = s < 0n ? "-" : "";
  return d === 1n ? `${sign}${n}` : `${sign}\\frac{${n}}{${d}}`;
}

/** Each transform as a function of an array, of which shaders use the statements. */
export function wgslText(description: TransformDescription, type: WgslFloat): string {
  return distinctAxes(description).flatMap(({ axis, title }) =>
    SYMBOLS.map(([which]) => {
      const program = linearProgram(appliedMatrix(axis, which));
      const names = Array.from({ length: program.inputs }, (_, i) => `x[${i}]`);
      const { statements, outputs } = program.text("t", names, type);
      const result = `array<${type}, ${program.outputs}>`;
      const { additions, multiplications, instructions } = program;
      return [
        `// F(${axis.n},${axis.r}): ${additions} additions, ${multiplications} multiplications, ` +
        `${instructions} instructions`,
        `fn ${which}_transform${title === "" ? "" : `_${title}`}` +
        `(x: array<${type}, ${program.inputs}>) -> ${result} {`,
        ...statements.map((statement) => `  ${statement}`),
        `  return ${result}(${outputs.join(", ")});`,
        "}",
      ].join("\n");
    })
  ).join("\n\n");
}

/** The matrices as float64 tensors: A, G and D, numbered by axis where there are two. */
export function matrixTensors({ axes }: TransformDescription): Record<string, Tensor> {
  return Object.fromEntries(
    axes.flatMap(({ a, g, d }, axis) =>
      Object.entries({ A: a, G: g, D: d }).map(([name, matrix]) => [
        axes.length === 1 ? name : `${name}${axis}`,
        tensor(
          "f64",
          [matrix.length, matrix[0]!.length],
          Float64Array.from(toNumbers(matrix).flat()),
        ),
      ])
    ),
  );
}
