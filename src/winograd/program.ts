import type { Fraction } from "../deps/fraction.ts";

/** Type of the values that a program computes with. */
export type WgslFloat = "f32" | "vec2f" | "vec4f";

/** A program as WGSL. */
export interface ProgramText {
  readonly statements: string[];
  readonly outputs: string[];
}

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
