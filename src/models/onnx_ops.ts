/** What an ONNX node computes, as a problem. */
import { InputRangeError } from "../errors.ts";
import { shorten } from "../printable.ts";
import { type ConvProblem, convProblem } from "../problem/conv_problem.ts";
import { convTransposeProblem } from "../problem/conv_transpose.ts";
import { type GemmProblem, gemmProblem, type Transpose } from "../problem/gemm_problem.ts";
import { permute } from "../tensor/layout.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Layer } from "./layer.ts";
import type { OnnxNode } from "./onnx_format.ts";

/** Letters of an equation such as `bhid,bhjd->bhij` by what they are in the product: batch b and h, rows i, columns j, depth d. */
interface Letters {
  readonly a: string;
  readonly b: string;
  readonly result: string;
  readonly batch: string;
  readonly rows: string;
  readonly columns: string;
  readonly depth: string;
}

/** @throws {RangeError} where the equation is no product of two operands. */
function lettersOf({ attributes }: Pick<OnnxNode, "attributes">): Letters {
  const equation = (attributes.get("equation")?.text ?? "").replaceAll(" ", "");
  const [whole, a = "", b = "", said] = /^([a-z]+),([a-z]+)(?:->([a-z]*))?$/i.exec(equation) ?? [];
  const once = [...a + b].filter((letter) => (a + b).split(letter).length === 2).sort().join("");
  const result = said ?? once;
  const those = (kept: (letter: string) => boolean) => [...new Set(a + b)].filter(kept).join("");
  const letters = {
    ...{ a, b, result },
    batch: those((one) => a.includes(one) && b.includes(one) && result.includes(one)),
    depth: those((one) => a.includes(one) && b.includes(one) && !result.includes(one)),
    rows: those((one) => !b.includes(one) && result.includes(one)),
    columns: those((one) => !a.includes(one) && result.includes(one)),
  };
  const { batch, rows, columns, depth } = letters;
  const inOrder = (text: string) => [...text].sort().join("");
  const sumsOne = inOrder(a) !== inOrder(batch + rows + depth) ||
    inOrder(b) !== inOrder(batch + depth + columns) ||
    inOrder(result) !== inOrder(batch + rows + columns);
  if (whole === undefined || sumsOne) {
    throw new InputRangeError(
      `Cannot multiply: ${shorten(equation, 60)} is no product of two operands`,
    );
  }
  return letters;
}

/**
 * The product that an equation of two operands is.
 *
 * @throws {RangeError} where it is none, or where sizes do not go together.
 */
function einsumProblem(
  node: Pick<OnnxNode, "attributes">,
  shapes: readonly [readonly number[], readonly number[]],
): GemmProblem {
  const { a, b, batch, rows, columns, depth } = lettersOf(node);
  const sizes = new Map<string, number>();
  for (const [at, letters] of [a, b].entries()) {
    const shape = shapes[at]!;
    for (const [axis, letter] of [...letters].entries()) {
      const size = shape[axis];
      if (shape.length !== letters.length || (sizes.get(letter) ?? size) !== size) {
        throw new InputRangeError(
          `Cannot multiply: ${shorten(`${a},${b}`, 60)} of [${shapes[0].join(", ")}] and [${
            shapes[1].join(", ")
          }]`,
        );
      }
      sizes.set(letter, size!);
    }
  }
  const product = (letters: string) =>
    [...letters].reduce((all, letter) => all * sizes.get(letter)!, 1);
  const innermost = (letters: string) => [...letters].findLast((one) => !batch.includes(one)) ?? "";
  const stored = [
    depth !== "" && rows !== "" && rows.includes(innermost(a)) ? "t" : "n",
    depth !== "" && columns !== "" && depth.includes(innermost(b)) ? "t" : "n",
  ];
  return gemmProblem({
    ...{ m: product(rows), n: product(columns), k: product(depth), batch: product(batch) },
    transpose: stored.join("") as Transpose,
  });
}

/** A tensor of the equation as matrices of a batch: rows of A and of the result, the depth of B come first. */
export function einsumMatrices(
  node: Pick<OnnxNode, "attributes">,
  part: "a" | "b" | "result",
  value: Tensor,
): Tensor {
  const { batch, rows, columns, depth, ...letters } = lettersOf(node);
  const order = batch + { a: rows + depth, b: depth + columns, result: rows + columns }[part];
  return permute(value, [...order].map((letter) => letters[part].indexOf(letter)));
}

