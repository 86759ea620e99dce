/** ONNX's Einsum of two operands as a product. */
import { InputRangeError } from "../errors.ts";
import { shorten } from "../printable.ts";
import { type GemmProblem, gemmProblem, type Transpose } from "../problem/gemm_problem.ts";
import { permute } from "../tensor/layout.ts";
import type { Tensor } from "../tensor/tensor.ts";
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
export function einsumProblem(
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
