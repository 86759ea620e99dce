import type { ModuleBuilder, TensorAccess } from "../module.ts";
import type { TileLoader } from "../loader.ts";

/**
 * Loads a packed operand, [group][depth][places] with both padded to the tile: aligned, no masks.
 *
 * @param places Padded places of a group.
 * @param depth Padded depth of a group.
 */
export function packedLoader(
  module: ModuleBuilder,
  operand: "a" | "b",
  packed: TensorAccess,
  { places, depth, tileDepth, vector = packed.vector }: {
    readonly places: number;
    readonly depth: number;
    readonly tileDepth: number;
    readonly vector?: TileLoader["vector"];
  },
): TileLoader {
  const { load } = packed.packed ?? packed;
  const rowVectors = module.size(`${operand}_row_vectors`, places / vector);
  const groupVectors = module.size(`${operand}_group_vectors`, (places / vector) * depth);
  return {
    vector,
    value: packed.value,
    ...(packed.packed === undefined ? {} : { packed: packed.packed }),
    along: "place",
    begin: `  var ${operand}_deep = first_step * ${tileDepth}u;`,
    step: "",
    advance: `      ${operand}_deep += ${tileDepth}u;`,
    place: (slot, place) =>
      `  let ${operand}_base${slot} = group * ${groupVectors} + ${
        vector === 1 ? place : `${place} / ${vector}u`
      };`,
    depth: (slot, row) =>
      `      let ${operand}_far${slot} = (${operand}_deep + ${row}) * ${rowVectors};`,
    placeStep: () => "",
    load: (place, depth, target) =>
      `      ${target} = ${load(`${operand}_base${place} + ${operand}_far${depth}`)};`,
  };
}
