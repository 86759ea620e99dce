import { InputRangeError } from "../errors.ts";
import type { GemmAccumulate, GemmDType, GemmOutDType, GemmProblem } from "./gemm_problem.ts";

/** In what a product is computed. */
export interface GemmArithmetic {
  /** Of A and B. */
  readonly dtype: GemmDType;
  /** In what f16 is summed. */
  readonly accumulate: GemmAccumulate;
  /** Of f16's result, bias, C and residual; f16 where absent. */
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
  if (outDtype !== undefined && outDtype !== dtype && dtype !== "f16") {
    throw new InputRangeError(
      `Cannot multiply: only f16 products have results of another type, the dtype is ${dtype}`,
    );
  }
  if (accumulate === "f16" && dtype !== "f16") {
    throw new InputRangeError(
      `Cannot multiply: only f16 products can be summed in f16, the dtype is ${dtype}`,
    );
  }
  if (dtype === "f32" || dtype === "f16") {
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
