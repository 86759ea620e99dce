import { filterDepth } from "../../kernels/slices/filter_transform.ts";
import { partElements, type SplitBlocks } from "../../kernels/slices/loop.ts";
import type { SlicePolicy } from "../../kernels/slices/policy.ts";
import { amplification, amplification2d } from "../../winograd/amplification.ts";
import { formatTile, parseTile } from "../../winograd/tile.ts";
import { winogradTransform } from "../../winograd/transform.ts";
import { pointless, slowToCompile } from "../algorithm.ts";
import { deviceOf } from "../device/h200.ts";
import { copyTime } from "../device/model.ts";
import type { Candidate } from "../plan.ts";
import { isRefusal, type Planned, refusal } from "../refusal.ts";
import { isSoftware, type PlanRequest } from "../request.ts";
import { partialBytes } from "../tensors.ts";
import {
  chainSteps,
  filterShape,
  type SlicedProduct,
  slicedProduct,
  type TileRun,
  type TileRuns,
  tileRuns,
  unsupportedReason,
} from "./geometry.ts";
import { choosePolicy, loopTime, splitBlocks } from "./policies.ts";

/** A kernel's product, its policy, and its split blocks. */
export interface RunCut {
  readonly runs: readonly TileRun[];
  readonly product: SlicedProduct;
  readonly policy: SlicePolicy;
  readonly split: SplitBlocks | undefined;
  /** Elements of the partial results of these; 0 where there are none. */
  readonly parts: number;
}

/** How the kernel of `runs` is cut with so many splits. Refused if no policy fits the device. */
export function cutRun(
  request: PlanRequest,
  runs: readonly TileRun[],
  splits: number,
): Planned<RunCut> {
  const product = slicedProduct(request, runs, splits);
  const policy = choosePolicy(request, product);
  if (isRefusal(policy)) return policy;
  const split = splitBlocks(request, product, policy);
  const parts = split === undefined ? 0 : partElements({ split, results: product.results }, policy);
  return { runs, product, policy, split, parts };
}

/** Batch for which tiles are chosen, so that all chunks of a batch have the same. */
const IMAGES = 64;
/** Most splits unless the user asks for more. */
const MOST_SPLITS = 16;
/** Share of the time that another split must save, because each stores results of its own. */
const WORTH_MORE_SPLITS = 0.015;
/** Share of the time that a second kernel must save: batches smaller than {@linkcode IMAGES} pay more for it. */
const WORTH_A_KERNEL = 0.016;

function fusedRuns(request: PlanRequest, axes: 1 | 2): TileRuns {
  const { problem, tile } = request;
  const usual = { ...request, problem: { ...problem, batch: IMAGES } };
  const places = problem.op === "fwd" ? problem.outputSize : problem.inputSize;
  const ways = tileRuns(
    places.slice(-axes),
    problem.filterSize.slice(-axes),
    tile === undefined ? undefined : parseTile(tile),
  );
  const { maxWorkspaceBytes = Infinity } = request;
  let best = ways[0]!, least = Infinity;
  for (const runs of ways.length === 1 ? [] : ways) {
    const { cost } = chooseSplits(usual, runs);
    if (isRefusal(cost) || cost.bytes > maxWorkspaceBytes) continue;
    const time = cost.time * (1 + (runs.length - 1) * WORTH_A_KERNEL);
    if (time < least) [best, least] = [runs, time];
  }
  return best;
}

export function runsAmplification(kernels: TileRuns): number {
  return Math.max(...kernels.map((runs) => {
    const [rows, columns] = runs.map(({ n, r }) => winogradTransform(n, r));
    return columns === undefined ? amplification(rows!) : amplification2d(rows!, columns);
  }));
}

/** The kernels that are predicted to be fastest for a usual batch, and what they take. */
export interface FusedGeometry extends RunsCost {
  readonly request: PlanRequest;
  readonly axes: 1 | 2;
  /** Workgroups that share the depth of each of their tiles. */
  readonly splits: number;
}

/** Refused if the tile asked for has other axes, or no policy fits the device. */
export function fusedGeometry(request: PlanRequest, axes: 1 | 2): Planned<FusedGeometry> {
  const tile = request.tile === undefined ? undefined : parseTile(request.tile);
  if (tile !== undefined && tile.n.length !== axes) {
    const given = tile.n.length === 1 ? "1 axis" : `${tile.n.length} axes`;
    const text = `tile ${formatTile(tile)} has ${given}, winograd${axes}d tiles ${axes}`;
    return refusal("problem", text);
  }
  const { splits, cost } = chooseSplits(request, fusedRuns(request, axes));
  return isRefusal(cost) ? cost : { request, axes, splits, ...cost };
}

