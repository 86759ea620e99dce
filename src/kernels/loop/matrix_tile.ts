import { scalarBytes, typeName } from "../../elements/scalar.ts";
import {
  loadedTile,
  type TapRing,
  tapRingOf,
  type TapRow,
  tapRowOf,
  type TileAccess,
  VECTOR_BYTES,
  vectorSide,
} from "../loader.ts";
import type { MainloopSchedule } from "./mainloop.ts";
import type { FilledTile, LoadedValue } from "./threads.ts";
import { bufferCount, type FullKernelVariant } from "../variant.ts";
import { type MatrixUnit, unitDepth, unitScalar } from "../matrix_units.ts";
import type { MatrixTile, TilePolicy } from "../policy.ts";

/** Padding of a row of a tile, against bank conflicts: as much as a matrix load reads at once. */
const SKEW_BYTES = 16;

/** One operand's tile in workgroup memory, from which matrices are loaded: its rows lie along the side that the loader stores. */
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

/** What of an operand's access decides how its tile lies. */
export type MatrixLoader = Pick<TileAccess, "along" | "vectorAlong" | "vector" | "sharedTaps">;

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
  const row = tapRowOf(loader);
  const [places, deep] = loadedTile(loader, extent, depth);
  const cyclic = row && {
    row,
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
    ring: tapRingOf(loader),
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

/** A policy whose products run on matrix units. */
export type MatrixTilePolicy = Pick<TilePolicy, "rows" | "columns" | "depth"> & {
  readonly matrix: MatrixTile;
};

/** What of workgroup memory a product on matrix units takes. */
export interface MatrixMemory {
  /** Its variables. */
  readonly declarations: readonly string[];
  readonly bytes: number;
  readonly buffers: MainloopSchedule["buffers"];
  readonly tiles: readonly [MatrixOperandTile, MatrixOperandTile];
  /** The array through which sums pass, vectors of four, and how they are read by their place. */
  readonly stage: StageShape & { readonly array: string; read(place: string): string };
}

/** Bytes of a vector of four sums, in which they pass. */
const STAGED_BYTES = 16;

/** How sums lie in the memory through which they pass: in lines of vectors of four, rows or columns, of each subgroup apart. */
export interface StageShape {
  /** Columns, of which threads read four rows at once; else rows. */
  readonly byColumns: boolean;
  /** Vectors from one line to the next. */
  readonly stride: number;
  /** Vectors of a subgroup. */
  readonly size: number;
}

/**
 * How the staged tile lies. Lines are padded, lest accesses share a bank of workgroup memory: columns by one vector; rows by two,
 * which suits both the stores of units, four lines at once, and the reads of threads. Rows are padded by one vector where the
 * tiles do not share their memory, to save room, and where they are shorter than 32 values: threads read two of these at once, and
 * only the stores of units conflict.
 */
function stageShape(
  { unit, stage, byColumns = false }: MatrixTile,
  shared: boolean,
): StageShape {
  const sides = [stage[0] * unit.m, stage[1] * unit.n] as const;
  const [lines, length] = byColumns ? [sides[1], sides[0]] : sides;
  const stride = length / 4 + (byColumns || length < 32 || !shared ? 1 : 2);
  return { byColumns, stride, size: lines * stride };
}

/** Subgroups of a workgroup along the rows and columns of its tile. */
export function subgroupGrid({ rows, columns, matrix }: MatrixTilePolicy): [number, number] {
  const { unit, matrices } = matrix;
  return [rows / (matrices[0] * unit.m), columns / (matrices[1] * unit.n)];
}

/** Whether a policy's steps are one matrix deep, so that the next fragments are loaded to registers while these are multiplied. */
export function doubleBuffersRegisters(
  { depth, matrix }: Pick<TilePolicy, "depth" | "matrix">,
): boolean {
  return matrix !== undefined && depth === unitDepth(matrix.unit);
}

/**
 * Lays out workgroup memory. Sums reuse the tiles' memory, where tiles are vectors of the same size and are no longer needed: two
 * workgroups of 24 KiB each run side by side on a multiprocessor of an H200, larger ones do not.
 *
 * Steps of one matrix's depth have few products a barrier. They load the next fragments ahead, from a second tile; not where sums are
 * flushed in a loop that is not unrolled, since registers hold not both (28.9 ms for 0.9 at 4096³ on an H200).
 *
 * @param moved Whether sums are flushed in a loop that is not unrolled.
 */
export function matrixMemory(
  policy: MatrixTilePolicy,
  [a, b]: readonly [MatrixLoader, MatrixLoader],
  variant: FullKernelVariant,
  moved: boolean,
): MatrixMemory {
  const { matrix, rows, columns, depth } = policy;
  const { unit } = matrix;
  const shapes = [
    matrixTileShape("a", unit, rows, depth, a, matrix.matrices[0]),
    matrixTileShape("b", unit, columns, depth, b, matrix.matrices[1]),
  ] as const;
  const [down, across] = subgroupGrid(policy);
  const ringed = shapes.some(({ ring }) => ring !== undefined);
  const turns = bufferCount(variant);
  const shared = turns === 1 && shapes.every(({ vectorBytes }) => vectorBytes === STAGED_BYTES);
  const stage = stageShape(matrix, shared);
  const staged = down * across * stage.size;
  const buffers = shared && variant.prefetch && !moved && !ringed && doubleBuffersRegisters(policy)
    ? "register-double"
    : turns;
  const copies = buffers === "register-double" ? 2 : buffers;
  const tileBytes = ({ size, vectorBytes }: MatrixTileShape) => copies * size * vectorBytes;
  const which = buffers === "register-double" ? "fill" : "half";
  const first = (size: number) => copies === 1 ? "" : `${which} * ${size}u + `;
  const result = typeName(unit.result, 4);
  if (!shared) {
    return {
      declarations: [
        ...shapes.map((shape) =>
          `var<workgroup> ${shape.operand}_tile: array<${shape.type}, ${copies * shape.size}>;`
        ),
        `var<workgroup> stage: array<${result}, ${staged}>;`,
      ],
      bytes: tileBytes(shapes[0]) + tileBytes(shapes[1]) +
        staged * 4 * scalarBytes(unit.result),
      buffers,
      tiles: [
        matrixTile(shapes[0], "a_tile", first(shapes[0].size)),
        matrixTile(shapes[1], "b_tile", first(shapes[1].size)),
      ],
      stage: { ...stage, array: "stage", read: (place) => `stage[${place}]` },
    };
  }
  const both = shapes[0].size + shapes[1].size;
  const vectors = Math.max(copies * both, staged);
  return {
    declarations: [`var<workgroup> tiles: array<${shapes[0].type}, ${vectors}>;`],
    bytes: STAGED_BYTES * vectors,
    buffers,
    tiles: [
      matrixTile(shapes[0], "tiles", first(both)),
      matrixTile(shapes[1], "tiles", `${first(both)}${shapes[0].size}u + `),
    ],
    stage: { ...stage, array: "tiles", read: (place) => `bitcast<${result}>(tiles[${place}])` },
  };
}
