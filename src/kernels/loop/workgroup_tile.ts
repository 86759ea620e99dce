import type { TileLoader } from "../loader.ts";
import type { FullMainLoopVariant } from "../main_loop_variant.ts";
import { type Scalar, scalarBytes, typeName } from "../../elements/scalar.ts";

/** One operand's tile in workgroup memory: `depth` rows of vectors of four places. */
export interface WorkgroupTile {
  /** What it holds; `u32` is four int8 that follow each other along the depth. */
  readonly scalar: Scalar;
  /** The variable. */
  readonly declaration: string;
  /** Vector `index` of the thread in row `depth`, which is WGSL. */
  fragment(depth: string, index: number): string;
  /** What a thread with a single row multiplies of A's row `depth`, where there are such threads. */
  element?(depth: string): string;
}

/** What a thread has loaded of a tile: a value, or several along a side. */
export interface LoadedValue {
  /** Place and depth within the tile, of the first value. */
  readonly place: string;
  readonly depth: string;
  readonly value: string;
  readonly vector: TileLoader["vector"];
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
function rowVectors(extent: number, { along }: Pick<TileLoader, "along">): number {
  return extent / 4 + (along === "depth" ? 1 : 0);
}

/** Bytes of one tile. */
export function tileBytes(
  extent: number,
  depth: number,
  loader: Pick<TileLoader, "along" | "value">,
  doubleBuffer = false,
): number {
  return (doubleBuffer ? 2 : 1) * 4 * scalarBytes(loader.value ?? "f32") * depth *
    rowVectors(extent, loader);
}

/** Declares a tile and says how its vectors are reached; with two of each, `half` is which. */
export function workgroupTile(
  operand: "a" | "b",
  extent: number,
  depth: number,
  loader: Pick<TileLoader, "along" | "value">,
  { doubleBuffer }: Pick<FullMainLoopVariant, "doubleBuffer">,
): WorkgroupTile & FilledTile {
  const scalar = loader.value ?? "f32";
  const row = rowVectors(extent, loader);
  const vector = typeName(scalar, 4);
  const name = `${operand}_tile`;
  // Arrays of arrays: an unrolled depth is a constant index.
  const type = `array<array<${vector}, ${row}>, ${depth}>`;
  const declared = doubleBuffer ? `array<${type}, 2>` : type;
  const at = (k: string, v: string) => `${name}${doubleBuffer ? "[half]" : ""}[${k}][${v}]`;
  return {
    scalar,
    declaration: `var<workgroup> ${name}: ${declared};`,
    fragment: (k, i) => at(k, operand === "a" ? `ay${i}` : `bx${i}`),
    ...(operand === "a" ? { element: (k: string) => `${at(k, "ay0 / 4u")}[ay0 % 4u]` } : {}),
    store: (loaded) => storeLines(at, loaded),
  };
}
