/** Passes that sum the partial results of split depth and finish them, and where these lie. */
import template from "../../shaders/reduce_splits.wgsl" with { type: "text" };
import { type Scalar, sumScalar } from "../elements/scalar.ts";
import {
  classEdges,
  classPlaceText,
  type ClassResults,
  classSides,
  tileClasses,
} from "./stride_classes.ts";
import {
  applyEpilogue,
  type EpilogueFactory,
  epilogueIterations,
  epilogueTrait,
} from "./epilogue.ts";
import type { RingColumns } from "./loaders/correlation_ring.ts";
import { rasterTrait } from "./variant.ts";
import type { ModuleBuilder, TensorSplit } from "./module.ts";
import { type SizedKernel, templateKernel } from "./sized_kernel.ts";
import { mappedOutput, type OutputStore, type OutputVector } from "./output.ts";
import { policyTile, type TilePolicy } from "./policy.ts";
import { splitSum } from "./sums.ts";
import { tilePlaceText, type TileRange } from "./tile_scheduler.ts";

/** How results lie by rows and columns: strides in elements, as `OutputMap` has them. */
export interface LinearPlaces {
  readonly row: number;
  readonly outer: number;
  readonly inner: number;
  readonly interleave?: number;
  readonly period: number;
  /** Places of a period that are results, the first ones; all where absent. */
  readonly results?: number;
  /** How the product counts its columns, and how many results have, where that is another order. */
  readonly ring?: RingColumns & { readonly columns: number };
  readonly classes?: undefined;
}

/** Where a product's results lie, or those of classes of strides. */
export type ResultPlaces = (LinearPlaces | { readonly classes: ClassResults }) & {
  /** From one group to the next. */
  readonly group: number;
};

/** What kernels that sum partial results differ in. */
interface Reduction {
  /** The name before and behind how many threads share a vector's splits. */
  readonly name: readonly [string, string];
  /** Vectors of results. */
  readonly vectors: number;
  readonly splits: number;
  /** Elements of a vector, and along which side they lie. */
  readonly width: 1 | 4;
  readonly side: "rows" | "columns";
  /** Whether the result holds a part already. */
  readonly onto: boolean;
  /** Turns a row within the group into a row of the whole, for epilogues that ask. */
  rowIndex(row: string): string;
  /** WGSL that finds where vector `i` lies, and of its row, its column and its index in the result. */
  place(): { text: string; row: string; column: string; offset: string };
}

/**
 * Sums partial results in a fixed order, with compensation where sums round (which compilers may drop), then applies the epilogue.
 * Binds `partials`, `result` and what the epilogue reads. Kernels of one name differ in sizes only.
 */
function reduceKernel(
  module: ModuleBuilder,
  { name: [before, behind], vectors, width, side, onto, ...own }: Reduction,
  epilogue: EpilogueFactory,
  element: Scalar,
): SizedKernel {
  const sumOf = sumScalar(element);
  const partials = module.bind("partials", "read", width, sumOf);
  const result = module.bind("result", "write", width, element);
  const steps = epilogue(module, width, own.rowIndex);
  const { trait, values, ...cost } = splitSum(vectors, own.splits, sumOf, width);
  const name = `${before}${trait}${behind}${epilogueTrait(steps)}${module.splitTrait()}`;
  const count = module.size("count", vectors);
  const { text, ...place } = own.place();
  const all = {
    count,
    place: text,
    onto: onto ? result.load("i") : "",
    ...values,
    splits: module.size("splits", own.splits),
    load: (split: string) => partials.load(`${split} * ${count} + i`),
    store: result.store(place.offset, applyEpilogue(steps, "sum", { width, side, ...place })),
    functions: steps.map(({ declarations }) => declarations).join("\n"),
  };
  const iterations = cost.iterations + width * epilogueIterations(steps);
  return templateKernel(module, name, template, all, { ...cost, iterations });
}

/** Partial results lie one after the other, each as the result does. */
export interface ReduceShape {
  /** Elements of the result. */
  readonly elements: number;
  readonly splits: number;
  /** Row of element i: ⌊i / rowStride⌋ mod rows; likewise its column. For epilogues that ask. */
  readonly rows: number;
  readonly rowStride: number;
  readonly columns: number;
  readonly columnStride: number;
}

