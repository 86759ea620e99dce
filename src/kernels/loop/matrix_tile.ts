import { scalarBytes, typeName } from "../../elements/scalar.ts";
import { type TileLoader, vectorSide } from "../loader.ts";
import { type MatrixUnit, unitDepth, unitScalar } from "../matrix_units.ts";
import type { FilledTile, LoadedValue } from "./workgroup_tile.ts";

/** Between rows of a tile, against bank conflicts: what a matrix unit's loads take at once. */
const SKEW_BYTES = 16;

/** One operand's tile in workgroup memory as matrices are loaded from it: rows along the side that the loader stores. */
export interface MatrixOperandTile extends FilledTile {
  /** The variable. */
  readonly declaration: string;
  readonly bytes: number;
  /** Declares where the subgroup's first matrix lies, given `unit_row` or `unit_column`. */
  readonly places: string;
  /** WGSL of the matrix `index` places beyond the subgroup's first one, `step` matrices down the depth of the tile. */
  load(index: number, step: number): string;
}

type Sides = Pick<TileLoader, "along" | "vectorAlong">;
type Loader = Sides & Pick<TileLoader, "vector">;

/** How a tile lies: `rows` of so many values, those between rows included. */
interface TileRows {
  readonly side: "place" | "depth";
  readonly rows: number;
  readonly length: number;
}

/** Bytes of int8 follow each other along the depth, and so do rows then; else they lie as they are loaded. */
function tileRows(unit: MatrixUnit, extent: number, depth: number, loader: Sides): TileRows {
  const side = unit.component === "i8" ? "depth" as const : vectorSide(loader);
  const [rows, length] = side === "depth" ? [extent, depth] : [depth, extent];
  return { side, rows, length: length + SKEW_BYTES / scalarBytes(unitScalar(unit)) };
}

/** Bytes of one tile. */
export function matrixTileBytes(
  unit: MatrixUnit,
  extent: number,
  depth: number,
  loader: Sides,
  doubleBuffer = false,
): number {
  const { rows, length } = tileRows(unit, extent, depth, loader);
  return (doubleBuffer ? 2 : 1) * rows * length * scalarBytes(unitScalar(unit));
}

/** A tile of one operand; with two, `half` is which. */
export function matrixTile(
  operand: "a" | "b",
  unit: MatrixUnit,
  extent: number,
  depth: number,
  loader: Loader,
  doubleBuffer: boolean,
): MatrixOperandTile {
  const { side, rows, length } = tileRows(unit, extent, depth, loader);
  const along = vectorSide(loader) === side;
  // A matrix begins with an element.
  const whole = side === "place" || unitDepth(unit) % loader.vector === 0;
  const width = along && whole ? loader.vector : 1;
  const stride = length / width;
  const scalar = unitScalar(unit);
  const name = `${operand}_tile`;
  const size = rows * stride;
  const start = doubleBuffer ? `half * ${size}u + ` : "";
  const { m, n, k, component } = unit;
  const type = operand === "a"
    ? `subgroup_matrix_left<${component}, ${k}, ${m}>`
    : `subgroup_matrix_right<${component}, ${n}, ${k}>`;
  // Rows of A are its places, rows of B its depth.
  const order = (operand === "a") === (side === "depth") ? "row_major" : "col_major";
  const first = operand === "a" ? "unit_row" : "unit_column";
  return {
    declaration: `var<workgroup> ${name}: array<${
      width === 8 ? "vec4<u32>" : typeName(scalar, width)
    }, ${size * (doubleBuffer ? 2 : 1)}>;`,
    bytes: matrixTileBytes(unit, extent, depth, loader, doubleBuffer),
    places: `  let ${operand}_first = ${
      side === "depth" ? `${first} * ${stride}u` : `${first} / ${width}u`
    };`,
    load(index, step) {
      const [row, column] = side === "depth"
        ? [index, step * unitDepth(unit)]
        : [step * unitDepth(unit), index];
      const offset = `${start}${operand}_first + ${row * stride + column / width}u`;
      return `subgroupMatrixLoad<${type}, ${order}>(&${name}, ${offset}, ${stride}u)`;
    },
    store: ({ place, depth, value, vector, side: along }: LoadedValue) => {
      const [row, column] = side === "depth" ? [place, depth] : [depth, place];
      const at = (row: string, column: string) =>
        `${name}[${start}(${row}) * ${stride}u + ${
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
