import { scalarBytes, typeName } from "../../elements/scalar.ts";
import {
  loadedTile,
  type TapRing,
  type TapRow,
  type TileLoader,
  VECTOR_BYTES,
  vectorSide,
} from "../loader.ts";
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
  /** Of rows of taps, how its places lie; a matrix beyond a subgroup's own is that of a tap's places. */
  readonly cyclic?: CyclicPlaces;
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
  /** Of rows of taps, where each tap's places lie; all of the depth is one tap's where absent. */
  readonly cyclic: CyclicPlaces | undefined;
  /** Taps whose matrices follow each other along the places, of those whose matrices stay. */
  readonly ring: TapRing | undefined;
}

/**
 * Places that a subgroup's matrices share cyclically: of n, matrix i has places i, i + n, i + 2n and so on, so that a tap's are those of matrices
 * that another tap has too, and loads of them serve both. In memory those of each lie together.
 */
export interface CyclicPlaces {
  readonly row: TapRow;
  /** Matrices along the depth of a tap. */
  readonly deep: number;
  /** Matrices of a subgroup beside each other. */
  readonly matrices: number;
  /** Rows of the tile from the places of one to those of the next. */
  readonly rows: number;
}

/** Rows for so many places, such that rows of neighbouring places, of so many vectors of 16 bytes and one, share no banks. */
function cyclicRows(places: number, vectors: number): number {
  const [every, more] = vectors === 4 ? [8, 4] : vectors === 2 ? [4, 2] : [1, 0];
  return Math.ceil((places - more) / every) * every + more;
}

/** How the tile of a loader lies. Bytes of int8 follow each other along the depth, and so do rows then; else they lie as they are loaded. */
export function matrixTileShape(
  operand: "a" | "b",
  unit: MatrixUnit,
  extent: number,
  depth: number,
  loader: MatrixLoader,
  matrices: number,
): MatrixTileShape {
  const scalar = unitScalar(unit);
  const side = unit.component === "i8" ? "depth" as const : vectorSide(loader);
  const { tapRow, tapRing } = loader;
  const [places, deep] = loadedTile(loader, extent, depth);
  const cyclic = tapRow && {
    row: tapRow,
    deep: deep / unitDepth(unit),
    matrices,
    rows: cyclicRows(Math.ceil(places / matrices), deep * scalarBytes(scalar) / VECTOR_BYTES),
  };
  const [rows, length] = cyclic !== undefined
    ? [matrices * cyclic.rows, deep]
    : side === "depth"
    ? [places, deep]
    : [deep, places];
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
    cyclic,
    ring: tapRing,
  };
}

/**
 * A tile of one operand in an array of workgroup memory.
 *
 * @param first WGSL of where it begins there, with ` + ` behind it; nothing for the array's own begin.
 */
export function matrixTile(
  { operand, unit, side, width, stride, cyclic, ring, vectorBytes }: MatrixTileShape,
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
  const shared = ring?.taps ?? cyclic?.matrices ?? 1;
  const place = shared === 1 ? unitPlace : `${unitPlace} / ${shared}u`;
  return {
    type,
    banked: vectorBytes === VECTOR_BYTES && cyclic === undefined ? side : undefined,
    ...(ring && { ring }),
    ...(cyclic && { cyclic }),
    places: `  let ${operand}_first = ${
      side === "depth" ? `${place} * ${stride}u` : `${place} / ${width}u`
    };`,
    load(index, step) {
      const each = operand === "a" ? m : n;
      // Of a ring the taps' matrices of one place of the tile follow each other.
      const matrix = index / each;
      const at = cyclic !== undefined
        ? matrix % cyclic.matrices * cyclic.rows + Math.floor(matrix / cyclic.matrices)
        : ring !== undefined
        ? Math.floor(matrix / ring.taps) * each
        : index;
      const deep = step * unitDepth(unit);
      const [row, column] = side === "depth" ? [at, deep] : [deep, at];
      const offset = `${first}${operand}_first + ${row * stride + column / width}u`;
      return `subgroupMatrixLoad<${type}, ${order}>(&${array}, ${offset}, ${stride}u)`;
    },
    store: ({ place, depth, value, vector, side: along }: LoadedValue) => {
      const lies = cyclic === undefined
        ? place
        : `(${place}) % ${cyclic.matrices}u * ${cyclic.rows}u + (${place}) / ${cyclic.matrices}u`;
      const [row, column] = side === "depth" ? [lies, depth] : [depth, lies];
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