/** Four elements at a time where they share a row or a column and lie along the other. */
function reduceVector(shape: ReduceShape): Pick<Reduction, "width" | "side"> {
  const along = (stride: number, size: number, other: number) =>
    stride === 1 && size % 4 === 0 && other % 4 === 0 && shape.elements % 4 === 0;
  if (along(shape.columnStride, shape.columns, shape.rowStride)) {
    return { width: 4, side: "columns" };
  }
  if (along(shape.rowStride, shape.rows, shape.columnStride)) return { width: 4, side: "rows" };
  return { width: 1, side: "columns" };
}

/**
 * Sums the splits' partial results as {@linkcode reduceKernel} does.
 *
 * @param onto The result holds a part already.
 */
export function reduceSplitsKernel(
  module: ModuleBuilder,
  shape: ReduceShape,
  epilogue: EpilogueFactory,
  element: Scalar,
  onto = false,
): SizedKernel {
  const { width, side } = reduceVector(shape);
  const reduction: Reduction = {
    name: [`reduce_splits_${onto ? "onto_" : ""}${element}x${width}${width === 4 ? side : ""}`, ""],
    vectors: shape.elements / width,
    splits: shape.splits,
    width,
    side,
    onto,
    rowIndex: (row) => row,
    place() {
      const coordinate = (what: "row" | "column", stride: number, extent: number) =>
        `((i * ${width}u / ${module.size(`${what}_stride`, stride)}) % ${
          module.size(`${what}s`, extent)
        })`;
      return {
        text: "",
        row: coordinate("row", shape.rowStride, shape.rows),
        column: coordinate("column", shape.columnStride, shape.columns),
        offset: "i",
      };
    },
  };
  return reduceKernel(module, reduction, epilogue, element);
}

/**
 * Partial results of a range of tiles whose depth is split, and where their sums go. They lie
 * [split][tile][rows · columns], ragged tiles padded to whole ones; rows are contiguous where results leave four rows
 * at a time, else columns.
 */
export interface TilePartials {
  readonly policy: TilePolicy;
  readonly range: TileRange;
  readonly splits: number;
  readonly rows: number;
  readonly columns: number;
  /** Where the result lies. */
  readonly strides: ResultPlaces;
  /** Declares by `first_row` what results of classes of strides ask for. */
  readonly classText?: ((module: ModuleBuilder) => string) | undefined;
  /** Along which side four results can be stored at once. */
  readonly vector: OutputVector;
  /** As the mainloop's variant has it. */
  readonly raster: number;
}

/** Elements of all partial results. */
export function partialElements({ policy, range, splits }: TilePartials): number {
  return splits * range.count * policy.rows * policy.columns;
}

/** Where the mainloop stores partial results, four at a time. Binds `partials`. */
export function tilePartialsOutput(
  module: ModuleBuilder,
  { policy, range, vector, ...shape }: TilePartials,
  partials: TensorSplit,
  element: Scalar,
): OutputStore {
  const [row, column] = vector === "rows" ? [1, policy.rows] : [policy.columns, 1];
  const columns = module.size("part_columns", shape.columns);
  const first = module.size("first_tile", range.first);
  const count = module.size("tile_count", range.count);
  const out = module.tensor("partials", "write", 4, partials, element);
  const map = {
    rows: module.size("part_rows", shape.rows),
    columns,
    rowStride: `${row}u`,
    period: columns,
    outerStride: "0u",
    innerStride: `${column}u`,
    // The place within the tile is what is left of the row and column; u32 wraps around on the way.
    base: `(split * ${count} + tile - ${first}) * ${policy.rows * policy.columns}u` +
      ` - first_row * ${row}u - first_column * ${column}u`,
    vector: vector === "rows" ? "rows" as const : "columns" as const,
  };
  return mappedOutput(out, map, []);
}

