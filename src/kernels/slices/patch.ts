import { linearProgram } from "../../winograd/linear_program.ts";
import { type Matrix, transpose } from "../../winograd/matrix.ts";

/** A transform of a patch, along its rows and its columns: rows · X · columnsᵀ. One axis is 1 x 1 in one dimension. */
export interface PatchTransform {
  readonly rows: Matrix;
  readonly columns: Matrix;
}

/** Patch elements of a transform: rows and columns it reads. */
export function patchSize({ rows, columns }: PatchTransform): [number, number] {
  return [rows[0]!.length, columns[0]!.length];
}

/** Results of a transform. */
export function transformResults({ rows, columns }: PatchTransform): number {
  return rows.length * columns.length;
}

/**
 * The statements of a transform and its results, row by row.
 *
 * @param element WGSL of the patch's element in row i and column j.
 */
export function transformText(
  { rows, columns }: PatchTransform,
  prefix: string,
  element: (i: number, j: number) => string,
  type: "f32" | "vec4f",
): { statements: string[]; outputs: string[] } {
  const statements: string[] = [];
  const [height, width] = [rows[0]!.length, columns[0]!.length];
  const along = linearProgram(columns);
  const middle = Array.from({ length: height }, (_, i) => {
    const names = Array.from({ length: width }, (_, j) => element(i, j));
    const text = along.text(`${prefix}r${i}_`, names, type);
    statements.push(...text.statements);
    return text.outputs;
  });
  const across = linearProgram(rows);
  const results = columns.map((_, j) => {
    const text = across.text(`${prefix}c${j}_`, middle.map((row) => row[j]!), type);
    statements.push(...text.statements);
    return text.outputs;
  });
  return {
    statements,
    outputs: rows.flatMap((_, i) => columns.map((_, j) => results[j]![i]!)),
  };
}

/** The transforms of a tile: input Dᵀ, filter G, output Aᵀ, nested where it has two axes. */
export interface TileTransforms {
  readonly input: PatchTransform;
  readonly filter: PatchTransform;
  readonly output: PatchTransform;
}

/** The nested transforms of one or two one-dimensional ones, rows first. */
export function tileTransforms(
  axes: readonly { readonly a: Matrix; readonly g: Matrix; readonly d: Matrix }[],
  one: Matrix,
): TileTransforms {
  const columns = axes.at(-1)!;
  const rows = axes.length > 1 ? axes[0]! : { a: one, g: one, d: one };
  return {
    input: { rows: transpose(rows.d), columns: transpose(columns.d) },
    filter: { rows: rows.g, columns: columns.g },
    output: { rows: transpose(rows.a), columns: transpose(columns.a) },
  };
}
