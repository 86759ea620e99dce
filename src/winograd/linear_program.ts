import { type Matrix, transpose } from "./matrix.ts";
import {
  buildSteps,
  type LinearProgram,
  type ProgramText,
  type Step,
  type Term,
  type WgslFloat,
} from "./simplify.ts";
import type { WinogradTransform } from "./transform.ts";

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

/** A program as WGSL: the one interpretation of its steps that shaders use. */
function programText(
  { inputs, steps, results }: Pick<LinearProgram, "inputs" | "steps" | "results">,
  prefix: string,
  names: readonly string[],
  type: WgslFloat,
): ProgramText {
  if (names.length !== inputs) {
    throw new RangeError(
      `Cannot write a transform: ${names.length} inputs given, it has ${inputs}`,
    );
  }
  const name = (node: number) =>
    node < inputs ? operand(names[node]!) : `${prefix}${node - inputs}`;
  const literal = (term: Term) =>
    type === "f32" ? f32Literal(term) : `${type}(${f32Literal(term)})`;
  const signed = ({ node, factor }: Term) => factor.compare(0) < 0 ? `-${name(node)}` : name(node);
  const statements = steps.map(({ left, right }, i) => {
    const target = `let ${prefix}${i} = `;
    if (right === undefined) {
      return `${target}${
        isUnit(left) ? signed(left) : `${f32Literal(left)} * ${name(left.node)}`
      };`;
    }
    const [scaled, added] = isUnit(left) ? [right, left] : [left, right];
    if (!isUnit(scaled)) {
      return `${target}fma(${literal(scaled)}, ${name(scaled.node)}, ${signed(added)});`;
    }
    // A minus sign goes behind the other term where it can.
    const [first, second] = left.factor.compare(0) < 0 ? [right, left] : [left, right];
    const sign = second.factor.compare(0) < 0 ? "-" : "+";
    return `${target}${signed(first)} ${sign} ${name(second.node)};`;
  });
  const outputs = results.map((term) => {
    if (term === undefined) return type === "f32" ? "0f" : `${type}(0f)`;
    return term.factor.compare(0) < 0 ? `(${signed(term)})` : name(term.node);
  });
  return { statements, outputs };
}

/** The nearest float32 as a WGSL literal that reads back exactly: JavaScript prints as many digits as tell doubles apart. */
export function f32Literal({ factor }: Pick<Term, "factor">): string {
  return `${Math.fround(factor.valueOf())}f`.replace("e+", "e");
}

function isUnit({ factor }: Term): boolean {
  return factor.abs().equals(1);
}

/** Parentheses around what is more than a name or an access. */
function operand(expression: string): string {
  return /^[\w.]+(\[[\w\s+*.\[\]]*\]|\.\w+)*$/.test(expression) ? expression : `(${expression})`;
}

interface OperationCounts {
  readonly additions: number;
  readonly multiplications: number;
  /** Each product that goes into a sum is one with it: a fused multiply-add. */
  readonly instructions: number;
}

/** What a transform of one tile costs: the product with its matrices, and its simplified programs. */
export interface TransformCounts {
  readonly plain: OperationCounts;
  readonly simplified: OperationCounts;
}

export type TransformName = "input" | "filter" | "output";
export const TRANSFORM_NAMES: readonly TransformName[] = ["input", "filter", "output"];

/** The matrix that a transform multiplies vectors with: Dᵀ, G or Aᵀ. */
export function appliedMatrix({ a, g, d }: WinogradTransform, name: TransformName): Matrix {
  return name === "filter" ? g : transpose(name === "input" ? d : a);
}

/** Counts of a transform of a tile with an axis or two: along its rows first, then along the columns of that. */
export function transformCounts(
  axes: readonly WinogradTransform[],
  name: TransformName,
): TransformCounts {
  const matrices = axes.map((axis) => appliedMatrix(axis, name));
  return {
    plain: nested(matrices, (matrix) => {
      const { additions, multiplications } = plainOperations(matrix);
      const joined = matrix.filter((row) => needsProduct(row)).length;
      return { additions, multiplications, instructions: additions + joined };
    }),
    simplified: nested(matrices, linearProgram),
  };
}

/** Whether a row of a product begins with a multiplication that no sum takes up. */
function needsProduct(row: Matrix[number]): boolean {
  const present = row.filter((value) => !value.equals(0));
  return present.length > 0 && present.every((value) => !value.abs().equals(1));
}

function nested(
  matrices: readonly Matrix[],
  count: (matrix: Matrix) => OperationCounts,
): OperationCounts {
  const [rows, columns] = matrices;
  const first = count(rows!);
  if (columns === undefined) return pick(first, 1);
  const [down, across] = [pick(first, columns.length), pick(count(columns), rows![0]!.length)];
  return {
    additions: down.additions + across.additions,
    multiplications: down.multiplications + across.multiplications,
    instructions: down.instructions + across.instructions,
  };
}

function pick(counts: OperationCounts, times: number): OperationCounts {
  return {
    additions: counts.additions * times,
    multiplications: counts.multiplications * times,
    instructions: counts.instructions * times,
  };
}
