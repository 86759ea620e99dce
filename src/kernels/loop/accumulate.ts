import { type Scalar, sumScalar, typeName } from "../../elements/scalar.ts";
import { clearSums, declareSums, eachSum, type SumName, type ThreadTile } from "./inner_product.ts";

/** Products of one chain in f16 (docs/accuracy.md), rounded up to the tile's depth. */
export const F16_CHAIN = 32;

/** The text of a thread's sums. */
export interface Sums {
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
 * Sums of products, `c{row}_{fragment}` in the end. With `every` they are added up in chains of so many steps, each of
 * which then goes to a second set of registers: short chains in f16, and shorter rounding errors in f32.
 *
 * @param scalar What products are added up in.
 * @param every Steps of a chain; 0 where one chain takes all.
 */
export function threadSums(tile: ThreadTile, scalar: Scalar, every: number, sum: SumName): Sums {
  if (every === 0) {
    return { inner: sum, declare: declareSums(tile, sum, scalar).join("\n"), fold: "", finish: "" };
  }
  const total = sumScalar(scalar);
  const inner: SumName = (row, fragment) => sum(row, fragment).replace("c", "chain");
  const move = (row: number, j: number) => {
    const chain = inner(row, j);
    return `${sum(row, j)} += ${total === scalar ? chain : `${typeName(total, 4)}(${chain})`};`;
  };
  const moved = eachSum(tile, (row, j) => `  ${move(row, j)}`).join("\n");
  const folds = `${moved}\n${clearSums(tile, inner, scalar)}`;
  return {
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
