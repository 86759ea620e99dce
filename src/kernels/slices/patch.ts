import { linearProgram } from "../../winograd/linear_program.ts";
import type { LinearProgram } from "../../winograd/program.ts";
import { type Matrix, transpose } from "../../winograd/matrix.ts";

/** A transform of a patch, along its rows and its columns: rows · X · columnsᵀ. One axis is 1 x 1 in one dimension. */
export interface PatchTransform {
  readonly rows: Matrix;
  readonly columns: Matrix;
  /** Goes along rows before columns where that takes fewer instructions. */
  readonly shortest?: boolean;
}

/** Patch elements of a transform: rows and columns it reads. */
export function patchSize({ rows, columns }: PatchTransform): [number, number] {
  return [rows[0]!.length, columns[0]!.length];
}

/** Results of a transform. */
export function transformResults({ rows, columns }: PatchTransform): number {
  return rows.length * columns.length;
}

/** Whether a transform reads a row of its patch: some of a nested one's results do not read all. */
export function readsRow({ rows }: PatchTransform, row: number): boolean {
  return rows.some((factors) => !factors[row]!.equals(0));
}

/**
 * The statements of a transform and its results, row by row.
 *
 * @param element WGSL of the patch's element in row i and column j; in rows that are not read it may be anything.
 */
export function transformText(
  transform: PatchTransform,
  prefix: string,
  element: (i: number, j: number) => string,
  type: "f32" | "vec4f",
): { statements: string[]; outputs: string[] } {
  const { rows, columns } = transform;
  const statements: string[] = [];
  const [along, across] = [linearProgram(columns), linearProgram(rows)];
  const result = (program: LinearProgram, name: string, inputs: readonly string[]) => {
    const text = program.text(`${prefix}${name}_`, inputs, type);
    statements.push(...text.statements);
    return text.outputs;
  };
  const [height, width] = patchSize(transform);
  const patch = Array.from(
    { length: height },
    (_, i) => Array.from({ length: width }, (_, j) => element(i, j)),
  );
  const read = patch.filter((_, i) => readsRow(transform, i)).length;
  const columnsFirst = read * along.instructions + columns.length * across.instructions;
  const rowsFirst = width * across.instructions + rows.length * along.instructions;
  if (transform.shortest && rowsFirst < columnsFirst) {
    const middle = patch[0]!.map((_, j) => result(across, `c${j}`, patch.map((row) => row[j]!)));
    const outputs = rows.flatMap((_, i) =>
      result(along, `r${i}`, middle.map((column) => column[i]!))
    );
    return { statements, outputs };
  }
  const middle = patch.map((row, i) =>
    readsRow(transform, i) ? result(along, `r${i}`, row) : columns.map(() => "")
  );
  const results = columns.map((_, j) => result(across, `c${j}`, middle.map((row) => row[j]!)));
  return { statements, outputs: rows.flatMap((_, i) => results.map((column) => column[i]!)) };
}

/** The transforms of a tile: input Dᵀ, filter G, output Aᵀ, nested where it has two axes. */
export interface TileTransforms {
  readonly input: PatchTransform;
  readonly filter: PatchTransform;
  readonly output: PatchTransform;
}

/**
 * The nested transforms of one or two one-dimensional ones, rows first.
 *
 * @param shortest Along which axis they go first is what takes fewer instructions, and not always along columns.
 */
export function tileTransforms(
  axes: readonly { readonly a: Matrix; readonly g: Matrix; readonly d: Matrix }[],
  one: Matrix,
  shortest = false,
): TileTransforms {
  const columns = axes.at(-1)!;
  const rows = axes.length > 1 ? axes[0]! : { a: one, g: one, d: one };
  return {
    input: { rows: transpose(rows.d), columns: transpose(columns.d), shortest },
    filter: { rows: rows.g, columns: columns.g, shortest },
    output: { rows: transpose(rows.a), columns: transpose(columns.a), shortest },
  };
}
