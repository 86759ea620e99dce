/** Faults that kernels of products typically have. */
import type { GemmProblem } from "../problem/gemm_problem.ts";
import { activate } from "../problem/activations.ts";
import type { GemmInputs } from "../reference/gemm.ts";
import { type Hypothesis, movedHypotheses, otherActivations } from "./hypothesis.ts";

/** Depths that kernels sum at a time. */
const BLOCKS = [4, 8, 16, 32, 64, 128];

/** What entries of a product's canonical axes are called. */
export const PRODUCT_NAMES = ["product", "row", "column"];

/** What may have become of a product, the simplest first. */
export function gemmHypotheses(problem: GemmProblem, operands: GemmInputs): readonly Hypothesis[] {
  const { m, n, k, batch, transpose, alpha, beta, bias, activation, residual } = problem;
  const one = (name: string, changed: Partial<GemmProblem>, inputs: GemmInputs = operands) =>
    [name, { ...problem, ...changed }, inputs] as const;
  const turned = (which: 0 | 1) => {
    const other = transpose[which] === "n" ? "t" : "n";
    return (which === 0 ? other + transpose[1] : transpose[0] + other) as GemmProblem["transpose"];
  };
  const variants = [
    ...(bias === "none" ? [] : [
      one("the bias missing", { bias: "none" }),
      one("the bias added twice", {}, { ...operands, bias: times(2, operands.bias!) }),
      one("the bias subtracted", {}, { ...operands, bias: times(-1, operands.bias!) }),
      ...(m === n
        ? [one("the bias along the other side", { bias: bias === "row" ? "column" : "row" })]
        : []),
    ]),
    ...otherActivations(activation).map(([name, other]) => one(name, { activation: other })),
    ...(beta === 0 ? [] : [
      one("C missing", { beta: 0 }),
      ...(beta === 1 ? [] : [one("beta left out", { beta: 1 })]),
      ...(alpha === beta ? [] : [one("alpha and beta swapped", { alpha: beta, beta: alpha })]),
      ...(alpha === 1 ? [] : [one("C multiplied by alpha, too", { beta: alpha * beta })]),
      ...(m === n && m > 1 && batch === 1
        ? [one("C transposed", {}, { ...operands, c: transposed(operands.c!, m) })]
        : []),
    ]),
    ...(alpha === 1 ? [] : [one("alpha left out", { alpha: 1 })]),
    ...(residual
      ? [
        one("the residual missing", { residual: false }),
        one("the residual added twice", {}, {
          ...operands,
          residual: times(2, operands.residual!),
        }),
        one("the residual subtracted", {}, {
          ...operands,
          residual: times(-1, operands.residual!),
        }),
      ]
      : []),
    ...(m === k && m > 1 ? [one("A transposed", { transpose: turned(0) })] : []),
    ...(k === n && n > 1 ? [one("B transposed", { transpose: turned(1) })] : []),
    ...BLOCKS.filter((block) => k > block && k % block > 0).map((block) =>
      one(
        `the last ${k % block} of ${k} products left out (the tail behind a multiple of ${block})`,
        { k: k - k % block },
      )
    ),
    ...(k > 1 ? [one("the last product left out", { k: k - 1 })] : []),
  ];
  return [
    ...variants.map(([name, changed, inputs]): Hypothesis => ({
      name,
      values: (indices) => productValues(problem, changed, inputs, indices),
    })),
    ...movedHypotheses({
      shape: [batch, m, n],
      right: (indices) => productValues(problem, problem, operands, indices),
      names: PRODUCT_NAMES,
      layouts: [],
      layout: "",
    }),
  ];
}

function times(factor: number, values: ArrayLike<number>): Float64Array {
  return Float64Array.from(values, (value) => factor * value);
}

/** A square matrix with rows and columns swapped. */
function transposed(values: ArrayLike<number>, size: number): Float64Array {
  return Float64Array.from(values, (_, i) => values[i % size * size + Math.floor(i / size)]!);
}

/** Outputs as a changed problem has them, of matrices that lie as they do. */
function productValues(
  { m, n, k: depth }: GemmProblem,
  { transpose, k, alpha, beta, bias, activation, residual }: GemmProblem,
  operands: GemmInputs,
  indices: readonly number[],
): Float64Array {
  const [a, b] = [operands.a!, operands.b!];
  const [aRow, aStep] = transpose[0] === "n" ? [depth, 1] : [1, m];
  const [bColumn, bStep] = transpose[1] === "n" ? [1, n] : [depth, 1];
  return Float64Array.from(indices, (index) => {
    const column = index % n, row = Math.floor(index / n) % m, one = Math.floor(index / (m * n));
    const aFirst = one * m * depth + row * aRow, bFirst = one * depth * n + column * bColumn;
    let sum = 0;
    for (let i = 0; i < k; i++) sum += a[aFirst + i * aStep]! * b[bFirst + i * bStep]!;
    const shift = bias === "none" ? 0 : operands.bias![bias === "row" ? row : column]!;
    const own = beta === 0 ? 0 : beta * operands.c![index]!;
    const skip = residual ? operands.residual![index]! : 0;
    return activate(activation, alpha * sum + own + shift) + skip;
  });
}
