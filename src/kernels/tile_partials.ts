import template from "../../shaders/reduce_splits.wgsl" with { type: "text" };
import {
  applyEpilogue,
  type EpilogueFactory,
  epilogueIterations,
  epilogueTrait,
} from "./epilogue.ts";
import {
  classEdges,
  classPlaceText,
  type ClassResults,
  classSides,
  tileClasses,
} from "./class_output.ts";
import { rasterTrait } from "./main_loop_variant.ts";
import {
  type ModuleBuilder,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
} from "./module.ts";
import { mappedOutput, type OutputStore, type OutputVector } from "./output.ts";
import { policyTile, type TilePolicy } from "./policy.ts";
import type { LinearPlaces, ResultPlaces } from "./result_places.ts";
import { splitSum, sumWorkgroups } from "./sum_splits.ts";
import { tilePlaceText, type TileRange } from "./tile_scheduler.ts";
import { type Scalar, sumScalar } from "../elements/scalar.ts";

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
  /** As the main loop's variant has it. */
  readonly raster: number;
}

/** Elements of all partial results. */
export function partialElements({ policy, range, splits }: TilePartials): number {
  return splits * range.count * policy.rows * policy.columns;
}

/** Strides of a partial tile, and the side of its vectors. */
function tileStrides({ policy, vector }: TilePartials) {
  return vector === "rows"
    ? { row: 1, column: policy.rows, side: "rows" as const }
    : { row: policy.columns, column: 1, side: "columns" as const };
}

/** Where the main loop stores partial results, four at a time. Binds `partials`. */
export function tilePartialsOutput(
  module: ModuleBuilder,
  shape: TilePartials,
  partials: TensorSplit,
  element: Scalar,
): OutputStore {
  const { policy, range } = shape;
  const { row, column, side } = tileStrides(shape);
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
    vector: side,
  };
  return mappedOutput(out, map, []);
}

/** Vectors of results. */
function resultVectors(shape: TilePartials): number {
  return partialElements({ ...shape, splits: 1 }) / (shape.vector === "none" ? 1 : 4);
}

/** Workgroups of a {@linkcode reduceTilesKernel}. */
export function reduceTilesWorkgroups(shape: TilePartials): number {
  return sumWorkgroups(resultVectors(shape), shape.splits);
}

/**
 * Sums the partial results of tiles in a fixed order, with compensation where sums round (which compilers may drop), then applies the epilogue.
 * Binds `partials`, `result` and what the epilogue reads. Kernels of one name differ in sizes only.
 *
 * @param rowIndex Turns a row within the group into a row of the whole, for epilogues that ask.
 */
export function reduceTilesKernel(
  shape: TilePartials,
  mode: SizeMode,
  epilogue: EpilogueFactory,
  splits: { partials: TensorSplit; result: TensorSplit },
  element: Scalar = "f32",
  rowIndex: (module: ModuleBuilder, row: string) => string = (_, row) => row,
): SizedKernel {
  const { policy, range, strides } = shape;
  const module = moduleBuilder(mode);
  const width = shape.vector === "none" ? 1 : 4;
  const sumOf = sumScalar(element);
  const partials = module.tensor("partials", "read", width, splits.partials, sumOf);
  const result = module.tensor("result", "write", width, splits.result, element);
  const steps = epilogue(module, width, (row) => rowIndex(module, row));
  const { side } = tileStrides(shape);
  const { trait, values: lanes, workgroupBytes, iterations } = splitSum(
    resultVectors(shape),
    shape.splits,
    sumOf,
    width,
  );
  const name = `reduce_tiles_${element}x${width}${width === 4 ? side : ""}${
    strides.classes !== undefined
      ? `_${strides.classes.inner}${strides.classes.batchInner ? "_images" : ""}_${
        classSides(strides.classes)
      }_e${classEdges(strides.classes)}`
      : strides.results !== undefined
      ? "_rows"
      : strides.interleave === undefined
      ? ""
      : "_i"
  }_${policyTile(policy)}${trait}${rasterTrait(shape.raster)}${epilogueTrait(steps)}${
    splitTrait(splits.partials, splits.result)
  }`;
  const count = module.size("count", resultVectors(shape));
  const size = (of: string, value: number) => module.size(of, value);
  const tile = policy.rows * policy.columns / width;
  const across = (side === "rows" ? policy.rows : policy.columns) / width;
  const [along, other] = [`(place % ${across}u) * ${width}u`, `place / ${across}u`];
  const period = strides.classes === undefined ? size("period", strides.period) : "";
  const place = [
    `  let tile = ${size("first_tile", range.first)} + i / ${tile}u;`,
    `  let place = i % ${tile}u;`,
    ...tilePlaceText(module, ["tile", "group"], {
      rows: Math.ceil(shape.rows / policy.rows),
      columns: Math.ceil(shape.columns / policy.columns),
      classes: strides.classes === undefined ? 1 : tileClasses(strides.classes),
      raster: shape.raster,
    }),
    `  let first_row = row_tile * ${policy.rows}u;`,
    `  let row = first_row + ${side === "rows" ? along : other};`,
    `  let column = column_tile * ${policy.columns}u + ${side === "rows" ? other : along};`,
    `  if (row >= ${size("rows", shape.rows)} || column >= ${
      size("columns", shape.columns)
    }) { return; }`,
    ...(strides.classes !== undefined || strides.results === undefined
      ? []
      : [`  if (column % ${period} >= ${size("results", strides.results)}) { return; }`]),
    ...(strides.classes === undefined ? linearPlace(strides) : classPlace(strides.classes)),
  ].join("\n");
  const values = {
    name,
    count,
    place,
    onto: "",
    ...lanes,
    splits: size("splits", shape.splits),
    load: (split: string) => partials.load(`${split} * ${count} + i`),
    store: result.store(
      "at",
      applyEpilogue(steps, "sum", { width, side, row: "row", column: "column", offset: "at" }),
    ),
    functions: steps.map(({ declarations }) => declarations).join("\n"),
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  const all = iterations + width * epilogueIterations(steps);
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], workgroupBytes, all);

  function linearPlace(strides: LinearPlaces & Pick<ResultPlaces, "group">) {
    return [
      `  let at = (group * ${size("group", strides.group)} + row * ${size("row", strides.row)} + ` +
      `(column / ${period}) * ${size("outer", strides.outer)} + ${
        strides.interleave === undefined
          ? `(column % ${period}) * ${size("inner", strides.inner)}`
          : `(column % ${period}) / 4u * ${size("inner", strides.inner)} + column % 4u * ${
            size("interleave", strides.interleave)
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
