import { evenParts } from "../../kernels/slices/correlation.ts";
import type { ConvProblem } from "../../problem/conv_problem.ts";
import type { DeviceModel } from "../device/model.ts";
import {
  baselineSegments,
  blockCount,
  type CacheBlock,
  filterElements,
  mostSegments,
  workgroupsInFlight,
} from "./baseline.ts";
import {
  clippedFilterRow,
  coveredRows,
  isStrided,
  kernelRows,
  type Omega,
  reduceAxes,
  type ReducedAxes,
  threadSets,
  type Throughput,
  tileElements,
} from "./omega.ts";
import { type KernelPair, pairCost, type PairOptions, pairText, possiblePairs } from "./pair.ts";
import {
  gridSegments,
  longestSum,
  makespan,
  mostRows,
  rowHeights,
  segment,
  type Segmentation,
  type WorkgroupGroup,
} from "./segments.ts";

/** All that WinRS decides before it runs. */
export interface Configuration {
  readonly axes: ReducedAxes;
  readonly pair: KernelPair;
  /** Ẑ of Algorithm 1 for the pair, or the count that was asked for. */
  readonly baseline: number;
  readonly segmentation: Segmentation;
  /** Workgroups of one segment of the first kernel. */
  readonly blocks: number;
  readonly predictedMs: number;
}

export interface Figures {
  readonly device: DeviceModel;
  /** Workspace that buckets may have, as a multiple of the elements of X, ∇Y and ∇W. */
  readonly workspaceShare: number;
  /** Direct TFLOP/s of the kernels. */
  readonly throughput: Throughput;
  /** The cache block a kernel runs with. */
  block(omega: Omega): CacheBlock;
  /** How much longer a kernel takes where channels are not innermost, by its tiles in a row of a segment. */
  across(omega: Omega, wide: number): number;
  /** Kernels, one after the other, in which its slices are multiplied. */
  sets(omega: Omega): number;
  /** Cost of each of them in launches, where there are several. */
  readonly setLaunches: number;
  /** Share of its speed that a kernel keeps whose sums are flushed. */
  readonly parts: number;
  /** TB/s at which workgroups store their sums at their end. */
  readonly storeRate: number;
  /** In place of the fastest. */
  readonly pair?: KernelPair | undefined;
  /** Ẑ in place of Algorithm 1's; Algorithm 2 then gives the segments. */
  readonly segments?: number | undefined;
}

/** Pairs are tried, and worth measuring, up to this much slower by their rates: their segments may suit a problem better. */
const PAIR_SLACK = 1.5;
/** Among segmentations up to this much slower than the fastest, the one with fewest buckets wins; with less slack the suite's workspace exceeds the paper's Table 2. */
const TIME_SLACK = 1.022;
/** Among those with up to this many times the fewest buckets, the widest segments win. */
const BUCKET_SLACK = 1.1;
/** Products of the longest sum that is not flushed; fewer where slices are in sets, whose MARE would else exceed Ω8(3,6)'s. */
const LONGEST_SUM = { whole: 2048, sets: 1536 };
/** Least share of a nested kernel's tiles that is ∇Y: with more padding kernels along one axis are faster. */
const NESTED_FILLED = 0.9;
/** Rows of segments are even, or the last one is lower by these shares, to fit in the last wave. */
const LAST_SHARES = [3 / 4, 1 / 2, 1 / 3, 1 / 4];
/** With more rows the last one matters too little. */
const MOST_LOWERED = 32;
/** Segment counts are tried up to this multiple of Ẑ. */
const COUNT_SLACK = 2;

/**
 * Chooses pair and segments: Algorithm 1 gives Ẑ, and of the grids of up to 2·Ẑ segments whose buckets fit
 * Z_max the one of least predicted time is taken, fewer buckets first where that costs next to nothing. The
 * second kernel adds to the first one's buckets; only a forced count gives it its own, as in the paper.
 *
 * @throws {RangeError} if the segments asked for are not a positive whole number.
 */
