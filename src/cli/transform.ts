import { Command, type CommandUnknownOpts } from "#cli-types";
import { InputRangeError } from "../errors.ts";
import { writeNpz } from "../npy/mod.ts";
import { significant } from "../report/format.ts";
import { textTable } from "../report/table.ts";
import { tileErrors } from "../simulate/tile_errors.ts";
import { type Tensor, tensor } from "../tensor/tensor.ts";
import { amplification, amplification2d } from "../winograd/amplification.ts";
import {
  appliedMatrix,
  linearProgram,
  TRANSFORM_NAMES,
  type TransformCounts,
  transformCounts,
  type TransformName,
} from "../winograd/linear_program.ts";
import { type Matrix, type Rational, toNumbers } from "../winograd/matrix.ts";
import type { WgslFloat } from "../winograd/simplify.ts";
import {
  type Scaling,
  SCALINGS,
  type WinogradTransform,
  winogradTransform,
} from "../winograd/transform.ts";
import { formatTile, parseTile, type WinogradTile } from "../winograd/tile.ts";
import { printer } from "./output.ts";
import { proveOutputs } from "./outputs.ts";
import { oneOf, wholeNumber } from "./values.ts";
import { givenOptions, refuseOptions, refuseTogether } from "./refuse.ts";
import { OPTION } from "./shared_options.ts";

const USUAL_CHANNELS = 512;

/** All that there is to say of a tile. */
interface TransformDescription {
  readonly name: string;
  readonly scaling: Scaling;
  readonly axes: readonly WinogradTransform[];
  readonly counts: Readonly<Record<TransformName, TransformCounts>>;
  /** Products of the algorithm for a tile, and of the plain sums. */
  readonly products: number;
  readonly plainProducts: number;
  readonly amplification: number;
  /** Products in an output that `relL2` is for. */
  readonly length: number;
  /** Relative L2 error of simulated f32 arithmetic on normal data, one accumulator a product. */
  readonly relL2: number;
}

export function describeTransform(
  tile: WinogradTile,
  scaling: Scaling,
  length?: number,
): TransformDescription {
  const axes = tile.n.map((n, axis) => winogradTransform(n, tile.r[axis]!, { scaling }));
  const product = (size: (axis: WinogradTransform) => number) =>
    axes.reduce((all, axis) => all * size(axis), 1);
  const [rows, columns] = axes;
  const enlarged = columns ? amplification2d(rows!, columns) : amplification(rows!);
  const taps = product(({ r }) => r);
  const channels = length === undefined ? USUAL_CHANNELS : Math.max(1, Math.round(length / taps));
  const counts = TRANSFORM_NAMES.map((name) => [name, transformCounts(axes, name)] as const);
  return {
    name: formatTile(tile),
    scaling,
    axes,
    counts: Object.fromEntries(counts) as Record<TransformName, TransformCounts>,
    products: product(({ alpha }) => alpha),
    plainProducts: product(({ n, r }) => n * r),
    amplification: enlarged,
    length: channels * taps,
    relL2: tileErrors(tile, channels).relL2,
  };
}

/** The axes with what to call them; one where both are the same. */
function distinctAxes(
  { axes }: TransformDescription,
): { axis: WinogradTransform; title: string }[] {
  const [rows, columns] = axes;
  if (columns === undefined || rows === columns) return [{ axis: rows!, title: "" }];
  return [{ axis: rows!, title: "rows" }, { axis: columns, title: "columns" }];
}

/** The matrices as they are applied, in the order of the formula. */
const SYMBOLS = [["output", "Aᵀ"], ["filter", "G"], ["input", "Dᵀ"]] as const;

/** The report of `wgconv transform`. */
export function transformReport(
  description: TransformDescription,
  style: "fractions" | "decimals",
): string {
  const { name, axes, products, plainProducts, length, relL2 } = description;
  const formula = axes.length === 1 ? "y = Aᵀ[(G w) ∘ (Dᵀ x)]" : "Y = Aᵀ[(G W Gᵀ) ∘ (Dᵀ X D)]A";
  const parts = [`${name}: ${formula}`];
  for (const { axis, title } of distinctAxes(description)) {
    const lines = title === "" ? [] : [`${title}: F(${axis.n},${axis.r})`];
    if (axis.points.length > 0) lines.push(`points: ${axis.points.join(" ")}`);
    if (lines.length > 0) parts.push(lines.join("\n"));
    for (const [which, symbol] of SYMBOLS) {
      parts.push(`${symbol} =\n${matrixText(appliedMatrix(axis, which), style)}`);
    }
  }
  parts.push(countsTable(description));
  parts.push([
    `products       ${products} in place of ${plainProducts}: acceleration ` +
    significant(plainProducts / products),
    `amplification  ${significant(description.amplification)}`,
    `relative L2    ${relL2.toExponential(1)} in f32, of normal data with L = ${length}`,
  ].join("\n"));
  return parts.join("\n\n");
}

