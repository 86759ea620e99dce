import { linearProgram, plainOperations } from "./linear_program.ts";
import { type Matrix, transpose } from "./matrix.ts";
import type { WinogradTransform } from "./transform.ts";

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
