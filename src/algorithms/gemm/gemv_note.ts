import { gemvLoads, type GemvShape, gemvTile, gemvWorkgroups } from "../../kernels/gemv/shape.ts";
import { FEWER_SPLITS } from "../cut_note.ts";

/** How a matrix times vectors is dealt to threads, for a plan's notes, and whether its depth has fewer splits than were asked for. */
export function gemvNotes(
  shape: GemvShape,
  { splits: asked = 1 }: { readonly splits?: number },
): string[] {
  const { side, vectors, matrix, splits, threads } = shape;
  const { lanes, groups } = threads;
  const { width } = gemvLoads(shape);
  const places = gemvTile(threads) * width;
  const several = vectors > 1 ? "s" : "";
  const [vector, place] = side === "rows" ? ["row", "column"] : ["column", "row"];
  return [
    `policy gemv: ${vectors} ${vector}${several} times a matrix that lies ${
      matrix === "depth" ? "along" : "across"
    } the depth, ${gemvWorkgroups(shape)} workgroups of ${
      lanes * groups
    } threads and ${places} ${place}${places > 1 ? "s" : ""}, ${lanes} threads each; ${
      splits === 1 ? "no split of the depth" : `the depth split in ${splits}`
    }`,
    ...(splits >= asked ? [] : [
      `${FEWER_SPLITS}: ${splits} of ${asked}, the depth has no more or the workspace no room`,
    ]),
  ];
}
