import type { ModuleBuilder, TensorAccess } from "../module.ts";
import { bankedIndex, type TileLoader } from "../loader.ts";

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
    readonly vector?: TileLoader["vector"];
    readonly inPanels?: boolean;
  },
): TileLoader {
  const rowVectors = module.size(`${operand}_row_vectors`, places / vector);
  const units = (index: string) => vector === 1 ? index : `${index} / ${vector}u`;
  const groupVectors = module.size(`${operand}_group_vectors`, (places / vector) * depth);
  return {
    vector,
    value: packed.value,
    along: inPanels ? "depth" : "place",
    begin: `  var ${operand}_deep = first_step * ${tileDepth}u;`,
    step: "",
    advance: `      ${operand}_deep += ${tileDepth}u;`,
    place: (slot, place) =>
      `  let ${operand}_base${slot} = group * ${groupVectors} + ${
        inPanels ? `(${bankedIndex(place, tileDepth / 4)}) * ${tileDepth / vector}u` : units(place)
      };`,
    depth: (slot, row) =>
      `      let ${operand}_far${slot} = ${
        inPanels
          ? `${operand}_deep * ${rowVectors} + ${units(row)}`
          : `(${operand}_deep + ${row}) * ${rowVectors}`
      };`,
    placeStep: () => "",
    load: (place, depth, target) =>
      `      ${target} = ${packed.load(`${operand}_base${place} + ${operand}_far${depth}`)};`,
  };
}