export function configure(problem: ConvProblem, figures: Figures): Configuration {
  const axes = reduceAxes(problem);
  const { throughput, block, device, workspaceShare, segments } = figures;
  const pairs = figures.pair ? [figures.pair] : nearlyFastest(axes, throughput);
  const choices = pairs.flatMap((pair) => {
    const baseline = segments ??
      baselineSegments(problem, pair, block(pair.first), device, workspaceShare);
    const grids = segments === undefined
      ? candidateGrids(axes, pair, baseline, mostSegments(problem, workspaceShare))
      : [segment(axes.outputRows, axes.outputWidth, pair, segments, axes.paddingRows)];
    return grids.map((segmentation) => ({
      pair,
      baseline,
      segmentation,
      leastMs: predictMs(problem, axes, pair, segmentation, figures, "least"),
    }));
  }).sort((a, b) => a.leastMs - b.leastMs);
  let fastest = Infinity;
  const timed = [];
  // Choices are sorted by a lower bound: the rest cannot be faster.
  for (const { leastMs, ...choice } of choices) {
    if (leastMs > fastest * TIME_SLACK) break;
    const predictedMs = predictMs(problem, axes, choice.pair, choice.segmentation, figures);
    timed.push({ ...choice, predictedMs });
    fastest = Math.min(fastest, predictedMs);
  }
  const good = timed.filter(({ predictedMs }) => predictedMs <= fastest * TIME_SLACK);
  const fewest = Math.min(...good.map(({ segmentation }) => segmentation.count));
  const best = good
    .filter(({ segmentation }) => segmentation.count <= fewest * BUCKET_SLACK)
    .sort((a, b) =>
      a.segmentation.firstColumns - b.segmentation.firstColumns ||
      a.segmentation.count - b.segmentation.count || a.predictedMs - b.predictedMs
    )[0]!;
  return { ...best, axes, blocks: blockCount(problem, best.pair.first, block(best.pair.first)) };
}

/** Products of a kernel's longest sum: longer ones are flushed in equal parts, because an f32 accumulator errs more with its length. */
export function longestPart(omega: Omega): number {
  return threadSets(omega) === 1 ? LONGEST_SUM.whole : LONGEST_SUM.sets;
}

/**
 * Milliseconds of the kernels and the reduction: workgroups begin as others end, and the slowest ends a little after the others.
 *
 * @param span Whether they are scheduled, or no schedule takes less.
 */
export function predictMs(
  problem: ConvProblem,
  axes: ReducedAxes,
  pair: KernelPair,
  segmentation: Segmentation,
  { device, throughput, block, across, sets, setLaunches, parts, storeRate }: Figures,
  span: "scheduled" | "least" = "scheduled",
): number {
  const launch = device.times.winrsKernel / 1e3;
  const { winrsBuckets } = device.rates;
  const { rows, columns, firstColumns, count, shared } = segmentation;
  /** Parts that a segment's sums are stored in; empty sums are stored once, too. */
  const partsOf = (omega: Omega, tiles: number, segmentColumns: number) => {
    const kernel = { size: kernelRows(axes, omega), tiles, batch: problem.batch };
    const length = longestSum(kernel, segmentation, segmentColumns);
    return Math.max(1, Math.ceil(length / longestPart(omega)));
  };
  const kernelMs = (omega: Omega, tiles: number, segmentColumns: number) => {
    const { outChannels, inChannels } = block(omega);
    const inFlight = workgroupsInFlight(block(omega), device);
    const { filter, gradient } = tileElements(omega);
    const tileMs = 2 * problem.batch * filter * gradient * outChannels * inChannels * inFlight /
      (throughput(omega) * 1e9);
    const blocks = blockCount(problem, omega, block(omega));
    const size = kernelRows(axes, omega);
    const heights = rowHeights(size, segmentation);
    const widths = evenParts(tiles, segmentColumns);
    const longest = heights.long * widths.long;
    const rowsOf = (count: number, height: number): WorkgroupGroup[] =>
      widths.longOnes === 0
        ? [[blocks * segmentColumns * count, height * widths.short]]
        : Array.from({ length: count }, (): WorkgroupGroup[] => [
          [blocks * widths.longOnes, height * widths.long],
          [blocks * (segmentColumns - widths.longOnes), height * widths.short],
        ]).flat();
    const ends = span === "least" ? Math.max(blocks * size * tiles / inFlight, longest) : makespan([
      ...rowsOf(heights.longOnes, heights.long),
      ...rowsOf(rows - heights.longOnes, heights.short),
    ], inFlight);
    const speed = partsOf(omega, tiles, segmentColumns) === 1 ? 1 : parts;
    return tileMs * keptShare(axes, omega) * across(omega, widths.long) / speed *
        (ends + device.shares.winrsUneven * longest) +
      (sets(omega) === 1 ? 1 : sets(omega) * setLaunches) * launch;
  };
  const reduction = count === 1
    ? 0
    : (count + 1) * 4 * filterElements(problem) / (winrsBuckets * 1e9) + launch;
  // Each part of a sum but the first is added to what is there, which is read, as another kernel's are to those before it.
  const moves = (omega: Omega, tiles: number, segmentColumns: number) =>
    segmentColumns * (2 * sets(omega) * partsOf(omega, tiles, segmentColumns) - 1);
  const second = columns - firstColumns;
  const moved = moves(pair.first, pair.k0, firstColumns) +
    (pair.second ? moves(pair.second, pair.k1, second) + (shared ? second : 0) : 0);
  const storing = rows * moved * 4 * filterElements(problem) / (storeRate * 1e9);
  return kernelMs(pair.first, pair.k0, firstColumns) + reduction + storing +
    (pair.second ? kernelMs(pair.second, pair.k1, second) : 0);
}

