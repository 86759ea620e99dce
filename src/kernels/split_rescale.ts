import { SPLIT_ROUNDING } from "../problem/split_rounding.ts";
import type { EpilogueStep } from "./epilogue.ts";
import { type ModuleBuilder, WHOLE } from "./module.ts";
import { DRIFT_FACTOR, SPLIT_RESULTS } from "./split_marks.ts";

const { enough: ENOUGH, weight: WEIGHT } = SPLIT_ROUNDING;
/** Longest sums that counts leave room for. */
export const MOST_SPLIT_DEPTH = 2 ** 24;

/** A product of which every result is looked at. */
export interface RescaledResults {
  readonly batches: number;
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  /** Tiles of which each has a flag: down the rows, then along the columns, then to the next of the batch. */
  readonly tile: { readonly rows: number; readonly columns: number };
  /** By how much results are enlarged, in units of 2^-23 (`splitDrift()`). */
  readonly drift: number;
}

/** Flags of a product's tiles. */
export function splitFlags(
  { batches, rows, columns, tile }: Pick<RescaledResults, "batches" | "rows" | "columns" | "tile">,
): number {
  return batches * Math.ceil(rows / tile.rows) * Math.ceil(columns / tile.columns);
}

/**
 * What is kept of the rows of A and the columns of B: bits of the largest value of each, then a word each that counts its small values,
 * twice, and says by its last bit whether any low half is not zero, then the number of its large ones.
 */
export interface PlaceMarks {
  /** Of A's rows, and before those of B's columns. */
  readonly first: { readonly a: number; readonly b: number };
  /** Words of a kind. */
  readonly places: number;
  readonly words: number;
}

/** Where the marks of a product's operands lie: in whole vectors of four. */
export function placeMarks(
  { batches, rows, columns }: Pick<RescaledResults, "batches" | "rows" | "columns">,
): PlaceMarks {
  const fours = (count: number) => 4 * Math.ceil(count / 4);
  const b = fours(batches * rows);
  const places = b + fours(batches * columns);
  return { first: { a: 0, b }, places, words: 3 * places };
}

/**
 * The first step of an epilogue: takes a sum back to its own size, and flags its tile where the rounding of small values may be
 * more than 4 u·Σ|a||b|, or a value is beyond what is split.
 */
export function rescaleStep(
  module: ModuleBuilder,
  { batches, rows, columns, depth, tile, drift }: RescaledResults,
): EpilogueStep {
  const marks = module.tensor("marks", "read", 4, WHOLE, "u32");
  const size = (name: string, value: number) => module.size(`split_${name}`, value);
  const { first, places } = placeMarks({ batches, rows, columns });
  const [m, n] = [size("rows", rows), size("columns", columns)];
  const count = size("places", places);
  const rowTiles = size("row_tiles", Math.ceil(rows / tile.rows));
  const columnTiles = size("column_tiles", Math.ceil(columns / tile.columns));
  const flag = `(batch * ${columnTiles} + column / ${size("tile_columns", tile.columns)}) * ` +
    `${rowTiles} + row / ${size("tile_rows", tile.rows)}`;
  const flagged = module.atomics("flags").store(flag, "1u");
  const of = {
    row: `batch * ${m} + row`,
    column: `${size("first_column", first.b)} + batch * ${n} + column`,
  };
  const declarations = [
    SPLIT_RESULTS,
    "fn mark(place: u32) -> u32 {",
    `  return ${marks.load("place / 4u")}[place % 4u];`,
    "}",
    "fn flag_doubt(value: f32, small: u32, batch: u32, row: u32, column: u32) {",
    `  let larges = mark(${of.row} + 2u * ${count}) + mark(${of.column} + 2u * ${count});`,
    `  let sparse = ${WEIGHT}i * i32(larges) - i32(small) < i32(${
      size("enough", WEIGHT * depth)
    });`,
    `  if (sparse && abs(value) < f32(small) * ${ENOUGH}.0) {`,
    `    ${flagged}`,
    "  }",
    "}",
    "fn rescaled(",
    "  value: f32, bits_a: u32, bits_b: u32, small_a: u32, small_b: u32, batch: u32, row: u32, column: u32,",
    ") -> f32 {",
    "  if (beyond_halves(bits_a) || beyond_halves(bits_b)) {",
    `    ${flagged}`,
    "  } else if ((small_a | small_b) > 1u && bits_a != 0u && bits_b != 0u) {",
    "    flag_doubt(value, (small_a >> 1u) + (small_b >> 1u), batch, row, column);",
    "  }",
    "  // In two steps: each factor is a normal number.",
    "  let exponent = split_exponent(bits_a) + split_exponent(bits_b);",
    "  let part = exponent >> 1u;",
    // Of operands that halves hold whole sums may be exact.
    `  let drift = select(0u, ${size("drift", drift)}, ((small_a | small_b) & 1u) != 0u);`,
    `  return value * (power_of_two(part) * ${DRIFT_FACTOR}) * power_of_two(exponent - part);`,
    "}",
    "fn rescaled_one(value: f32, row: u32, column: u32, at: u32) -> f32 {",
    `  let batch = at / ${size("results", rows * columns)};`,
    `  let a = ${of.row};`,
    `  let b = ${of.column};`,
    `  return rescaled(value, mark(a), mark(b), mark(a + ${count}), mark(b + ${count}), batch, row, column);`,
    "}",
    // Four columns lie in a vector of marks: theirs are whole vectors, and so are the columns of a batch.
    "fn rescaled4(value: vec4f, row: u32, column: u32, at: u32) -> vec4f {",
    `  let batch = at / ${size("results", rows * columns)};`,
    `  let a = ${of.row};`,
    `  let b = ${of.column};`,
    `  let bits = ${marks.load("b / 4u")};`,
    `  let small = ${marks.load(`(b + ${count}) / 4u`)};`,
    `  let bits_a = mark(a);`,
    `  let small_a = mark(a + ${count});`,
    "  return vec4f(",
    ...[..."xyzw"].map((one, i) =>
      `    rescaled(value.${one}, bits_a, bits.${one}, small_a, small.${one}, batch, row, column + ${i}u),`
    ),
    "  );",
    "}",
  ].join("\n");
  return {
    trait: "rescaled",
    declarations,
    apply(value, { width, side, row, column, offset }) {
      const at = `${row}, ${column}, (${offset}) * ${width}u`;
      if (width === 4 && side !== "columns") throw new Error("Cannot rescale four rows at once");
      return `${width === 1 ? "rescaled_one" : "rescaled4"}(${value}, ${at})`;
    },
  };
}