/** Where a node's two operands and its bias stand among its inputs. */
interface OperandPlaces {
  readonly operands: readonly [number, number];
  readonly bias?: number;
  readonly make: (node: OnnxNode, shapes: OperandShapes) => Pick<Layer, "problem" | "ops">;
}

/** Sizes of the two operands. */
type OperandShapes = readonly [readonly number[], readonly number[]];

/** The operators that are layers. */
export const LAYER_OPS: Readonly<Record<string, OperandPlaces>> = {
  Conv: { operands: [0, 1], bias: 2, make: convolution },
  FusedConv: { operands: [0, 1], bias: 2, make: convolution },
  ConvInteger: { operands: [0, 1], make: convolution },
  QLinearConv: { operands: [0, 3], bias: 8, make: convolution },
  ConvTranspose: { operands: [0, 1], bias: 2, make: transposedConvolution },
  Gemm: { operands: [0, 1], bias: 2, make: product },
  FusedGemm: { operands: [0, 1], bias: 2, make: product },
  MatMul: { operands: [0, 1], make: matmul },
  FusedMatMul: { operands: [0, 1], make: matmul },
  MatMulInteger: { operands: [0, 1], make: matmul },
  QLinearMatMul: { operands: [0, 3], make: matmul },
  Einsum: { operands: [0, 1], make: einsum },
};

/** Operators with sums of products of their own, which are no layers here. */
export const PRODUCTS_INSIDE: readonly string[] = [
  ...["LSTM", "GRU", "RNN", "DeformConv", "Attention", "MultiHeadAttention"],
  ...["GroupQueryAttention", "QAttention", "MatMulNBits", "QGemm", "DynamicQuantizeMatMul"],
  "MatMulIntegerToFloat",
];

interface Attributes {
  readonly groups: number;
  readonly stride: readonly number[];
  readonly dilation: readonly number[];
  readonly pads: readonly number[];
  readonly autoPad: string;
}

function attributesOf({ attributes }: OnnxNode, rank: number): Attributes {
  const values = (name: string, standard: number, count = rank) => {
    const { ints = [] } = attributes.get(name) ?? {};
    return ints.length > 0 ? ints : new Array<number>(count).fill(standard);
  };
  return {
    groups: attributes.get("group")?.int ?? 1,
    stride: values("strides", 1),
    dilation: values("dilations", 1),
    pads: values("pads", 0, 2 * rank),
    autoPad: attributes.get("auto_pad")?.text || "NOTSET",
  };
}

const PADDING_WORDS: Readonly<Record<string, "same" | "same-lower" | "valid">> = {
  SAME_UPPER: "same",
  SAME_LOWER: "same-lower",
  VALID: "valid",
};

function convolution(
  node: OnnxNode,
  [input, filter]: OperandShapes,
): Pick<Layer, "problem" | "ops"> {
  const rank = spatialRank(input);
  const { groups, stride, dilation, pads, autoPad } = attributesOf(node, rank);
  const word = PADDING_WORDS[autoPad];
  refuseChannels(input[1]!, filter[1]! * groups);
  const conv = convProblem({
    batch: input[0]!,
    inChannels: input[1]!,
    outChannels: filter[0]!,
    groups,
    inputSize: input.slice(2),
    filterSize: filter.slice(2),
    stride,
    dilation,
    ...(word === undefined
      ? { paddingBegin: pads.slice(0, rank), paddingEnd: pads.slice(rank) }
      : { padding: word }),
  });
  return { problem: { conv }, ops: ["fwd"] };
}

/** How many axes an input has behind its batch and channels. */
function spatialRank(input: readonly number[]): number {
  if (input.length > 2) return input.length - 2;
  throw new InputRangeError(
    `Cannot convolve: input is [${input.join(", ")}], without axes behind batch and channels`,
  );
}

function refuseChannels(input: number, filter: number): void {
  if (input === filter) return;
  throw new InputRangeError(`Cannot convolve: filter has ${filter} channels, input has ${input}`);
}

