import { range } from "../lists.ts";
import { type Scalar, scalarBytes, typeName } from "../../elements/scalar.ts";
import type { TileAccess } from "../loader.ts";

/** How the threads of a workgroup, or of one of its slices, lie on a tile of results. */
export interface ThreadGrid {
  /** Threads along rows and columns. */
  readonly rows: number;
  readonly columns: number;
  /** Threads of a warp along rows and columns, of which the grid is whole ones; absent where the grid is none. */
  readonly warp?: readonly [number, number] | undefined;
  /** Whether threads lie in pairs ({@linkcode threadPlace}), or row by row. */
  readonly paired: boolean;
}

/**
 * Declares `{prefix}x` and `{prefix}y`, the place of a thread on the grid: neighbours lie one below the other, and such pairs side
 * by side, as in CUTLASS's `RowMajorInterleaved<2>`. An NVIDIA GPU brings vectors of four to half a warp at once where each thread
 * wants what its neighbour does, or what the next but one does, and to a quarter where not: here a row
 * is the next but one's, a column the neighbour's. Of up to two columns that holds row by row, and an odd number of rows (of a warp,
 * or of the grid where there are none) lies so too.
 */
export function threadPlace(
  { rows, columns, warp, paired }: ThreadGrid,
  thread: string,
  prefix: string,
  [lane, warpIndex] = ["lane", "warp"],
): string {
  const [high, wide] = warp ?? [rows, columns];
  const place = (of: string) =>
    paired && high % 2 === 0 && wide > 2
      ? [`${of} / 2u % ${wide}u`, `${of} / ${2 * wide}u * 2u + ${of} % 2u`]
      : [`${of} % ${wide}u`, `${of} / ${wide}u`];
  if (warp === undefined) {
    const [x, y] = place(thread);
    return `let ${prefix}x = ${x};\nlet ${prefix}y = ${y};`;
  }
  const warps = columns / wide;
  const [x, y] = place(lane);
  return [
    `let ${lane} = ${thread} % 32u;`,
    `let ${warpIndex} = ${thread} / 32u;`,
    `let ${prefix}x = (${warpIndex} % ${warps}u) * ${wide}u + ${x};`,
    `let ${prefix}y = (${warpIndex} / ${warps}u) * ${high}u + ${y};`,
  ].join("\n");
}

/**
 * Declares `ay{i}` and `bx{j}`: the vectors of both tiles that a thread multiplies, of which neighbours have
 * neighbouring ones.
 *
 * @param bFirst WGSL of B's first vector in a row of its tile, where A lies before it.
 */
export function fragmentPlaces(
  { rows, columns }: Pick<ThreadGrid, "rows" | "columns">,
  aFragments: number,
  bFragments: number,
  bFirst?: string,
): string {
  const of = (count: number, text: (i: number) => string) => range(count).map((i) => text(i));
  const b = bFirst === undefined ? "tx" : `${bFirst} + tx`;
  return [
    ...of(aFragments, (i) => `  let ay${i} = ty + ${i * rows}u;`),
    ...of(bFragments, (j) => `  let bx${j} = ${b} + ${j * columns}u;`),
  ].join("\n");
}

/** One operand's tile in workgroup memory: `depth` rows of vectors of four places. */
export interface WorkgroupTile {
  /** What it holds; `u32` is four int8 that follow each other along the depth. */
  readonly scalar: Scalar;
  /** The variable. */
  readonly declaration: string;
  /** Vector `index` of the thread in row `depth`, which is WGSL. */
  fragment(depth: string, index: number): string;
}

/** What a thread has loaded of a tile: a value, or several along a side. */
export interface LoadedValue {
  /** Place and depth within the tile, of the first value. */
  readonly place: string;
  readonly depth: string;
  readonly value: string;
  readonly vector: TileAccess["vector"];
  readonly side: "place" | "depth";
}

/** A tile as loaders fill it. */
export interface FilledTile {
  /** Along which side its rows lie, where they are of whole vectors of 16 bytes, each as it is loaded, with 16 bytes between them. */
  readonly banked?: "place" | "depth" | undefined;
  /** The statements that store what a thread has loaded. */
  store(loaded: LoadedValue): string[];
}

/** Stores what is loaded into rows of places. */
function storeLines(
  at: (depth: string, vector: string) => string,
  { place, depth, value, vector, side }: LoadedValue,
): string[] {
  const element = (row: string) => `${at(row, `${place} / 4u`)}[${place} % 4u]`;
  if (vector === 1) return [`    ${element(depth)} = ${value};`];
  return side === "place"
    ? [`    ${at(depth, `${place} / 4u`)} = ${value};`]
    : [..."xyzw"].map((component, k) =>
      `    ${element(`${depth} + ${k}u`)} = ${value}.${component};`
    );
}

/** Vectors of a tile row. A tile that is stored across (along depth) is padded against bank conflicts. */
function rowVectors(extent: number, { along }: Pick<TileAccess, "along">): number {
  return extent / 4 + (along === "depth" ? 1 : 0);
}

/** Bytes of an operand's tiles. */
export function tileBytes(
  extent: number,
  depth: number,
  loader: Pick<TileAccess, "along"> & Partial<Pick<TileAccess, "value">>,
  tiles = 1,
): number {
  return tiles * 4 * scalarBytes(loader.value ?? "f32") * depth *
    rowVectors(extent, loader);
}

/** Declares a tile and says how its vectors are reached; with several of each, `half` is which. */
export function workgroupTile(
  operand: "a" | "b",
  extent: number,
  depth: number,
  loader: Pick<TileAccess, "along" | "value">,
  tiles: number,
): WorkgroupTile & FilledTile {
  const scalar = loader.value;
  const row = rowVectors(extent, loader);
  const vector = typeName(scalar, 4);
  const name = `${operand}_tile`;
  // Arrays of arrays: an unrolled depth is a constant index.
  const type = `array<array<${vector}, ${row}>, ${depth}>`;
  const declared = tiles > 1 ? `array<${type}, ${tiles}>` : type;
  const at = (k: string, v: string) => `${name}${tiles > 1 ? "[half]" : ""}[${k}][${v}]`;
  return {
    scalar,
    declaration: `var<workgroup> ${name}: ${declared};`,
    fragment: (k, i) => at(k, operand === "a" ? `ay${i}` : `bx${i}`),
    store: (loaded) => storeLines(at, loaded),
  };
}
