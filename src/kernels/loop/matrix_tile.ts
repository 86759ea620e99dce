import { scalarBytes, typeName } from "../../elements/scalar.ts";
import { loadedTile, type TapRing, type TileLoader, VECTOR_BYTES, vectorSide } from "../loader.ts";
import { type MatrixUnit, unitDepth, unitScalar } from "../matrix_units.ts";
import type { FilledTile, LoadedValue } from "./workgroup_tile.ts";

/** Between rows of a tile, against bank conflicts: what a matrix unit's loads take at once. */
const SKEW_BYTES = 16;

/** One operand's tile in workgroup memory as matrices are loaded from it: rows along the side that the loader stores. */
export interface MatrixOperandTile extends FilledTile {
  /** WGSL of its matrices. */
  readonly type: string;
  /** Declares where the subgroup's first matrix lies, given `unit_row` or `unit_column`. */
  readonly places: string;
  /** Where taps meet what steps before have loaded, whose matrices a subgroup keeps. */
  readonly ring?: TapRing;
  /** WGSL of the matrix `index` places beyond the subgroup's first one, `step` matrices down the depth of the tile. */
  load(index: number, step: number): string;
}

type Sides = Pick<TileLoader, "along" | "vectorAlong">;
/** What of a loader decides how its tile lies. */
export type MatrixLoader = Sides & Pick<TileLoader, "vector" | "tapRow" | "tapRing">;

/** How a tile lies: rows of vectors, those between rows included. */
export interface MatrixTileShape {
  readonly operand: "a" | "b";
  readonly unit: MatrixUnit;
  /** Along which side its rows lie. */
  readonly side: "place" | "depth";
  /** Values of a vector. */
  readonly width: 1 | 4 | 8;
  /** WGSL of a vector. */
  readonly type: string;
  /** Vectors from one row to the next. */
  readonly stride: number;
  /** Vectors of all of it. */
  readonly size: number;
  readonly vectorBytes: number;
  /** Matrices along the depth of a tap, and places from one tap to the next; all of the depth is one tap's where absent. */
  readonly taps: { readonly deep: number; readonly places: number } | undefined;
  /** Taps whose matrices follow each other along the places, of those whose matrices stay. */
  readonly ring: TapRing | undefined;
}

/** How the tile of a loader lies. Bytes of int8 follow each other along the depth, and so do rows then; else they lie as they are loaded. */
export function matrixTileShape(
  operand: "a" | "b",
  unit: MatrixUnit,
  extent: number,
  depth: number,
  loader: MatrixLoader,
): MatrixTileShape {
  const scalar = unitScalar(unit);
  const side = unit.component === "i8" ? "depth" as const : vectorSide(loader);
  const { tapRow, tapRing } = loader;
  const [places, deep] = loadedTile(loader, extent, depth);
  const [rows, length] = side === "depth" ? [places, deep] : [deep, places];
  // A matrix begins with an element.
  const whole = side === "place" || unitDepth(unit) % loader.vector === 0;
  const width = vectorSide(loader) === side && whole ? loader.vector : 1;
  const stride = (length + SKEW_BYTES / scalarBytes(scalar)) / width;
  return {
    operand,
    unit,
    side,
    width,
    type: width === 8 ? "vec4<u32>" : typeName(scalar, width),
    stride,
    size: rows * stride,
    vectorBytes: width * scalarBytes(scalar),
    taps: tapRow && { deep: deep / unitDepth(unit), places: tapRow.dilation },
    ring: tapRing,
  };
}

/**
 * A tile of one operand in an array of workgroup memory.
 *
 * @param first WGSL of where it begins there, with ` + ` behind it; nothing for the array's own begin.
 */
export function matrixTile(
  { operand, unit, side, width, stride, taps, ring, vectorBytes }: MatrixTileShape,
  array: string,
  first: string,
): MatrixOperandTile {
  const { m, n, k, component } = unit;
  const type = operand === "a"
    ? `subgroup_matrix_left<${component}, ${k}, ${m}>`
    : `subgroup_matrix_right<${component}, ${n}, ${k}>`;
  // Rows of A are its places, rows of B its depth.
  const order = (operand === "a") === (side === "depth") ? "row_major" : "col_major";
  const unitPlace = operand === "a" ? "unit_row" : "unit_column";
  const place = ring === undefined ? unitPlace : `${unitPlace} / ${ring.taps}u`;
  return {
    type,
    banked: vectorBytes === VECTOR_BYTES ? side : undefined,
    ...(ring && { ring }),
    places: `  let ${operand}_first = ${
      side === "depth" ? `${place} * ${stride}u` : `${place} / ${width}u`
    };`,
    load(index, step) {
      const each = operand === "a" ? m : n;
      // Of a ring the taps' matrices of one place of the tile follow each other.
      const own = ring === undefined ? index : Math.floor(index / each / ring.taps) * each;
      const deep = (taps === undefined ? step : step % taps.deep) * unitDepth(unit);
      const at = own + (taps === undefined ? 0 : Math.floor(step / taps.deep) * taps.places);
      const [row, column] = side === "depth" ? [at, deep] : [deep, at];
      const offset = `${first}${operand}_first + ${row * stride + column / width}u`;
      return `subgroupMatrixLoad<${type}, ${order}>(&${array}, ${offset}, ${stride}u)`;
    },
    store: ({ place, depth, value, vector, side: along }: LoadedValue) => {
      const [row, column] = side === "depth" ? [place, depth] : [depth, place];
      const at = (row: string, column: string) =>
        `${array}[${first}(${row}) * ${stride}u + ${
          width === 1 ? `(${column})` : `(${column}) / ${width}u`
        }]`;
      if (vector === width) return [`    ${at(row, column)} = ${value};`];
      return [..."xyzw"].map((one, i) =>
        along === side
          ? `    ${at(row, `${column} + ${i}u`)} = ${value}.${one};`
          : `    ${at(`${row} + ${i}u`, column)} = ${value}.${one};`
      );
    },
  };
}
