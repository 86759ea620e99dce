import { Fraction } from "../deps/fraction.ts";

/** An exact number. */
export type Rational = Fraction;

/** An exact matrix, row by row. */
export type Matrix = readonly (readonly Fraction[])[];

export const ZERO: Rational = new Fraction(0);
export const ONE: Rational = new Fraction(1);

/** Makes an exact number of a whole number or of text such as "-3/4". */
export function rational(value: number | string): Rational {
  return new Fraction(value);
}

/** The matrix of ones on the diagonal, size x size. */
export function identity(size: number): Matrix {
  return makeMatrix(size, size, (row, column) => row === column ? ONE : ZERO);
}

const transposes = new WeakMap<Matrix, Matrix>();

/** The same object for the same matrix, so that what is remembered of it is found again. */
export function transpose(matrix: Matrix): Matrix {
  let result = transposes.get(matrix);
  if (result === undefined) {
    const size = matrix[0]!.length;
    result = makeMatrix(size, matrix.length, (row, column) => matrix[column]![row]!);
    transposes.set(matrix, result);
  }
  return result;
}

/** The matrix, rows x columns, of what `value` gives for each place. */
export function makeMatrix(
  rows: number,
  columns: number,
  value: (row: number, column: number) => Fraction,
): Matrix {
  return Array.from(
    { length: rows },
    (_, row) => Array.from({ length: columns }, (_, column) => value(row, column)),
  );
}

/** The nearest doubles, row by row. */
export function toNumbers(matrix: Matrix): number[][] {
  return matrix.map((row) => row.map((value) => value.valueOf()));
}

/** Whether a number is a float32 exactly (of moderate size): an odd number of 24 bits times a power of two. */
export function isExactF32({ n, d }: Fraction): boolean {
  if ((d & (d - 1n)) !== 0n) return false;
  let odd = n;
  while (odd !== 0n && (odd & 1n) === 0n) odd >>= 1n;
  return odd < 1n << 24n;
}