/**
 * Rates of what is computed of ∇W, and not of what tiles beyond ∇Y's rows are, or rows that meet none of X.
 */
export function coveringRates(axes: ReducedAxes, throughput: Throughput): Throughput {
  return (omega) => throughput(omega) * coveredRows(axes, omega) / keptShare(axes, omega);
}

/** What pairs may be chosen of: those with nested kernels where ∇Y fills their tiles well enough. */
export function pairOptions(axes: ReducedAxes): PairOptions {
  const { tiledRows, outputWidth } = axes;
  return {
    tiledRows,
    admits: ({ first, width }) =>
      first.rows === undefined ||
      outputWidth / width * coveredRows(axes, first) >= NESTED_FILLED,
  };
}

function nearlyFastest(axes: ReducedAxes, throughput: Throughput): KernelPair[] {
  const rates = coveringRates(axes, throughput);
  const pairs = possiblePairs(axes.filterWidth, axes.outputWidth, rates, pairOptions(axes));
  const least = Math.min(...pairs.map((pair) => pairCost(pair, rates)));
  return pairs.filter((pair) => pairCost(pair, rates) <= least * PAIR_SLACK);
}

/** Names of the pairs worth measuring, as `--pair` takes them; none where there is no choice. */
export function rivalPairs(problem: ConvProblem, throughput: Throughput): string[] {
  const axes = reduceAxes(problem);
  if (isStrided(problem, axes.widthAxis)) return [];
  if ([...problem.filterSize, ...problem.outputSize].includes(0)) return [];
  return [...new Set(nearlyFastest(axes, throughput).map(pairText))];
}

/** Grids of rows x columns that give up to twice Ẑ segments on the first kernel, and up to `most` buckets. */
function candidateGrids(
  axes: ReducedAxes,
  pair: KernelPair,
  baseline: number,
  most: number,
): Segmentation[] {
  const { outputRows, outputWidth, paddingRows } = axes;
  const limit = baseline * COUNT_SLACK;
  const grids: Segmentation[] = [];
  for (let columns = 1; columns <= Math.min(pair.k0, limit); columns++) {
    const rowLimit = Math.min(
      mostRows(outputRows, paddingRows),
      kernelRows(axes, pair.first),
      limit / columns,
    );
    for (let rows = 1; rows <= rowLimit; rows++) {
      for (const last of lastShares(axes, pair.first, rows)) {
        const grid = gridSegments(outputRows, outputWidth, pair, rows, columns, true, last);
        if (grid.count <= most) grids.push(grid);
      }
    }
  }
  return grids;
}

/** How high the last of `rows` rows of segments may be, as a share of the others; as high as the padding at least. */
function lastShares(axes: ReducedAxes, first: Omega, rows: number): number[] {
  if (rows === 1 || rows > MOST_LOWERED) return [1];
  const size = kernelRows(axes, first);
  const least = Math.max(1, axes.paddingRows / (first.rows?.r ?? 1));
  const shares = LAST_SHARES.flatMap((share) => {
    const tall = Math.ceil(size / (rows - 1 + share));
    const low = size - (rows - 1) * tall;
    return low >= least && low < tall ? [low / tall] : [];
  });
  return [1, ...new Set(shares)];
}

/** The share of pairs of filter row and row of ∇Y that a kernel does not skip. A nested one skips none along the rows that it tiles. */
function keptShare(axes: ReducedAxes, omega: Omega): number {
  const { filterRows, outer, outputRows } = axes;
  if (omega.rows !== undefined && outer.length === 1) return 1;
  let kept = 0;
  for (let row = 0; row < filterRows; row++) {
    const [start, end] = clippedFilterRow(outer, row);
    kept += end - start;
  }
  return kept / (filterRows * outputRows);
}
