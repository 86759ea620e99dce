import { buildSteps } from "./simplify.ts";
import type { Matrix } from "./matrix.ts";
import type { LinearProgram, Step } from "./program.ts";
import { programText } from "./program_text.ts";

const cache = new WeakMap<Matrix, LinearProgram>();

/** Simplified straight-line code of y = M x, M being outputs x inputs. The same object for the same matrix. */
export function linearProgram(matrix: Matrix): LinearProgram {
  const known = cache.get(matrix);
  if (known !== undefined) return known;
  const inputs = matrix[0]?.length ?? 0;
  const { steps, results } = buildSteps(matrix);
  const program: LinearProgram = {
    inputs,
    outputs: matrix.length,
    steps,
    results,
    additions: steps.filter(({ right }) => right !== undefined).length,
    multiplications: steps.filter(multiplies).length,
    instructions: steps.length,
    text: (prefix, names, type) => programText({ inputs, steps, results }, prefix, names, type),
  };
  cache.set(matrix, program);
  return program;
}

/** Additions and multiplications of y = M x without simplification; zeros and ±1 cost nothing. */
export function plainOperations(matrix: Matrix): { additions: number; multiplications: number } {
  let additions = 0, multiplications = 0;
  for (const row of matrix) {
    const present = row.filter((value) => !value.equals(0));
    additions += Math.max(0, present.length - 1);
    multiplications += present.filter((value) => !value.abs().equals(1)).length;
  }
  return { additions, multiplications };
}

function multiplies({ left, right }: Step): boolean {
  return [left, right].some((term) => term !== undefined && !term.factor.abs().equals(1));
}
