import type { TileLoader } from "../loader.ts";
import type { FullMainLoopVariant } from "../main_loop_variant.ts";
import { type Scalar, scalarBytes, typeName } from "../../elements/scalar.ts";

/** One operand's tile in workgroup memory: `depth` rows of vectors of four places. */
export interface WorkgroupTile {
  /** What it holds; `u32` is four int8 that follow each other along the depth. */
  readonly scalar: Scalar;
  /** The variables. */
  readonly declaration: string;
  readonly bytes: number;
  /** The vector `vector` of row `depth`; both are WGSL. */
  at(depth: string, vector: string): string;
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
  { arrays2d, doubleBuffer }: Pick<FullMainLoopVariant, "arrays2d" | "doubleBuffer">,
): WorkgroupTile {
  const scalar = loader.value ?? "f32";
  const row = rowVectors(extent, loader);
  const vector = typeName(scalar, 4);
  const name = `${operand}_tile`;
  const type = arrays2d
    ? `array<array<${vector}, ${row}>, ${depth}>`
    : `array<${vector}, ${row * depth * (doubleBuffer ? 2 : 1)}>`;
  const declared = arrays2d && doubleBuffer ? `array<${type}, 2>` : type;
  const half = doubleBuffer ? "[half]" : "";
  const start = doubleBuffer ? `half * ${row * depth}u + ` : "";
  return {
    scalar,
    declaration: `var<workgroup> ${name}: ${declared};`,
    bytes: tileBytes(extent, depth, loader, doubleBuffer),
    at: (k, v) =>
      arrays2d ? `${name}${half}[${k}][${v}]` : `${name}[${start}(${k}) * ${row}u + ${v}]`,
  };
}
