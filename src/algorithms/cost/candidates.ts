import type { Candidate } from "../rival.ts";
import { amplification2d } from "../../winograd/amplification.ts";
import { formatTile, type WinogradTile } from "../../winograd/tile.ts";
import type { PlanRequest } from "../request.ts";
import type { AlgorithmName } from "../names.ts";
import { windowGeometry, windowReason } from "../im2win/geometry.ts";
import { reduceAxes } from "../winrs/axes.ts";
import { admissible, DIRECT } from "../winrs/omega.ts";
import { winrsReason } from "../winrs/plan.ts";
import { unsupportedReason } from "../winograd_fused/geometry.ts";
import { defaultTile, nonfusedReason, plannedTile } from "../winograd_nonfused/tiles.ts";
import { inaccuracy } from "./accuracy.ts";
import { fusedAmplification } from "./fused.ts";
import { enlarged, pairAmplification, pairText, pairWithin } from "./winrs.ts";

/** Steps of non-fused tiles, where α ≤ 8 allows: F(2x2,3x3), F(4x4,3x3), F(6x6,3x3) and what is like them. */
const STEPS = [2, 4, 6];
/** Steps of backward-filter's tiles: a step is what the transform takes for its filter. */
const FILTER_STEPS = [2, 4];
/** α of fused tiles along one axis. */
const ALPHAS = [4, 6, 8];
/** Largest α of the tiles above. */
const ALPHA = 8;

/** Every algorithm that `auto` weighs for a request, those that it may not take with the reason. */
export function candidatesOf(request: PlanRequest, allowed: number): Candidate[] {
  const named = request.tile !== undefined;
  return [
    ...(named ? [] : [{ algorithm: "implicit-gemm", amplification: 1 } as const]),
    ...(named ? [] : windowCandidates(request)),
    ...nonfusedCandidates(request),
    ...fusedCandidates(request, 2),
    ...fusedCandidates(request, 1),
    ...(named ? [] : winrsCandidates(request, allowed)),
  ].map((candidate) =>
    candidate.reason === undefined && candidate.amplification > allowed
      ? {
        ...candidate,
        reason: `it ${inaccuracy(request, candidate.amplification, allowed)}`,
      }
      : candidate
  );
}

/** Where four images are a vector: single ones are gathered as implicit GEMM does. */
function windowCandidates(request: PlanRequest): Candidate[] {
  const candidate = { algorithm: "im2win-fused", amplification: 1 } as const;
  const reason = windowReason(request) ??
    (windowGeometry(request).interleave === 4 ? undefined : "it would take single images");
  return [reason === undefined ? candidate : { ...candidate, reason }];
}

function nonfusedCandidates(request: PlanRequest): Candidate[] {
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

/** Tiles that multiply less than the direct algorithm: the default, and those of even steps. */
function nonfusedTiles({ problem }: PlanRequest): string[] {
  const { op, filterSize } = problem;
  const backward = op === "bwd-filter";
  const stepped = (backward ? FILTER_STEPS : STEPS).map((step): WinogradTile => {
    const steps = filterSize.map((size) =>
      size === 1 ? 1 : Math.max(2, Math.min(step, ALPHA + 1 - size))
    );
    return backward ? { n: [...filterSize], r: steps } : { n: steps, r: [...filterSize] };
  });
  const longest = Math.max(...filterSize);
  const tiles = [defaultTile(problem), ...(longest > ALPHA + 1 ? [] : stepped)];
  return [...new Set(tiles.filter(saves).map(formatTile))];
}

/** Whether a tile has fewer products than the direct algorithm. */
function saves({ n, r }: WinogradTile): boolean {
  return n.some((size, axis) => size > 1 && r[axis]! > 1);
}

function pointless(algorithm: AlgorithmName): Candidate {
  return { algorithm, amplification: 1, reason: "no tile of it saves multiplications here" };
}

function fusedCandidates(request: PlanRequest, axes: 1 | 2): Candidate[] {
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

function winrsCandidates(request: PlanRequest, allowed: number): Candidate[] {
  const algorithm = "winrs";
  const reason = winrsReason(request);
  if (reason !== undefined) return [{ algorithm, amplification: 1, reason }];
  const { problem } = request;
  const { widthAxis, filterWidth } = reduceAxes(problem);
  const strided = problem.stride[widthAxis] !== 1 || problem.dilation[widthAxis] !== 1;
  const kernels = admissible(filterWidth);
  if (strided || kernels.length === 1) return [pointless(algorithm)];
  const most = Math.max(...kernels.map(enlarged));
  if (most <= allowed) return [{ algorithm, amplification: most }];
  const pair = pairWithin(request, allowed);
  if (pair.first === DIRECT) {
    return [{ algorithm, amplification: pairAmplification(pairWithin(request, Infinity)) }];
  }
  return [{ algorithm, pair: pairText(pair), amplification: pairAmplification(pair) }];
}
