import type { DeviceModel } from "../device/model.ts";
import type { ConvProblem } from "../../problem/conv_problem.ts";
import { type Omega, slicesOf, tileElements } from "./omega.ts";
import type { KernelPair } from "./pair.ts";

/** What a workgroup computes: `outChannels` (B_N) x `inChannels` (B_M) tiles of n filter columns. */
export interface CacheBlock {
  readonly outChannels: number;
  readonly inChannels: number;
  /** Workgroups that fit one multiprocessor; 1 where absent. */
  readonly perMultiprocessor?: number;
}

/** What Algorithm 1 leaves open: of the device and of taste. */
export interface SegmentParameters {
  /** Workgroups that run at one time on the whole device, where one fills a multiprocessor. */
  readonly workgroupsInFlight: number;
  /** b̂2 in rounds of workgroups in flight: one segment is enough from so many blocks on. */
  readonly enoughRounds: number;
  /** Rounds of workgroups in flight wanted per unit of computation intensity, flops an element. */
  readonly roundsPerIntensity: number;
  readonly minRounds: number;
  readonly maxRounds: number;
  /** Z_max: workspace as a multiple of the elements of X, ∇Y and ∇W. */
  readonly workspaceShare: number;
  /** Z2: time of writing and reading buckets as a share of the kernels' time. */
  readonly reductionShare: number;
  /** Memory traffic of the device, in TB/s. */
  readonly bandwidth: number;
  /** What WinRS reaches on the device, in direct TFLOP/s. */
  readonly rate: number;
  /** How much longer than the mean the slowest workgroup takes, as a share. */
  readonly unevenness: number;
  /** What a further kernel costs, in ms. */
  readonly launch: number;
  /** Accumulations a segment has at least. */
  readonly minAccumulations: number;
}

/** The parameters for a device. */
export function segmentParameters(
  { multiprocessors, rates, times, shares }: DeviceModel,
): SegmentParameters {
  return {
    workgroupsInFlight: multiprocessors,
    enoughRounds: 4,
    roundsPerIntensity: 0.6,
    minRounds: 3,
    maxRounds: 6,
    workspaceShare: 0.5,
    reductionShare: 0.05,
    bandwidth: rates.winrsBuckets,
    rate: rates.winrsOverall,
    unevenness: shares.winrsUneven,
    launch: times.winrsKernel / 1e3,
    minAccumulations: 512,
  };
}

/** The largest cache block of the paper for f32. */
export function paperBlock({ alpha }: Omega): CacheBlock {
  if (alpha === 2) return { outChannels: 128, inChannels: 128, perMultiprocessor: 2 };
  if (alpha === 4) return { outChannels: 64, inChannels: 64, perMultiprocessor: 2 };
  return { outChannels: 64, inChannels: 32, perMultiprocessor: alpha === 8 ? 2 : 1 };
}

/**
 * Workgroups of one segment: filter elements / n · ceil(O_C / B_N) · ceil(I_C / B_M), for each group.
 *
 * @throws {RangeError} if what a tile yields does not divide the filter's elements.
 */
export function blockCount(
  problem: Pick<ConvProblem, "filterSize" | "inChannels" | "outChannels" | "groups">,
  omega: Omega,
  block: CacheBlock,
): number {
  const taps = product(problem.filterSize);
  const { filter } = tileElements(omega);
  if (taps % filter !== 0) {
    throw new RangeError(
      `Cannot count blocks: a filter of ${
        problem.filterSize.join("x")
      } is not made of ${filter} elements at once`,
    );
  }
  return taps / filter * problem.groups *
    Math.ceil(problem.outChannels / problem.groups / block.outChannels) *
    Math.ceil(problem.inChannels / problem.groups / block.inChannels);
}

/** ρ of F(n, r) at a cache block: flops of the batched product for each element loaded. */
export function intensity(omega: Omega, block: CacheBlock): number {
  const [bn, bm] = [block.outChannels, block.inChannels];
  return 2 * bn * bm / (bn * tileElements(omega).gradient + bm * slicesOf(omega));
}

/** Workgroups of a cache block that run at one time on the whole device. */
export function workgroupsInFlight(block: CacheBlock, parameters: SegmentParameters): number {
  return parameters.workgroupsInFlight * (block.perMultiprocessor ?? 1);
}

/** Elements of ∇W. */
export function filterElements(
  { filterSize, inChannels, outChannels, groups }: ConvProblem,
): number {
  return product(filterSize) * inChannels / groups * outChannels;
}

/** Elements of X, ∇Y and ∇W together. */
export function dataElements(problem: ConvProblem): number {
  const { batch, inChannels, outChannels, inputSize, outputSize } = problem;
  return filterElements(problem) +
    batch * (product(inputSize) * inChannels + product(outputSize) * outChannels);
}

/** Z_max as memory allows it: the most segments whose buckets stay within the share of the data. */
export function mostSegments(problem: ConvProblem, parameters: SegmentParameters): number {
  const { workspaceShare } = parameters;
  // Buckets of an empty ∇W have no elements.
  const bucket = Math.max(1, filterElements(problem));
  return 1 + Math.floor(workspaceShare * dataElements(problem) / bucket);
}

/** Algorithm 1: the baseline segment count Ẑ of the first kernel, a whole number from 1. */
export function baselineSegments(
  problem: ConvProblem,
  pair: KernelPair,
  block: CacheBlock,
  parameters: SegmentParameters,
): number {
  const inFlight = workgroupsInFlight(block, parameters);
  const { batch } = problem;
  const [inputs, outputs] = [product(problem.inputSize), product(problem.outputSize)];
  const area = block.outChannels * block.inChannels;
  const { filter } = tileElements(pair.first);
  const b0 = batch * outputs * problem.outChannels / filter / area;
  const b1 = batch * inputs * problem.inChannels / filter / area;
  const b2 = blockCount(problem, pair.first, block);
  // Without channels there are no blocks.
  const start = (b0 + b1) / (1.45 * Math.max(1, b2));
  if (start < 2 && b2 >= parameters.enoughRounds * inFlight) return 1;

  const most = Math.min(inFlight, mostSegments(problem, parameters));

  const rounds = Math.min(
    parameters.maxRounds,
    Math.max(parameters.minRounds, parameters.roundsPerIntensity * intensity(pair.first, block)),
  );
  const z1 = rounds * inFlight / b2;
  // An element of a bucket is written and read, 8 bytes; one of ∇W takes 2·N·O_H·O_W flops.
  const buckets = 2 * batch * outputs / parameters.rate * parameters.bandwidth / 8;
  const z2 = 1 + parameters.reductionShare * buckets;
  const wanted = Math.max(
    1,
    Math.min(start, z1, z2, batch * outputs / parameters.minAccumulations),
  );
  const padded = Math.min(2 ** Math.ceil(Math.log2(wanted)), 8);
  return Math.max(1, Math.min(padded * Math.ceil(wanted / padded), most));
}

function product(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total * size, 1);
}
