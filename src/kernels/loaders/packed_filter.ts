import type { ModuleBuilder, TensorAccess } from "../module.ts";
import type { TileLoader } from "../loader.ts";

/**
 * Loads the packed filter, [group][depth][rows] with both padded to the tile: aligned vectors, no masks.
 *
 * @param rows Padded rows of a group.
 * @param depth Padded depth of a group.
 */
export function packedFilterLoader(
  module: ModuleBuilder,
  filter: TensorAccess,
  { rows, depth, tileDepth }: { rows: number; depth: number; tileDepth: number },
): TileLoader {
  const rowVectors = module.size("packed_row_vectors", rows / 4);
  const groupVectors = module.size("packed_group_vectors", (rows / 4) * depth);
  return {
    vector: 4,
    along: "place",
    begin: `  var a_row = first_step * ${tileDepth}u;`,
    step: "",
    advance: `      a_row += ${tileDepth}u;`,
    place: (slot, place) => `  let a_base${slot} = group * ${groupVectors} + ${place} / 4u;`,
    depth: (slot, row) => `      let a_offset${slot} = (a_row + ${row}) * ${rowVectors};`,
    placeStep: () => "",
    load: (place, depth, target) =>
      `      ${target} = ${filter.load(`a_base${place} + a_offset${depth}`)};`,
  };
}