/** What kernels take. */
interface RunsCost {
  readonly cuts: readonly RunCut[];
  /**
   * Microseconds: for each kernel a transform of the filter, then waves of workgroups, each of which multiplies and then stores its
   * results; then the sums of a depth that is split.
   */
  readonly time: number;
  /** Bytes of workspace, those of partial results among them, and most products that one accumulator adds up. */
  readonly bytes: number;
  readonly parts: number;
  readonly longest: number;
}

interface SplitRuns {
  readonly splits: number;
  readonly cost: Planned<RunsCost>;
}

/**
 * The fewest splits that are hardly slower than the fastest, with sums no longer than those of full blocks; or the user's, as far as
 * workspace and depth allow. Two axes have enough tiles without splits.
 */
function chooseSplits(request: PlanRequest, runs: TileRuns): SplitRuns {
  const whole: SplitRuns = { splits: 1, cost: runsCost(request, runs, 1) };
  const depth = Math.min(...runs.map((run) => {
    const { taps, channels } = slicedProduct(request, run, 1);
    return taps * channels;
  }));
  // With splits a wider tile may be best, whose filter is padded to more places.
  if (request.schedule?.splits !== undefined || isRefusal(whole.cost)) {
    let splits = Math.min(depth, request.schedule?.splits ?? MOST_SPLITS);
    while (splits > 1) {
      const cost = runsCost(request, runs, splits);
      const room = isRefusal(cost) ? Infinity : partsRoom(request, cost);
      if (isRefusal(cost) || cost.parts <= room) return { splits, cost };
      splits = Math.min(splits - 1, Math.floor(splits * room / cost.parts));
    }
    return whole;
  }
  let best = whole;
  const most = isSoftware(request) || runs[0]!.length > 1 ? 1 : Math.min(depth, MOST_SPLITS);
  for (let splits = 2; splits <= most; splits++) {
    const cost = runsCost(request, runs, splits);
    if (isRefusal(cost) || isRefusal(best.cost)) continue;
    if (cost.longest > whole.cost.longest || cost.parts > partsRoom(request, cost)) continue;
    if (cost.time < (1 - WORTH_MORE_SPLITS) * best.cost.time) best = { splits, cost };
  }
  return best;
}

function partsRoom(
  { limits, maxWorkspaceBytes = Infinity }: PlanRequest,
  { bytes, parts }: RunsCost,
): number {
  return Math.min(
    limits.maxBufferSize,
    limits.maxStorageBufferBindingSize,
    Math.max(0, maxWorkspaceBytes - (bytes - parts)),
  );
}

function runsCost(request: PlanRequest, kernels: TileRuns, splits: number): Planned<RunsCost> {
  const device = deviceOf(request);
  const { stream, filterStream } = device.rates;
  const each = partialBytes(request);
  const cuts: RunCut[] = [];
  let time = 0, filters = 0, parts = 0, longest = 0;
  for (const runs of kernels) {
    const cut = cutRun(request, runs, splits);
    if (isRefusal(cut)) return cut;
    cuts.push(cut);
    const { product, policy } = cut;
    const extent = request.layout === "nhwc" ? policy.columns : policy.rows;
    const shape = filterShape(request, runs, extent, policy.depth);
    const filter = each * shape.groups * product.slices * filterDepth(shape) * shape.paddedPlaces;
    const stored = each * cut.parts;
    const summed = stored === 0
      ? 0
      : copyTime((product.splits + 1) / product.splits * stored, stream, device);
    time += copyTime(2 * filter, filterStream, device) + summed +
      loopTime(request, product, policy) + device.times.dispatch;
    filters += filter;
    // Kernels store their parts to one buffer, one after the other.
    parts = Math.max(parts, stored);
    longest = Math.max(longest, chainSteps(request, product, policy.depth).chain * policy.depth);
  }
  return { cuts, time, bytes: filters + parts, parts, longest };
}

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
      ? [{
        algorithm,
        tile: request.tile,
        amplification: runsAmplification(fusedRuns(request, axes)),
      }]
      : [{ algorithm, amplification: 1, reason: `tile ${request.tile} has not ${axes} axes` }];
  }
  const { slowCompiler, software } = deviceOf(request);
  if (slowCompiler && (axes === 1 || !software)) return [slowToCompile(algorithm)];
  const taps = filter[0]!;
  const tiles = axes === 1 && taps < ALPHA
    ? ALPHAS.filter((alpha) => alpha > taps).map((alpha) => `F(${alpha + 1 - taps},${taps})`)
    : [undefined];
  return tiles.map((tile) => {
    const said = tile === undefined ? {} : { tile };
    const runs = fusedRuns({ ...request, ...said }, axes);
    return { algorithm, ...said, amplification: runsAmplification(runs) };
  });
}
