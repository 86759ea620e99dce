import { SPLIT_ROUNDING } from "../problem/split_rounding.ts";
import type { EpilogueStep } from "./epilogue.ts";
import { type ModuleBuilder, WHOLE } from "./module.ts";
import { DRIFT_FACTOR, SPLIT_RESULTS } from "./split_marks.ts";

const { enough: ENOUGH, weight: WEIGHT } = SPLIT_ROUNDING;
/** Longest sums that counts leave room for. */
export const MOST_SPLIT_DEPTH = 2 ** 24;

/** Results of halves, of which every one is looked at. */
export interface RescaledResults {
  readonly marks: PlaceMarks;
  /** Products of each. */
  readonly depth: number;
  /** By how much they are enlarged, in units of 2^-23 (`splitDrift()`); the fourth mark of a column says it where absent. */
  readonly drift?: number;
  /** What tells `places` from others, in kernel names. */
  readonly trait: string;
  /**
   * WGSL of where the marks of a result's row and column are, and the word and bit of its flag, given `row`, `column` and its index `at`;
   * of four that follow each other the first's, whose flag is that of all.
   */
  places(module: ModuleBuilder): {
    readonly row: string;
    readonly column: string;
    readonly flag: string;
    readonly bit: string;
  };
}

/** A product whose tiles each have a flag: down the rows, then along the columns, then to the next of the batch. */
export interface FlaggedTiles {
  readonly batches: number;
  readonly rows: number;
  readonly columns: number;
  readonly tile: { readonly rows: number; readonly columns: number };
}

/** Flags of a product's tiles. */
export function splitFlags({ batches, rows, columns, tile }: FlaggedTiles): number {
  return batches * Math.ceil(rows / tile.rows) * Math.ceil(columns / tile.columns);
}

/**
 * What is kept of the rows of A and the columns of B: bits of the largest value of each, then a word each that counts its small values,
 * four times, and says by its last bits whether any low half, and any value, is not zero, then the number of its large ones.
 */
export interface PlaceMarks {
  /** Of A's rows, and before those of B's columns. */
  readonly first: { readonly a: number; readonly b: number };
  /** Words of a kind. */
  readonly places: number;
  readonly words: number;
}

/** Where the marks of all of A's rows and all of B's columns lie: in whole vectors of four. */
export function placeMarks(rows: number, columns: number, kinds = 3): PlaceMarks {
  const fours = (count: number) => 4 * Math.ceil(count / 4);
  const b = fours(rows);
  const places = b + fours(columns);
  return { first: { a: 0, b }, places, words: kinds * places };
}

/** Where the marks and flags of a product's results are. */
export function tilePlaces(
  { batches, rows, columns, tile }: FlaggedTiles,
): Pick<RescaledResults, "trait" | "places"> {
  const places: RescaledResults["places"] = (module) => {
    const size = (name: string, value: number) => module.size(`split_${name}`, value);
    const batch = `at / ${size("results", rows * columns)}`;
    const { first } = placeMarks(batches * rows, batches * columns);
    const rowTiles = size("row_tiles", Math.ceil(rows / tile.rows));
    const columnTiles = size("column_tiles", Math.ceil(columns / tile.columns));
    return {
      row: `${batch} * ${size("rows", rows)} + row`,
      column: `${size("first_column", first.b)} + ${batch} * ${size("columns", columns)} + column`,
      flag: `(${batch} * ${columnTiles} + column / ${size("tile_columns", tile.columns)}) * ` +
        `${rowTiles} + row / ${size("tile_rows", tile.rows)}`,
      bit: "1u",
    };
  };
  return { trait: "rescaled", places };
}

/**
 * The first step of an epilogue: takes a sum back to its own size, and sets its flag where the rounding of small values may be
 * more than 4 u·Σ|a||b|, or a value is beyond what is split. Binds `marks` and `flags`.
 */
