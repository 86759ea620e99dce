import { type ConvProblem, convProblem } from "../problem/conv_problem.ts";
import { gemmOperands, type GemmProblem, gemmShape, summedDepth } from "../problem/gemm_problem.ts";
import { elementCount } from "../tensor/tensor.ts";
import type { HostArray } from "./geometry.ts";
import type { ReferenceInputs } from "./reference.ts";

/** What `gemmOperands(problem)` names, as it lies in memory. */
export interface GemmInputs {
  /** [batch, m, k], or [batch, k, m] where it is transposed. */
  readonly a?: HostArray;
  /** [batch, k, n], or [batch, n, k] where it is transposed. */
  readonly b?: HostArray;
  /** [batch, m, n], where beta is not 0. */
  readonly c?: HostArray | Int32Array;
  /** m or n values, by the problem's side. */
  readonly bias?: HostArray | Int32Array;
  /** [batch, m, n] */
  readonly residual?: HostArray | Int32Array;
}

/** @throws {TypeError} if an operand is missing or of another size. */
export function checkGemmOperands(problem: GemmProblem, operands: GemmInputs): void {
  for (const which of gemmOperands(problem) as (keyof GemmInputs)[]) {
    const shape = gemmShape(problem, which);
    const length = operands[which]?.length;
    if (length === undefined) {
      throw new TypeError(`Cannot compute the gemm reference: ${which} is missing`);
    }
    if (length !== elementCount(shape)) {
      throw new TypeError(
        `Cannot compute the gemm reference: ${which} has ${length} elements, ` +
          `its shape [${shape}] has ${elementCount(shape)}`,
      );
    }
  }
}

/** A product of no depth where alpha is 0, so that nothing reads A and B; else the product as it is. */
export function summedProduct<Inputs extends GemmInputs>(
  problem: GemmProblem,
  operands: Inputs,
): { problem: GemmProblem; operands: Inputs } {
  const k = summedDepth(problem);
  if (k === problem.k) return { problem, operands };
  const none = new Float32Array(0);
  return { problem: { ...problem, k }, operands: { ...operands, a: none, b: none } };
}

/**
 * op(A)·op(B) of one of the batch: a 1-tap convolution whose filter [K = m, C = k] is A and whose input
 * [N = 1, C = k, W = n] is B. Transposes are layouts, so nothing is copied.
 */
export function gemmConv(
  problem: GemmProblem,
  { a, b }: GemmInputs,
  one: number,
): { conv: ConvProblem; inputs: ReferenceInputs } {
  const { m, n, k, transpose } = problem;
  const conv = convProblem({
    batch: 1,
    inChannels: k,
    outChannels: m,
    inputSize: [n],
    filterSize: [1],
  });
  const inputs: ReferenceInputs = {
    filter: {
      data: a!.subarray(one * m * k, (one + 1) * m * k),
      layout: transpose[0] === "n" ? "kcrs" : "crsk",
    },
    input: {
      data: b!.subarray(one * k * n, (one + 1) * k * n),
      layout: transpose[1] === "n" ? "nchw" : "nhwc",
    },
  };
  return { conv, inputs };
}
