import { unitShape } from "../kernels/matrix_units.ts";
import { policyTile, type TilePolicy } from "../kernels/policy.ts";
import type { Cut, CutRequest } from "./cut.ts";

/** How the note of a plan begins that has fewer splits than were asked for. */
export const FEWER_SPLITS = "fewer splits than asked for";

/** What a plan says of stream-K that it was cut by at first. */
export const UNBOUND_NOTE =
  "no stream-K: its kernel would have more storage buffers than the device's maxStorageBuffersPerShaderStage";

/**
 * How a product is cut, for a plan's notes, and whether that is less than was asked for.
 *
 * @param tiles Of the whole product.
 */
export function cutNotes(
  cut: Cut,
  tiles: number,
  { schedule: { splits: asked = 1 } = {} }: CutRequest,
): string[] {
  const { splits, unbound } = cut;
  return [
    cutNote(cut, tiles),
    ...(unbound ? [UNBOUND_NOTE] : []),
    ...(splits >= asked || unbound ? [] : [
      `${FEWER_SPLITS}: ${splits} of ${asked}, the depth has no more or the workspace no room`,
    ]),
  ];
}

function cutNote({ policy, splits, head }: Cut, tiles: number): string {
  const workgroups = head === undefined ? tiles * splits : head + (tiles - head) * splits;
  const how = head !== undefined
    ? `stream-K: ${head} tiles whole, the depth of ${tiles - head} split in ${splits}`
    : splits === 1
    ? "no split of the depth"
    : `the depth split in ${splits}`;
  return `policy ${policy.name}: ${workgroups} workgroups of ${policyTile(policy)}, ${how}${
    unitNote(policy)
  }`;
}

/** Which matrix units a policy runs on. */
function unitNote({ matrix }: TilePolicy): string {
  if (matrix === undefined) return "";
  const { unit, lanes } = matrix;
  return `; on matrix units of ${unitShape(unit)}, ${unit.component} to ${unit.result}, ` +
    `in subgroups of ${lanes}`;
}
