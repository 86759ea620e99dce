import { type Scalar, sumScalar, typeName } from "../../elements/scalar.ts";
import { clearSums, declareSums, eachSum, type SumName, type ThreadTile } from "./inner_product.ts";

/** Products of one chain in f16, rounded up to the tile's depth: f16 has 11 bits, so longer sums err by more than their products. */
export const F16_CHAIN = 32;

/** The text of a thread's sums. */
export interface Sums {
  /** What they are called after the loop. */
  readonly sum: SumName;
  /** Where products are added. */
  readonly inner: SumName;
  /** Declares them. */
  readonly declare: string;
  /** After each step: moves finished chains on. */
  readonly fold: string;
  /** After the loop: what has not been moved on yet. */
  readonly finish: string;
}

/**
 * Sums of products, `c{index}` in the end. With `every` they are added up in chains of so many steps, each of
 * which then goes to a second set of registers: short chains in f16, and shorter rounding errors in f32.
 *
 * @param scalar What products are added up in.
 * @param every Steps of a chain; 0 where one chain takes all.
 * @param index What tells the sums of a row and fragment from others, in names.
 */
export function threadSums(
  tile: ThreadTile,
  scalar: Scalar,
  every: number,
  index: SumName,
): Sums {
  const sum: SumName = (row, fragment) => `c${index(row, fragment)}`;
  if (every === 0) {
    return {
      sum,
      inner: sum,
      declare: declareSums(tile, sum, scalar).join("\n"),
      fold: "",
      finish: "",
    };
  }
  const total = sumScalar(scalar);
  const inner: SumName = (row, fragment) => `chain${index(row, fragment)}`;
  const move = (row: number, j: number) => {
    const chain = inner(row, j);
    return `${sum(row, j)} += ${total === scalar ? chain : `${typeName(total, 4)}(${chain})`};`;
  };
  const moved = eachSum(tile, (row, j) => `  ${move(row, j)}`).join("\n");
  const folds = `${moved}\n${clearSums(tile, inner, scalar)}`;
  return {
    sum,
    inner,
    declare: [
      ...declareSums(tile, sum, total),
      ...declareSums(tile, inner, scalar),
      ...(every === 1 ? [] : [`  var until_fold = ${every}u;`]),
    ].join("\n"),
    fold: every === 1 ? folds : [
      "    until_fold--;",
      "    if (until_fold == 0u) {",
      `      until_fold = ${every}u;`,
      folds,
      "    }",
    ].join("\n"),
    finish: every === 1 ? "" : moved,
  };
}