/** What of the places of results enters the name of a kernel that sums tiles. */
function placesTrait({ strides }: TilePartials): string {
  const { classes } = strides;
  return classes !== undefined
    ? `_${classes.inner}${classes.batchInner ? "_images" : ""}_${classSides(classes)}_e${
      classEdges(classes)
    }`
    : strides.results !== undefined
    ? "_rows"
    : strides.interleave === undefined
    ? ""
    : "_i";
}

/**
 * Sums the partial results of tiles as {@linkcode reduceKernel} does.
 *
 * @param rowIndex Turns a row within the group into a row of the whole, for epilogues that ask.
 */
export function reduceTilesKernel(
  module: ModuleBuilder,
  shape: TilePartials,
  epilogue: EpilogueFactory,
  element: Scalar,
  rowIndex: (module: ModuleBuilder, row: string) => string = (_, row) => row,
): SizedKernel {
  const { policy, vector } = shape;
  const width = vector === "none" ? 1 : 4;
  const side = vector === "rows" ? "rows" : "columns";
  const reduction: Reduction = {
    name: [
      `reduce_tiles_${element}x${width}${width === 4 ? side : ""}${placesTrait(shape)}_${
        policyTile(policy)
      }`,
      rasterTrait(shape.raster),
    ],
    vectors: partialElements({ ...shape, splits: 1 }) / width,
    splits: shape.splits,
    width,
    side,
    onto: false,
    rowIndex: (row) => rowIndex(module, row),
    place: () => ({
      text: tileText(module, shape, width, side),
      row: "row",
      column: "column",
      offset: "at",
    }),
  };
  return reduceKernel(module, reduction, epilogue, element);
}

/** Declares `row` and `column` of vector `i` of the partial tiles, and `at`, its index in the result. */
function tileText(
  module: ModuleBuilder,
  { policy, range, strides, ...shape }: TilePartials,
  width: 1 | 4,
  side: "rows" | "columns",
): string {
  const { size } = module;
  const { classes } = strides;
  const tile = policy.rows * policy.columns / width;
  const across = policy[side] / width;
  const [along, other] = [`(place % ${across}u) * ${width}u`, `place / ${across}u`];
  const period = classes === undefined ? size("period", strides.period) : "";
  return [
    `  let tile = ${size("first_tile", range.first)} + i / ${tile}u;`,
    `  let place = i % ${tile}u;`,
    ...tilePlaceText(module, ["tile", "group"], {
      rows: Math.ceil(shape.rows / policy.rows),
      columns: Math.ceil(shape.columns / policy.columns),
      classes: classes === undefined ? 1 : tileClasses(classes),
      raster: shape.raster,
    }),
    `  let first_row = row_tile * ${policy.rows}u;`,
    `  let row = first_row + ${side === "rows" ? along : other};`,
    `  let column = column_tile * ${policy.columns}u + ${side === "rows" ? other : along};`,
    `  if (row >= ${size("rows", shape.rows)} || column >= ${
      size("columns", shape.columns)
    }) { return; }`,
    ...(strides.classes === undefined ? linearPlace(strides) : classPlace(strides.classes)),
  ].join("\n");

  function linearPlace({ interleave, results, ...places }: LinearPlaces) {
    return [
      ...(results === undefined
        ? []
        : [`  if (column % ${period} >= ${size("results", results)}) { return; }`]),
      `  let at = (group * ${size("group", strides.group)} + row * ${size("row", places.row)} + ` +
      `(column / ${period}) * ${size("outer", places.outer)} + ${
        interleave === undefined
          ? `(column % ${period}) * ${size("inner", places.inner)}`
          : `(column % ${period}) / 4u * ${size("inner", places.inner)} + column % 4u * ${
            size("interleave", interleave)
          }`
      }) / ${width}u;`,
    ];
  }

  function classPlace(classes: ClassResults) {
    const places = classPlaceText(module, classes, shape.columns);
    return [
      shape.classText?.(module) ?? "",
      `  let out_base = group * ${size("group", strides.group)};`,
      ...places.column("_c", "column"),
      ...places.row("_r", "row"),
      `  if (!(row_in_r && ${places.inside("_r", "_c")})) { return; }`,
      `  let at = (${places.offset("_r", "_c")}) / ${width}u;`,
    ];
  }
}