export function rescaleStep(
  module: ModuleBuilder,
  { marks: { places: words }, depth, drift, trait, places }: RescaledResults,
): EpilogueStep {
  const marks = module.tensor("marks", "read", 4, WHOLE, "u32");
  const size = (name: string, value: number) => module.size(`split_${name}`, value);
  const count = size("places", words);
  const of = places(module);
  const flagged = module.atomics("flags").or("flag", "bit");
  const declarations = [
    SPLIT_RESULTS,
    "fn mark(place: u32) -> u32 {",
    `  return ${marks.load("place / 4u")}[place % 4u];`,
    "}",
    "fn flag_doubt(value: f32, small: u32, a: u32, b: u32, flag: u32, bit: u32) {",
    `  let larges = mark(a + 2u * ${count}) + mark(b + 2u * ${count});`,
    `  let sparse = ${WEIGHT}i * i32(larges) - i32(small) < i32(${
      size("enough", WEIGHT * depth)
    });`,
    `  if (sparse && abs(value) < f32(small) * ${ENOUGH}.0) {`,
    `    ${flagged}`,
    "  }",
    "}",
    "fn rescaled(",
    "  value: f32, bits_a: u32, bits_b: u32, small_a: u32, small_b: u32, a: u32, b: u32, flag: u32, bit: u32,",
    ") -> f32 {",
    "  if (beyond_halves(bits_a) || beyond_halves(bits_b)) {",
    `    ${flagged}`,
    "  } else if ((small_a | small_b) > 3u && bits_a != 0u && bits_b != 0u) {",
    "    flag_doubt(value, (small_a >> 2u) + (small_b >> 2u), a, b, flag, bit);",
    "  }",
    "  // In two steps: each factor is a normal number.",
    "  let exponent = split_exponent(bits_a) + split_exponent(bits_b);",
    "  let part = exponent >> 1u;",
    // Of operands that halves hold whole sums may be exact.
    `  let drift = select(0u, ${
      drift === undefined ? `mark(b + 3u * ${count})` : size("drift", drift)
    }, ((small_a | small_b) & 1u) != 0u);`,
    `  return value * (power_of_two(part) * ${DRIFT_FACTOR}) * power_of_two(exponent - part);`,
    "}",
    "fn rescaled_one(value: f32, row: u32, column: u32, at: u32) -> f32 {",
    `  let a = ${of.row};`,
    `  let b = ${of.column};`,
    `  return rescaled(value, mark(a), mark(b), mark(a + ${count}), mark(b + ${count}), a, b, ${of.flag}, ${of.bit});`,
    "}",
    fourRescaled("columns"),
    fourRescaled("rows"),
  ].join("\n");
  return {
    trait,
    declarations,
    apply(value, { width, side, row, column, offset }) {
      const at = `${row}, ${column}, (${offset}) * ${width}u`;
      return `${width === 1 ? "rescaled_one" : `rescaled_${side}`}(${value}, ${at})`;
    },
  };

  /** Four that share a row, or a column: the marks of the other side are a vector, since they are whole ones. */
  function fourRescaled(side: "rows" | "columns"): string {
    const [shared, other] = side === "columns" ? ["a", "b"] : ["b", "a"];
    const each = (i: number) => {
      const lane = (name: string, what: string) => what === other ? `${name}[${i}]` : name;
      const both = (name: string, own: string) => `${lane(name, "a")}, ${lane(own, "b")}`;
      const place = (what: string) => what === other ? `${what} + ${i}u` : what;
      return `    rescaled(value[${i}], ${both("bits_a", "bits_b")}, ${
        both("small_a", "small_b")
      }, ` +
        `${place("a")}, ${place("b")}, flag, bit),`;
    };
    return [
      `fn rescaled_${side}(value: vec4f, row: u32, column: u32, at: u32) -> vec4f {`,
      `  let a = ${of.row};`,
      `  let b = ${of.column};`,
      `  let flag = ${of.flag};`,
      `  let bit = ${of.bit};`,
      `  let bits_${other} = ${marks.load(`${other} / 4u`)};`,
      `  let small_${other} = ${marks.load(`(${other} + ${count}) / 4u`)};`,
      `  let bits_${shared} = mark(${shared});`,
      `  let small_${shared} = mark(${shared} + ${count});`,
      "  return vec4f(",
      ...[0, 1, 2, 3].map(each),
      "  );",
      "}",
    ].join("\n");
  }
}
