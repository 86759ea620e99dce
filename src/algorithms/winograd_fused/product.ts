import {
  paddedChannels,
  tapCount,
  tileCount,
  type TiledAxis,
} from "../../kernels/slices/geometry.ts";
import { elementCount } from "../../tensor/tensor.ts";
import type { SlicePolicy } from "../../kernels/slices/policy.ts";
import type { PlanRequest } from "../request.ts";
import { runTile, sliceGeometry, storesParts, type TileRun } from "./geometry.ts";

/**
 * Longer sums are added up in chains: up to here one accumulator has a MARE near 4e-7, of large tiles
 * half.
 */
const LONGEST_SUM = 768;
/** Slices of a large tile, above those of F(4x4,3x3). */
const LARGE_SLICES = 37;
/** Most products of a chain where the user does not say. */
const LONGEST_CHAIN = 512;

/** The product of a kernel of fused Winograd, of which policies and prices depend. */
export interface SlicedProduct {
  /** "F(2x2,3x3)", its axes, slices and results. */
  readonly tile: string;
  readonly axes: number;
  readonly slices: number;
  readonly results: number;
  /** Whether each tile's results of a row lie in whole fours of the row's. */
  readonly aligned: boolean;
  /** Target channels of a group, and tiles of all images. */
  readonly targets: number;
  readonly tiles: number;
  readonly groups: number;
  /** Source channels of a group, and taps that are no part of the tile. */
  readonly channels: number;
  readonly taps: number;
  /** Workgroups that share the depth of a tile. */
  readonly splits: number;
  /** Whether a sum is one chain, or chains of it are added up in the stored result. */
  readonly chains: "whole" | "stored";
}

/** The product of a cut's kernel, whose depth so many workgroups share. */
export function slicedProduct(
  request: PlanRequest,
  runs: readonly TileRun[],
  splits: number,
): SlicedProduct {
  const geometry = sliceGeometry(request, runs);
  const { targets, channels } = geometry;
  const slices = elementCount(runs.map(({ n, r }) => n + r - 1));
  const taps = tapCount(geometry);
  return {
    tile: runTile(runs),
    axes: runs.length,
    slices,
    results: elementCount(runs.map(({ n }) => n)),
    aligned: isAligned(geometry.tiled.at(-1)!),
    targets,
    tiles: tileCount(geometry),
    groups: request.problem.groups,
    channels,
    taps,
    splits,
    chains: chainCount(request, slices, Math.ceil(taps * channels / splits)) === 1
      ? "whole"
      : "stored",
  };
}

function isAligned({ n, places }: TiledAxis): boolean {
  return n % 4 === 0 && places % 4 === 0;
}

/** Chains of a sum of `length` products. */
function chainCount(request: PlanRequest, slices: number, length: number): number {
  const { flush } = request;
  if (!storesParts(request)) return 1;
  if (flush !== undefined) return flush === 0 ? 1 : Math.max(1, Math.ceil(length / flush));
  const most = slices < LARGE_SLICES ? LONGEST_SUM : LONGEST_SUM / 2;
  return length > most ? Math.ceil(length / Math.min(most, LONGEST_CHAIN)) : 1;
}

/** Whether a product's sums of a whole depth are one chain. */
export function isWholeDepth(
  request: PlanRequest,
  { slices, taps, channels }: SlicedProduct,
): boolean {
  return chainCount(request, slices, taps * channels) === 1;
}

/** Steps of a whole depth with tiles so deep. */
export function depthSteps(
  { taps, channels }: Pick<SlicedProduct, "taps" | "channels">,
  depth: number,
): number {
  return taps * paddedChannels(channels, depth) / depth;
}

/** How a product's steps are added up. */
export interface ChainSteps {
  readonly steps: number;
  /** Of the longest split. */
  readonly longest: number;
  readonly chain: number;
  readonly chains: SlicedProduct["chains"];
}

/**
 * Steps of a product with tiles so deep, those of the longest split, and of each of a split's chains: of equal length, where the
 * user does not say how long. Padding of the depth may leave a chain of all steps.
 */
export function chainSteps(
  request: PlanRequest,
  { slices, taps, channels, chains, splits }: SlicedProduct,
  depth: number,
): ChainSteps {
  const steps = depthSteps({ taps, channels }, depth);
  const longest = Math.ceil(steps / splits);
  const { flush } = request;
  const chain = flush === undefined
    ? Math.ceil(longest / chainCount(request, slices, Math.ceil(taps * channels / splits)))
    : Math.ceil(flush / depth);
  return chains === "whole" || chain >= longest
    ? { steps, longest, chain: longest, chains: "whole" }
    : { steps, longest, chain, chains };
}

/** Slices of patches of which four leave a thread registers enough to be faster than one. */
const WIDE_SLICES = 6;

/** Whether images lie innermost in whole vectors. */
export function imageVectors(
  { layout, problem }: Pick<PlanRequest, "layout" | "problem">,
): boolean {
  return layout === "chwn" && problem.batch % 4 === 0;
}

/** Patches that a thread loads at once: those of four images where these lie innermost, but for few channels, which are few patches. */
export function loadVector(
  request: Pick<PlanRequest, "layout" | "problem">,
  slices: number,
  { allSlices }: SlicePolicy,
): 1 | 4 {
  return imageVectors(request) && slices <= WIDE_SLICES && !allSlices ? 4 : 1;
}
