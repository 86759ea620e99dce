import { range } from "../lists.ts";
import { f32Literal, linearProgram } from "../../winograd/linear_program.ts";
import { type Matrix, type Rational, rational, transpose } from "../../winograd/matrix.ts";
import type { LinearProgram, ProgramText } from "../../winograd/simplify.ts";

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
  const patch = range(height).map((i) => range(width).map((j) => element(i, j)));
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

/** Rows of a transform that are summed in f16, and what is left of it for f32. */
interface Parts {
  readonly inHalves: readonly boolean[];
  readonly others: LinearProgram;
}

const HALF = rational("1/2");

const cache = new WeakMap<Matrix, Parts>();

/**
 * The statements of a transform y = M x of halves, and its results, in halves too. Rows of up to two values or halves of values, as all
 * of F(2,3) and F(3,2) but the sums of three of a filter, are computed in f16: their sum is rounded once, as one in f32 that
 * becomes f16 is. They are halved before they are added, so that no sum overflows that its result does not; halving rounds
 * values below 2^-13, and is all that differs from f32. Other rows are in f32.
 *
 * @param halves WGSL of each element, of type vec4<f16>.
 */
export function halvesTransformText(
  matrix: Matrix,
  prefix: string,
  halves: readonly string[],
): ProgramText {
  const { inHalves, others } = partsOf(matrix);
  const wide = others.outputs === 0 ? { statements: [], outputs: [] } : others.text(
    `${prefix}r`,
    halves.map((_, j) => `${prefix}x${j}`),
    "vec4f",
  );
  const rest = wide.outputs.values();
  return {
    statements: [
      ...(others.outputs === 0
        ? []
        : halves.map((value, j) => `let ${prefix}x${j} = vec4f(${value});`)),
      ...wide.statements,
    ],
    outputs: matrix.map((row, i) =>
      inHalves[i] ? sumText(row, halves) : `vec4<f16>(${rest.next().value!})`
    ),
  };
}

function partsOf(matrix: Matrix): Parts {
  let parts = cache.get(matrix);
  if (parts === undefined) {
    const inHalves = matrix.map(roundsOnce);
    parts = { inHalves, others: linearProgram(matrix.filter((_, row) => !inHalves[row])) };
    cache.set(matrix, parts);
  }
  return parts;
}

/** Whether f16 sums a row's values as f32 would before it is rounded. */
function roundsOnce(row: readonly Rational[]): boolean {
  const factors = row.filter((factor) => !factor.equals(0)).map((factor) => factor.abs());
  return factors.length > 0 && factors.length <= 2 &&
    factors.every((factor) => factor.equals(1) || factor.equals(HALF));
}

/** WGSL of a row's one or two values. */
function sumText(row: readonly Rational[], halves: readonly string[]): string {
  const [first, second] = row.flatMap((factor, j) =>
    factor.equals(0) ? [] : [{ factor, value: halves[j]! }]
  );
  const literal = (factor: Rational) => f32Literal({ factor }).replace(/f$/, "h");
  const product = ({ factor, value }: { factor: Rational; value: string }) =>
    factor.equals(1) ? value : factor.equals(-1) ? `-${value}` : `${literal(factor)} * ${value}`;
  if (second === undefined) return product(first!);
  return `fma(vec4<f16>(${literal(second.factor)}), ${second.value}, ${product(first!)})`;
}
