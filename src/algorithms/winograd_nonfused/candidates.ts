import { amplification2d } from "../../winograd/amplification.ts";
import { formatTile, type WinogradTile } from "../../winograd/tile.ts";
import { isSoftware, type PlanRequest } from "../request.ts";
import { type Candidate, pointless } from "../rival.ts";
import { defaultTile, nonfusedReason, plannedTile } from "./tiles.ts";

/**
 * Steps of tiles, 2 or what α allows: F(2x2,3x3), F(4x4,3x3), F(5x5,3x3), which 14 places waste the least of, F(6x6,3x3) and what is like
 * them. Of backward-filter's a step is what the transform takes for its filter. F(3x3,8x8) errs 1.6 times as much as F(3x3,7x7), and is
 * more than 5 % faster on two of 25 layers.
 */
const STEPS = [2, 4, 5, 6, 7];
/** Largest α of the tiles above: F(7x7,3x3) and others of 9 enlarge errors more than is allowed unasked, but a filter's gradient. */
const ALPHA = { data: 8, filter: 9 };
/** Longest filters that have others than the default. */
const LONGEST = 9;

/** Non-fused Winograd as `auto` weighs it: a candidate a tile. */
export function nonfusedCandidates(request: PlanRequest): Candidate[] {
  const algorithm = "winograd2d-nonfused";
  const reason = nonfusedReason(request);
  if (reason !== undefined) return [{ algorithm, amplification: 1, reason }];
  const tiles = request.tile === undefined ? nonfusedTiles(request) : [request.tile];
  if (tiles.length === 0) return [pointless(algorithm)];
  return tiles.map((tile) => ({
    algorithm,
    tile,
    amplification: amplification2d(...plannedTile({ ...request, tile }).transforms),
  }));
}

/** Tiles that multiply less than the direct algorithm: the default, and those of other steps, which no CPU's figures tell apart. */
function nonfusedTiles(request: PlanRequest): string[] {
  const { problem } = request;
  const { op, filterSize } = problem;
  const backward = op === "bwd-filter";
  const most = ALPHA[backward ? "filter" : "data"];
  const stepped = STEPS.map((step): WinogradTile => {
    const steps = filterSize.map((size) =>
      size === 1 ? 1 : Math.max(2, Math.min(step, most + 1 - size))
    );
    return backward ? { n: [...filterSize], r: steps } : { n: steps, r: [...filterSize] };
  });
  const longest = Math.max(...filterSize);
  const others = longest > LONGEST || isSoftware(request) ? [] : stepped;
  const tiles = [defaultTile(problem), ...others];
  // Of halves every product saves something, but sums of which a tile has one alone are doubtful where they cancel.
  const whole = request.math === "f16x3";
  return [...new Set(tiles.filter((tile) => whole || saves(tile)).map(formatTile))];
}

/** Whether a tile has fewer products than the direct algorithm. */
function saves({ n, r }: WinogradTile): boolean {
  return n.some((size, axis) => size > 1 && r[axis]! > 1);
}
