import type Fraction from "fraction.js";
import { buildSteps } from "./simplify.ts";
import type { Matrix } from "./matrix.ts";
import { type ProgramText, programText, type WgslFloat } from "./program_text.ts";

/** A value times a factor. */
export interface Term {
  /** An input where below `inputs`, else the result of step `node - inputs`. */
  readonly node: number;
  readonly factor: Fraction;
}

/** One instruction: a product, a sum, or both in one. At most one factor is not ±1. */
export interface Step {
  readonly left: Term;
  readonly right?: Term;
}

/** Straight-line code of y = M x. */
export interface LinearProgram {
  readonly inputs: number;
  readonly outputs: number;
  readonly steps: readonly Step[];
  /** A node of each output with factor 1 or -1, or nothing for a row of zeros. */
  readonly results: readonly (Term | undefined)[];
  readonly additions: number;
  readonly multiplications: number;
  /** Steps: a product and the sum it goes into are one fused multiply-add. */
  readonly instructions: number;
  /**
   * WGSL: statements (`let` temporaries named `prefix` and a number) that read the expressions `inputs`, and an
   * expression for each output. Constants are f32 literals nearest to the exact numbers.
   */
  text(prefix: string, inputs: readonly string[], type: WgslFloat): ProgramText;
}

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
