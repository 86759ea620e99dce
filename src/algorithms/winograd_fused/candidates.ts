import { isSoftware, type PlanRequest } from "../request.ts";
import { type Candidate, pointless, slowToCompile } from "../rival.ts";
import { unsupportedReason } from "./geometry.ts";
import { fusedAmplification } from "./price.ts";

/** α of tiles along one axis. */
const ALPHAS = [4, 6, 8];
/** The largest of them. */
const ALPHA = 8;

/** Fused Winograd as `auto` weighs it: a candidate a tile. */
export function fusedCandidates(request: PlanRequest, axes: 1 | 2): Candidate[] {
  const algorithm = axes === 1 ? "winograd1d" : "winograd2d";
  const reason = unsupportedReason(request, axes);
  if (reason !== undefined) return [{ algorithm, amplification: 1, reason }];
  const filter = request.problem.filterSize.slice(-axes);
  if (filter.every((size) => size === 1)) return [pointless(algorithm)];
  if (request.tile !== undefined) {
    const given = /x/.test(request.tile.split(",")[0]!) ? 2 : 1;
    return given === axes
      ? [{ algorithm, tile: request.tile, amplification: fusedAmplification(request, axes) }]
      : [{ algorithm, amplification: 1, reason: `tile ${request.tile} has not ${axes} axes` }];
  }
  if (isSoftware(request) && axes === 1) return [slowToCompile(algorithm)];
  const taps = filter[0]!;
  const tiles = axes === 1 && taps < ALPHA
    ? ALPHAS.filter((alpha) => alpha > taps).map((alpha) => `F(${alpha + 1 - taps},${taps})`)
    : [undefined];
  return tiles.map((tile) => {
    const said = tile === undefined ? {} : { tile };
    return {
      algorithm,
      ...said,
      amplification: fusedAmplification({ ...request, ...said }, axes),
    };
  });
}