function matrixText(matrix: Matrix, style: "fractions" | "decimals"): string {
  const cells = matrix.map((row) =>
    row.map((value) =>
      style === "fractions" ? value.toFraction() : `${Number(value.valueOf().toPrecision(9))}`
    )
  );
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  return cells.map((row) =>
    `  ${row.map((cell, column) => cell.padStart(widths[column]!)).join("  ")}`
  ).join("\n");
}

function countsTable({ counts, axes }: TransformDescription): string {
  const right = "right" as const;
  const nested = axes.length === 2 ? " of a tile" : "";
  const rows = TRANSFORM_NAMES.map((name) => {
    const { plain, simplified } = counts[name];
    return [
      `${name}${nested}`,
      `${plain.additions}`,
      `${plain.multiplications}`,
      `${simplified.additions}`,
      `${simplified.multiplications}`,
      `${simplified.instructions}`,
    ];
  });
  return textTable([
    { title: "transform" },
    { title: "additions", align: right },
    { title: "multiplications", align: right },
    { title: "simplified: additions", align: right },
    { title: "multiplications", align: right },
    { title: "instructions (fma)", align: right },
  ], rows);
}

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

const FORMATS = ["fractions", "decimals", "latex", "wgsl", "json"] as const;

const EXAMPLES = `
F(n,r) computes n results of a filter of length r with n + r - 1 multiplications; F(n0xn1,r0xr1) nests two.
An .npz holds float64 matrices A (α x n), G (α x r) and D (α x α), or A0, G0, D0 and A1, G1, D1.

Examples:
  wgconv transform 'F(6,3)'
  wgconv transform 'F(2x2,3x3)' --length 4608
  wgconv transform 'F(4,3)' --format latex
  wgconv transform 'F(6,3)' --format wgsl --type vec4f
  wgconv transform 'F(6,3)' --output f63.npz`;

const FORMAT_OPTIONS = ["format", "type"];

/** `wgconv transform`: the matrices of a Winograd algorithm, what they cost and how exact they are. */
export function transformCommand(): CommandUnknownOpts {
  return new Command("transform")
    .description(
      "Print the exact matrices of Winograd's F(n,r), their operation counts and errors.",
    )
    .argument("<tile>", "F(n,r), or F(n0xn1,r0xr1)")
    .option("--format <name>", FORMATS.join(", "), oneOf(FORMATS), "fractions" as const)
    .option("--json", "same as --format json")
    .option(
      "--scaling <name>",
      `scaling of rows: ${SCALINGS.join(", ")}`,
      oneOf(SCALINGS),
      "none" as const,
    )
    .option("--length <L>", "products per output, for the error", wholeNumber(1))
    .option(
      "--type <name>",
      "type of WGSL: f32, vec2f, vec4f",
      oneOf(["f32", "vec2f", "vec4f"] as const),
      "f32" as const,
    )
    .option("--output <file.npz>", "write the matrices to this file too; - is stdout")
    .option(...OPTION.force)
    .addHelpText("after", EXAMPLES)
    .action(async (text, { json, scaling, length, type, output, force, ...options }, command) => {
      const { format: said = false, type: typed = false } = givenOptions(command, FORMAT_OPTIONS);
      refuseTogether("Cannot print", { json, format: said });
      const format = json ? "json" : options.format;
      if (format !== "wgsl") refuseOptions("Cannot print: only WGSL has types", { type: typed });
      const tile = parseTile(text);
      if (output && output !== "-" && !output.endsWith(".npz")) {
        throw new InputRangeError(`Cannot write ${output}: several matrices need an .npz`);
      }
      await proveOutputs([{ option: "--output", path: output, kind: "archive" }], { force });
      const description = describeTransform(tile, scaling, length);
      const out = printer(output === "-" ? "stderr" : "stdout");
      if (format === "json") out.line(transformJson(description));
      else if (format === "latex") out.line(latexText(description));
      else if (format === "wgsl") out.line(wgslText(description, type));
      else out.line(transformReport(description, format));
      if (output !== undefined) await writeNpz(output, matrixTensors(description));
    });
}
