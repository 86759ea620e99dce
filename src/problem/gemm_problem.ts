import { InputRangeError } from "../errors.ts";
import { expectFields, expectObject, expectWord } from "../expect.ts";
import type { DType } from "../tensor/dtype.ts";
import { type Activation, PLAIN_ACTIVATIONS } from "./activations.ts";

/** Which operands are stored transposed: A's letter, then B's. */
export type Transpose = "nn" | "nt" | "tn" | "tt";
/** All four, in the order of lists. */
export const TRANSPOSES: readonly Transpose[] = ["nn", "nt", "tn", "tt"];

/** Element type of the result of f16 and bf16 operands, theirs or f32, and of what is added to it. */
export type GemmOutDType = "f32" | "f16" | "bf16";

/** Element type of A and B; {@linkcode gemmElement} has the others'. */
export type GemmDType = "f32" | "f16" | "bf16" | "i8" | "f64";
/** All of them, in the order of lists. */
export const GEMM_DTYPES: readonly GemmDType[] = ["f32", "f16", "bf16", "i8", "f64"];

/** What products are summed in; only f16 ones leave a choice. */
export type GemmAccumulate = "f32" | "f16";

/** Where a bias of a product lies: one value a row (M of them) or a column (N). */
export type BiasSide = "none" | "row" | "column";
const BIAS_SIDES: readonly BiasSide[] = ["none", "row", "column"];

/**
 * D = activation(α·op(A)·op(B) + β·C + bias) + residual, for each of `batch` products. All matrices are
 * row-major; op(A) is m x k, op(B) is k x n, C, D and the residual are m x n.
 */
export interface GemmProblem {
  /** Rows of op(A) and of the result. */
  readonly m: number;
  /** Columns of op(B) and of the result. */
  readonly n: number;
  /** Products that a result sums. */
  readonly k: number;
  /** Independent products, one after the other in memory. */
  readonly batch: number;
  /** How A and B lie in memory. */
  readonly transpose: Transpose;
  /** Of op(A)·op(B). */
  readonly alpha: number;
  /** Of C, which is not read where this is 0. */
  readonly beta: number;
  /** Whether a bias is added, and along which side it lies. */
  readonly bias: BiasSide;
  /** What is applied before the residual. */
  readonly activation: Activation;
  /** Whether a tensor of the result's shape is added last. */
  readonly residual: boolean;
  /** For people. */
  readonly name?: string;
}

/** A tensor of a product. */
export type GemmTensor = "a" | "b" | "c" | "bias" | "residual" | "output";

/**
 * Makes a checked problem; what is left out is the plain product.
 *
 * @throws {RangeError} if a size is no integer >= 0, a factor is not finite, or a word is none of its kind.
 * @example
 * ```ts
 * import { gemmProblem } from "@wgconv/wgconv";
 * import { gemmShape } from "@wgconv/wgconv/internals";
 * import assert from "node:assert/strict";
 *
 * const problem = gemmProblem({ m: 4, n: 6, k: 8, transpose: "tn" });
 * assert.deepEqual(gemmShape(problem, "a"), [8, 4]);
 * assert.deepEqual(gemmShape(problem, "output"), [4, 6]);
 * ```
 */
export function gemmProblem(
  init: Pick<GemmProblem, "m" | "n" | "k"> & Partial<GemmProblem>,
): GemmProblem {
  const doing = "Cannot multiply";
  expectObject(doing, "the problem", init, "sizes");
  const plain = {
    batch: 1,
    transpose: "nn",
    alpha: 1,
    beta: 0,
    bias: "none",
    activation: "none",
    residual: false,
  } as const;
  expectFields(doing, "field of the problem", init, ["m", "n", "k", "name", ...Object.keys(plain)]);
  const problem: GemmProblem = { ...plain, ...init };
  expectWord(doing, "transpose", problem.transpose, TRANSPOSES);
  expectWord(doing, "bias", problem.bias, BIAS_SIDES);
  expectWord(doing, "activation", problem.activation, PLAIN_ACTIVATIONS);
  for (const name of ["m", "n", "k", "batch"] as const) {
    const size = problem[name];
    if (!Number.isSafeInteger(size) || size < 0) {
      throw new InputRangeError(`Cannot multiply: ${name} is ${size}, expected >= 0`);
    }
  }
  for (const name of ["alpha", "beta"] as const) {
    if (!Number.isFinite(problem[name])) {
      throw new InputRangeError(
        `Cannot multiply: ${name} is ${problem[name]}, expected a finite number`,
      );
    }
  }
  return problem;
}

