import { bankedIndex, deepState, type TileAccess, type TileLoader } from "../loader.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";

/** One operand of a matrix product as it lies in memory, row-major, batches one after the other. */
export interface MatrixShape {
  /** Rows of A or columns of B. */
  readonly places: number;
  readonly depth: number;
  /** Which side is contiguous. */
  readonly along: "place" | "depth";
  readonly vector: TileAccess["vector"];
  /** Elements from one batch to the next; 0 for a matrix that all batches share. */
  readonly batchStride: number;
  readonly tileDepth: number;
  /** Whether there are steps behind its depth, of zeros; where absent none but what the last one has. */
  readonly padded?: boolean;
}

/** Vectors of four need a contiguous side of whole vectors. */
export function matrixVector(
  shape: Pick<MatrixShape, "places" | "depth" | "along" | "batchStride">,
): 1 | 4 {
  const contiguous = shape.along === "place" ? shape.places : shape.depth;
  return contiguous % 4 === 0 && shape.batchStride % 4 === 0 ? 4 : 1;
}

/** WGSL of an index in vectors. */
function inVectors(index: string, vector: TileAccess["vector"]): string {
  return vector === 1 ? index : `${index} / ${vector}u`;
}

/** A or B of a plain product. */
export function matrixLoader(
  module: ModuleBuilder,
  operand: "a" | "b",
  matrix: TensorAccess,
  { vector, along, tileDepth, ...shape }: MatrixShape,
): TileLoader {
  const size = (name: string, value: number) => module.size(`${operand}_${name}`, value);
  const leading = size("leading", (along === "place" ? shape.places : shape.depth) / vector);
  const batch = size("batch_stride", shape.batchStride / vector);
  const { padded = shape.depth % tileDepth !== 0 } = shape;
  const masked = module.mode === "uniform" || padded;
  const far = (index: string, side: "place" | "depth") =>
    along === side ? inVectors(index, vector) : `${index} * ${leading}`;
  return {
    access: {
      vector,
      value: matrix.value,
      along,
      ...(module.mode === "constant" && along === "depth" ? { pitch: shape.depth } : {}),
    },
    state: deepState(operand, tileDepth),
    place: (slot, place) =>
      `  let ${operand}_base${slot} = group * ${batch} + ${far(place, "place")};`,
    depth: (slot, row) =>
      [
        `      let ${operand}_d${slot} = ${operand}_deep + ${row};`,
        `      let ${operand}_far${slot} = ${far(`${operand}_d${slot}`, "depth")};`,
      ].join("\n"),
    load(place, depth, target) {
      const inside = `${operand}_d${depth} < ${size("depth", shape.depth)}`;
      const at = `${operand}_base${place} + ${operand}_far${depth}`;
      return `      ${target} = ${matrix.load(at, masked ? [inside] : [])};`;
    },
  };
}

/**
 * Loads a packed operand, [group][depth][places] with both padded to the tile: aligned, no masks. In panels it is
 * [group][panels][places][tile's depth]: of each step a place's run, beside those of others, in the order in which
 * {@linkcode bankedIndex} has them.
 *
 * @param places Padded places of a group.
 * @param depth Padded depth of a group.
 */
export function packedLoader(
  module: ModuleBuilder,
  operand: "a" | "b",
  packed: TensorAccess,
  { places, depth, tileDepth, vector = packed.vector, inPanels = false }: {
    readonly places: number;
    readonly depth: number;
    readonly tileDepth: number;
    readonly vector?: TileAccess["vector"];
    readonly inPanels?: boolean;
  },
): TileLoader {
  const rowVectors = module.size(`${operand}_row_vectors`, places / vector);
  const groupVectors = module.size(`${operand}_group_vectors`, (places / vector) * depth);
  const panel = (place: string) =>
    `(${bankedIndex(place, tileDepth / 4)}) * ${tileDepth / vector}u`;
  return {
    access: { vector, value: packed.value, along: inPanels ? "depth" : "place" },
    state: deepState(operand, tileDepth),
    place: (slot, place) =>
      `  let ${operand}_base${slot} = group * ${groupVectors} + ${
        inPanels ? panel(place) : inVectors(place, vector)
      };`,
    depth: (slot, row) =>
      `      let ${operand}_far${slot} = ${
        inPanels
          ? `${operand}_deep * ${rowVectors} + ${inVectors(row, vector)}`
          : `(${operand}_deep + ${row}) * ${rowVectors}`
      };`,
    load: (place, depth, target) =>
      `      ${target} = ${packed.load(`${operand}_base${place} + ${operand}_far${depth}`)};`,
  };
}