function transposedConvolution(
  node: OnnxNode,
  [input, filter]: OperandShapes,
): Pick<Layer, "problem" | "ops"> {
  const rank = spatialRank(input);
  const { groups, stride, dilation, pads, autoPad } = attributesOf(node, rank);
  refuseChannels(input[1]!, filter[0]!);
  const [inputSize, filterSize] = [input.slice(2), filter.slice(2)];
  const ints = (name: string) => node.attributes.get(name)?.ints ?? [];
  const more = ints("output_padding").length > 0 ? ints("output_padding") : inputSize.map(() => 0);
  const same = autoPad === "SAME_UPPER" || autoPad === "SAME_LOWER";
  const asked = ints("output_shape").slice(-rank);
  const target = asked.length > 0
    ? asked
    : same
    ? inputSize.map((size, axis) => size * stride[axis]!)
    : undefined;
  const sizes = {
    batch: input[0]!,
    inChannels: input[1]!,
    outChannels: filter[1]! * groups,
    groups,
    inputSize,
    filterSize,
    stride,
    dilation,
  };
  const conv: ConvProblem = target === undefined
    ? convTransposeProblem({
      ...sizes,
      padding: autoPad === "VALID" ? 0 : pads,
      outputPadding: more,
    })
    : convTransposeProblem({ ...sizes, ...paddingFor(target, sizes, more, autoPad) });
  return { problem: { conv }, ops: ["bwd-data"] };
}

/** The padding that leaves `target` elements, or the output padding where there are too few of them. */
function paddingFor(
  target: readonly number[],
  { inputSize, filterSize, stride, dilation }: {
    readonly [name in "inputSize" | "filterSize" | "stride" | "dilation"]: readonly number[];
  },
  more: readonly number[],
  autoPad: string,
): { padding: number[]; outputPadding: number[] } {
  const totals = target.map((size, axis) =>
    stride[axis]! * (inputSize[axis]! - 1) + more[axis]! +
    (filterSize[axis]! - 1) * dilation[axis]! + 1 - size
  );
  const lost = totals.map((total) => Math.max(0, total));
  const halves = lost.map((total) => Math.floor(total / 2));
  const others = lost.map((total, axis) => total - halves[axis]!);
  return {
    padding: autoPad === "SAME_UPPER" ? [...halves, ...others] : [...others, ...halves],
    outputPadding: more.map((own, axis) => own + Math.max(0, -totals[axis]!)),
  };
}

function einsum(node: OnnxNode, shapes: OperandShapes): Pick<Layer, "problem" | "ops"> {
  return { problem: { gemm: einsumProblem(node, shapes) }, ops: [] };
}

/** numpy.matmul: vectors are a row or a column, axes in front are broadcast. */
function matmul(node: OnnxNode, [a, b]: OperandShapes): Pick<Layer, "problem" | "ops"> {
  return product(node, [a.length === 1 ? [1, ...a] : a, b.length === 1 ? [...b, 1] : b]);
}

function product(
  { attributes }: OnnxNode,
  [a, b]: OperandShapes,
): Pick<Layer, "problem" | "ops"> {
  const letter = (name: string) => attributes.get(name)?.int ? "t" : "n";
  const transpose = `${letter("transA")}${letter("transB")}` as Transpose;
  const matrix = (shape: readonly number[], stored: string) => {
    const [rows, columns] = shape.slice(-2) as [number, number];
    return stored === "n" ? [rows, columns] as const : [columns, rows] as const;
  };
  const [m, k] = matrix(a, transpose[0]!);
  const [depth, n] = matrix(b, transpose[1]!);
  const [of, other] = [a, b].map((shape) => shape.slice(0, -2).reduce((x, y) => x * y, 1));
  if (k !== depth || a.length < 2 || b.length < 2) {
    throw new InputRangeError(`Cannot multiply: A is [${a.join(", ")}], B is [${b.join(", ")}]`);
  }
  const batch = broadcastCount(a.slice(0, -2), b.slice(0, -2));
  // Matrices that meet the same B are one with all of their rows.
  const joined = other === 1 && of === batch && transpose[0] === "n";
  const sizes = joined ? { m: batch * m, batch: 1 } : { m, batch };
  return { problem: { gemm: gemmProblem({ ...sizes, n, k, transpose }) }, ops: [] };
}

/** How many matrices two batches make that are broadcast. */
function broadcastCount(a: readonly number[], b: readonly number[]): number {
  const length = Math.max(a.length, b.length);
  let count = 1;
  for (let axis = 1; axis <= length; axis++) {
    const [one, other] = [a.at(-axis) ?? 1, b.at(-axis) ?? 1];
    if (one !== other && one !== 1 && other !== 1) {
      throw new InputRangeError(`Cannot multiply: batches [${a.join(", ")}] and [${b.join(", ")}]`);
    }
    count *= one === 1 ? other : one;
  }
  return count;
}
