import { mainLoopWorkgroups } from "../../kernels/main_loop.ts";
import { cutNotes } from "../cut_note.ts";
import type { PlanRequest } from "../request.ts";
import type { WinogradGeometry } from "./geometry.ts";
import { SPLIT_NOTE } from "./split.ts";
import type { PlannedTile } from "./tiles.ts";
import type { ChunkLayout } from "./workspace.ts";

/** Why this plan, for `wgconv plan`. */
export function notesOf(
  request: PlanRequest,
  tile: PlannedTile,
  geometry: WinogradGeometry,
  chunk: ChunkLayout,
  chunks: number,
): string[] {
  const { problem } = request;
  const tiled = geometry.operands.find(({ role }) => role !== "filter")!.tensor(problem.batch);
  const [outer, inner] = tiled.axes;
  const spots = problem.op === "bwd-data" ? problem.inputSize : problem.outputSize;
  const covered = outer.tiles * outer.step * inner.tiles * inner.step;
  const needed = spots.reduce((product, size) => product * size, 1);
  const tiles = problem.batch * outer.tiles * inner.tiles;
  const waste = covered === 0 ? 0 : Math.round(100 * (1 - needed / covered));
  const direct = tile.transforms[0].n * tile.transforms[1].n * tile.transforms[0].r *
    tile.transforms[1].r;
  return [
    `tile ${tile.text}: ${tiles} tiles of ${outer.step} x ${inner.step}, ${waste} % of them beyond the edge; ` +
    `${tile.products} products in place of ${direct}`,
    `${chunk.batches} products of ${chunk.rows} x ${chunk.columns} x ${chunk.depth} in ` +
    (chunks === 1 ? "one chunk of the batch" : `${chunks} chunks of ${chunk.images} images`),
    ...(tile.stored === "halves" ? [SPLIT_NOTE] : []),
    ...cutNotes(chunk.cut, mainLoopWorkgroups({ ...chunk, splits: 1 }, chunk.cut.policy), request),
  ];
}
