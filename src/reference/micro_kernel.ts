/** `c[row][column] += Σ a·b` over one packed block; see {@linkcode makeMultiply}. */
export type Multiply = (
  a: Float64Array,
  b: Float64Array,
  c: Float64Array,
  rows: number,
  columns: number,
  depth: number,
) => void;

/**
 * Makes the block product. `a` and `b` lie in panels of four: element (row, k) of `a` at
 * `(row >> 2)·4·depth + 4·k + (row & 3)`, `b` likewise by column; `c` is row-major, `rows` x `columns`, both
 * multiples of 4.
 *
 * Self-contained, like every maker of this folder: Workers get its source text.
 */
export function makeMultiply(): Multiply {
  // 4x4 sums in registers: 8 loads feed 16 multiply-adds.
  function panel(
    a: Float64Array,
    i: number,
    b: Float64Array,
    j: number,
    depth: number,
    c: Float64Array,
    to: number,
    pitch: number,
  ): void {
    let c00 = 0, c01 = 0, c02 = 0, c03 = 0;
    let c10 = 0, c11 = 0, c12 = 0, c13 = 0;
    let c20 = 0, c21 = 0, c22 = 0, c23 = 0;
    let c30 = 0, c31 = 0, c32 = 0, c33 = 0;
    for (const end = i + 4 * depth; i < end; i += 4, j += 4) {
      const b0 = b[j]!, b1 = b[j + 1]!, b2 = b[j + 2]!, b3 = b[j + 3]!;
      let x = a[i]!;
      c00 += x * b0, c01 += x * b1, c02 += x * b2, c03 += x * b3;
      x = a[i + 1]!;
      c10 += x * b0, c11 += x * b1, c12 += x * b2, c13 += x * b3;
      x = a[i + 2]!;
      c20 += x * b0, c21 += x * b1, c22 += x * b2, c23 += x * b3;
      x = a[i + 3]!;
      c30 += x * b0, c31 += x * b1, c32 += x * b2, c33 += x * b3;
    }
    c[to]! += c00, c[to + 1]! += c01, c[to + 2]! += c02, c[to + 3]! += c03;
    to += pitch;
    c[to]! += c10, c[to + 1]! += c11, c[to + 2]! += c12, c[to + 3]! += c13;
    to += pitch;
    c[to]! += c20, c[to + 1]! += c21, c[to + 2]! += c22, c[to + 3]! += c23;
    to += pitch;
    c[to]! += c30, c[to + 1]! += c31, c[to + 2]! += c32, c[to + 3]! += c33;
  }

  return (a, b, c, rows, columns, depth) => {
    // Column panels outside: one panel of b stays in the L1 cache while a streams by.
    for (let column = 0; column < columns; column += 4) {
      for (let row = 0; row < rows; row += 4) {
        panel(a, row * depth, b, column * depth, depth, c, row * columns + column, columns);
      }
    }
  };
}