/** Shape in memory of one of the problem's tensors; batched ones have the batch in front. */
export function gemmShape(problem: GemmProblem, which: GemmTensor): number[] {
  const { m, n, k, transpose } = problem;
  const batched = (...shape: number[]) => problem.batch === 1 ? shape : [problem.batch, ...shape];
  switch (which) {
    case "a":
      return transpose[0] === "n" ? batched(m, k) : batched(k, m);
    case "b":
      return transpose[1] === "n" ? batched(k, n) : batched(n, k);
    case "bias":
      return [problem.bias === "row" ? m : n];
    case "c":
    case "residual":
    case "output":
      return batched(m, n);
  }
}

/**
 * Element type of one of the tensors: that of A and B, but for `i8`, whose products are summed in i32.
 *
 * @param outDtype Of the others of f16 and bf16, where they are not that too.
 */
export function gemmElement(
  dtype: GemmDType,
  which: GemmTensor,
  outDtype?: GemmOutDType,
): DType {
  if (which === "a" || which === "b") return dtype;
  return dtype === "i8" ? "i32" : isShort(dtype) ? outDtype ?? dtype : dtype;
}

/** Whether a type is one of 16 bits, which is summed in f32 and has a choice of results. */
export function isShort(dtype: string): dtype is "f16" | "bf16" {
  return dtype === "f16" || dtype === "bf16";
}

/** The tensors a problem reads, in the order of its definition. */
export function gemmOperands(problem: GemmProblem): GemmTensor[] {
  return [
    "a",
    "b",
    ...(problem.beta === 0 ? [] : ["c"] as const),
    ...(problem.bias === "none" ? [] : ["bias"] as const),
    ...(problem.residual ? ["residual"] as const : []),
  ];
}

/** Products that a result sums: none where alpha is 0, since neither A nor B is read then, as in BLAS. */
export function summedDepth({ k, alpha }: Pick<GemmProblem, "k" | "alpha">): number {
  return alpha === 0 ? 0 : k;
}

/** 2·batch·m·n·k, or 0 where alpha is 0. */
export function gemmFlops(problem: GemmProblem): number {
  const { batch, m, n } = problem;
  return 2 * batch * m * n * summedDepth(problem);
}

/** In what a product is computed. */
export interface GemmArithmetic {
  /** Of A and B. */
  readonly dtype: GemmDType;
  /** In what f16 is summed. */
  readonly accumulate: GemmAccumulate;
  /** Of the result, bias, C and residual of f16 and bf16, theirs or f32; theirs where absent. */
  readonly outDtype?: GemmOutDType | undefined;
}

/**
 * Refuses what a dtype gives no meaning to.
 *
 * @throws {RangeError} for sums in f16 or other results of another dtype, for factors that f32 cannot hold, and for factors and
 * activations that lead out of the integers.
 */
export function checkGemmArithmetic(
  problem: GemmProblem,
  { dtype, accumulate, outDtype }: Partial<GemmArithmetic> & Pick<GemmArithmetic, "dtype">,
): void {
  if (outDtype !== undefined && outDtype !== dtype && !(isShort(dtype) && outDtype === "f32")) {
    throw new InputRangeError(
      `Cannot multiply: only f16 and bf16 products have results of another type, f32, ` +
        `the dtype is ${dtype}`,
    );
  }
  if (accumulate === "f16" && dtype !== "f16") {
    throw new InputRangeError(
      `Cannot multiply: only f16 products can be summed in f16, the dtype is ${dtype}`,
    );
  }
  if (dtype === "f32" || isShort(dtype)) {
    for (const name of ["alpha", "beta"] as const) {
      if (Number.isFinite(Math.fround(problem[name]))) continue;
      throw new InputRangeError(
        `Cannot multiply: ${name} is ${
          problem[name]
        }, beyond f32, in which ${dtype} products are scaled`,
      );
    }
  }
  if (dtype !== "i8") return;
  for (const name of ["alpha", "beta"] as const) {
    const factor = problem[name];
    if (factor !== (factor | 0)) {
      throw new InputRangeError(
        `Cannot multiply: ${name} is ${factor}, i8 products take whole numbers of 32 bits`,
      );
    }
  }
  if (problem.activation !== "none" && problem.activation !== "relu") {
    throw new InputRangeError(
      `Cannot multiply: ${problem.activation} leads out of the integers, i8 products take relu`,
    );
  }
}
