import type { ConvProblem } from "../../problem/conv_problem.ts";
import type { Omega } from "./omega.ts";
import type { KernelPair } from "./pair.ts";

/** What a workgroup computes: `outChannels` (B_N) x `inChannels` (B_M) tiles of n filter columns. */
export interface CacheBlock {
  readonly outChannels: number;
  readonly inChannels: number;
}

/** What Algorithm 1 leaves open: of the device and of taste. Defaults are for an H200. */
export interface SegmentParameters {
  /** Workgroups that run at one time on the whole device. */
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
  /** Bytes of memory traffic that the device moves in the time of one direct flop. */
  readonly bytesPerFlop: number;
  /** Accumulations a segment has at least. */
  readonly minAccumulations: number;
}

/** For an H200: 132 multiprocessors, one workgroup of 512 threads on each. */
export const DEFAULT_SEGMENT_PARAMETERS: SegmentParameters = {
  workgroupsInFlight: 132,
  enoughRounds: 4,
  roundsPerIntensity: 0.6,
  minRounds: 3,
  maxRounds: 6,
  workspaceShare: 0.5,
  reductionShare: 0.05,
  bytesPerFlop: 0.05,
  minAccumulations: 512,
};

/** The largest cache block of the paper for f32. */
export function paperBlock({ alpha }: Omega): CacheBlock {
  if (alpha === 2) return { outChannels: 128, inChannels: 128 };
  return { outChannels: 64, inChannels: alpha === 4 ? 64 : 32 };
}

/**
 * Workgroups of one segment: filter rows · F_W / n · ceil(O_C / B_N) · ceil(I_C / B_M), for each group.
 *
 * @throws {RangeError} if n does not divide the filter's elements.
 */
export function blockCount(
  problem: Pick<ConvProblem, "filterSize" | "inChannels" | "outChannels" | "groups">,
  omega: Omega,
  block: CacheBlock,
): number {
  const filterElements = product(problem.filterSize);
  if (filterElements % omega.n !== 0) {
    throw new RangeError(
      `Cannot count blocks: a filter of ${
        problem.filterSize.join("x")
      } is not made of ${omega.n} columns at once`,
    );
  }
  return filterElements / omega.n * problem.groups *
    Math.ceil(problem.outChannels / problem.groups / block.outChannels) *
    Math.ceil(problem.inChannels / problem.groups / block.inChannels);
}

/** ρ of F(n, r) at a cache block: flops of the batched product for each element loaded. */
export function intensity({ n, r }: Omega, block: CacheBlock): number {
  const [bn, bm] = [block.outChannels, block.inChannels];
  return 2 * bn * bm / (bn * r + bm * (n + r - 1));
}

/** Algorithm 1: the baseline segment count Ẑ of the first kernel, a whole number from 1. */
export function baselineSegments(
  problem: ConvProblem,
  pair: KernelPair,
  block: CacheBlock = paperBlock(pair.first),
  parameters: SegmentParameters = DEFAULT_SEGMENT_PARAMETERS,
): number {
  const { workgroupsInFlight: inFlight } = parameters;
  const { batch, groups } = problem;
  const [inputs, outputs] = [product(problem.inputSize), product(problem.outputSize)];
  const area = block.outChannels * block.inChannels;
  const b0 = batch * outputs * problem.outChannels / pair.n / area;
  const b1 = batch * inputs * problem.inChannels / pair.n / area;
  const b2 = blockCount(problem, pair.first, block);
  const start = (b0 + b1) / (1.45 * b2);
  if (start < 2 && b2 >= parameters.enoughRounds * inFlight) return 1;

  const filter = product(problem.filterSize) * problem.inChannels / groups * problem.outChannels;
  const data = batch * (inputs * problem.inChannels + outputs * problem.outChannels) + filter;
  const most = Math.min(inFlight, 1 + Math.floor(parameters.workspaceShare * data / filter));

  const rounds = Math.min(
    parameters.maxRounds,
    Math.max(parameters.minRounds, parameters.roundsPerIntensity * intensity(pair.first, block)),
  );
  const z1 = rounds * inFlight / b2;
  // A bucket is written and read: 8 bytes for the 2·N·O_H·O_W flops of an element of ∇W.
  const seconds = 2 * batch * outputs * parameters.bytesPerFlop / 8;
  const z2 = 1 + parameters.reductionShare * seconds;
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
