import template from "../../shaders/split_scales.wgsl" with { type: "text" };
import { SPLIT_ROUNDING } from "../problem/split_rounding.ts";
import type { EpilogueStep } from "./epilogue.ts";
import {
  loopIterations,
  type ModuleBuilder,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorAccess,
  type TensorSplit,
  WHOLE,
} from "./module.ts";

const { top: TOP, smallBits, largeBits, enough: ENOUGH, weight: WEIGHT, least } = SPLIT_ROUNDING;
/** In the place of a count: rows of infinities, NaN and of values that are too small to be scaled. */
const BEYOND = 2 ** 28;
/** Longest sums that counts leave room for. */
export const MOST_SPLIT_DEPTH = 2 ** 24;

/** How an operand lies whose scales are wanted. */
export interface SplitOperand {
  readonly batches: number;
  /** Rows of A or columns of B. */
  readonly places: number;
  readonly depth: number;
  readonly along: "place" | "depth";
  readonly batchStride: number;
  /** Scales before these. */
  readonly first: number;
}

/** Workgroups of a {@linkcode splitScalesKernel}: eight places each. */
export function splitScalesWorkgroups({ batches, places }: SplitOperand): number {
  return batches * Math.ceil(places / 8);
}

/**
 * Finds the scales of an operand's places: exponent, small values, large ones times 8 less the small ones, factor. Binds `operand`
 * and `scales`, and `flags` where there are flags to be cleared.
 *
 * @param flags To be cleared; 0 for none.
 */
export function splitScalesKernel(
  shape: SplitOperand,
  flags: number,
  mode: SizeMode,
  operand: TensorSplit,
): SizedKernel {
  const module = moduleBuilder(mode);
  const { along, places, depth } = shape;
  const from = module.tensor("operand", "read", 1, operand);
  const scales = module.tensor("scales", "write", 4, WHOLE, "i32");
  const clear = flags === 0 ? "" : module.atomics("flags").store("flag", "0u");
  const name = `split_scales_${along}${flags === 0 ? "" : "_clear"}${splitTrait(operand)}`;
  const workgroups = splitScalesWorkgroups(shape);
  const one = module.size("one", 1);
  const values = {
    name,
    workgroups: module.size("workgroups", workgroups),
    groupWorkgroups: module.size("group_workgroups", Math.ceil(places / 8)),
    flags: flags === 0 ? "" : module.size("flags", flags),
    clear,
    // Neighbours read neighbours.
    near: along === "place" ? "t % 8u" : "t / 32u",
    lane: along === "place" ? "t / 8u" : "t % 32u",
    batchStride: module.size("batch_stride", shape.batchStride),
    places: module.size("places", places),
    depth: module.size("depth", depth),
    placeStride: along === "place" ? one : module.size("depth", depth),
    depthStride: along === "place" ? module.size("places", places) : one,
    first: module.size("first", shape.first),
    top: TOP,
    smallBits,
    largeBits,
    weight: WEIGHT,
    least: least + 127,
    beyond: BEYOND,
    load: from.load,
    store: scales.store,
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  const iterations = 2 * loopIterations(Math.ceil(depth / 128)) +
    loopIterations(Math.ceil(flags / (256 * workgroups)));
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], 3 * 8 * 4, iterations);
}

/** Binds scales, for what reads them. */
export function splitScales(module: ModuleBuilder): TensorAccess {
  return module.tensor("scales", "read", 4, WHOLE, "i32");
}

/** WGSL of a power of two that is a normal number. */
export const POWER_OF_TWO = [
  "fn power_of_two(exponent: i32) -> f32 {",
  "  return bitcast<f32>(u32(exponent + 127) << 23u);",
  "}",
].join("\n");

/** A product of which every result is looked at. */
export interface SplitResults {
  readonly batches: number;
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  /** Tiles of which each has a flag: down the rows, then along the columns, then to the next of the batch. */
  readonly tile: { readonly rows: number; readonly columns: number };
}

/** Flags of a product's tiles. */
export function splitFlags({ batches, rows, columns, tile }: SplitResults): number {
  return batches * Math.ceil(rows / tile.rows) * Math.ceil(columns / tile.columns);
}

/**
 * The first step of an epilogue: takes a sum back to its own size, and flags its tile where the rounding of small values may be
 * more than 4 u·Σ|a||b|, or a value is beyond what is split.
 */
export function rescaleStep(
  module: ModuleBuilder,
  scales: TensorAccess,
  { batches, rows, columns, depth, tile }: SplitResults,
): EpilogueStep {
  const size = (name: string, value: number) => module.size(`split_${name}`, value);
  const [m, n] = [size("rows", rows), size("columns", columns)];
  const rowTiles = size("row_tiles", Math.ceil(rows / tile.rows));
  const columnTiles = size("column_tiles", Math.ceil(columns / tile.columns));
  const flag =
    `(batch * ${columnTiles} + column / ${tile.columns}u) * ${rowTiles} + row / ${tile.rows}u`;
  const declarations = [
    POWER_OF_TWO,
    "fn rescaled(value: f32, row: u32, column: u32, at: u32) -> f32 {",
    `  let batch = at / ${size("results", rows * columns)};`,
    `  let a = ${scales.load(`batch * ${m} + row`)};`,
    `  let b = ${scales.load(`${size("first_column", batches * rows)} + batch * ${n} + column`)};`,
    "  let small = a.y + b.y;",
    `  let sparse = a.z + b.z < i32(${size("enough", WEIGHT * depth)});`,
    `  if (small >= ${BEYOND} || (small > 0 && sparse && abs(value) < f32(small) * ${ENOUGH}.0)) {`,
    `    ${module.atomics("flags").store(flag, "1u")}`,
    "  }",
    "  // In two steps: each factor is a normal number.",
    "  let exponent = a.x + b.x;",
    "  let part = exponent >> 1u;",
    "  return value * power_of_two(part) * power_of_two(exponent - part);",
    "}",
    "fn rescaled4(value: vec4f, row: u32, column: u32, at: u32, down: u32, across: u32) -> vec4f {",
    "  return vec4f(",
    ...[..."xyzw"].map((one, i) =>
      `    rescaled(value.${one}, row + ${i}u * down, column + ${i}u * across, at),`
    ),
    "  );",
    "}",
  ].join("\n");
  return {
    trait: "rescaled",
    declarations,
    apply(value, { width, side, row, column, offset }) {
      const at = `${row}, ${column}, (${offset}) * ${width}u`;
      if (width === 1) return `rescaled(${value}, ${at})`;
      return `rescaled4(${value}, ${at}, ${side === "rows" ? "1u, 0u" : "0u, 1u"})`;
    },
  };
}
