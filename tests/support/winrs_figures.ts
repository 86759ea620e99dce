/** What WinRS' configurations go by in tests: the paper's blocks and an H200, but for what a test says. */
import { H200 } from "../../src/algorithms/device/h200.ts";
import type { DeviceModel } from "../../src/algorithms/device/model.ts";
import { blockCount, type CacheBlock } from "../../src/algorithms/winrs/baseline.ts";
import {
  type Configuration,
  configure as configureBy,
  type Figures,
  predictMs,
} from "../../src/algorithms/winrs/configure.ts";
import {
  type Omega,
  omegaName,
  reduceAxes,
  slicesOf,
  tileElements,
} from "../../src/algorithms/winrs/omega.ts";
import { type KernelPair, parsePair as parsePairBy } from "../../src/algorithms/winrs/pair.ts";
import type { Segmentation } from "../../src/algorithms/winrs/segments.ts";
import type { ConvProblem } from "../../src/problem/conv_problem.ts";

/** The rates that follow from the numbers of multiplications alone, in TFLOP/s: 30·n·r/α. */
export function nominal(omega: Omega): number {
  const { filter, gradient } = tileElements(omega);
  return 30 * filter * gradient / slicesOf(omega);
}

/** An H200's rates. */
export const measured = (omega: Omega) => H200.rates.winrs[omegaName(omega)]!;

/** The largest cache block of the paper for f32. */
export function paperBlock({ alpha }: Omega): CacheBlock {
  if (alpha === 2) return { outChannels: 128, inChannels: 128, perMultiprocessor: 2 };
  if (alpha === 4) return { outChannels: 64, inChannels: 64, perMultiprocessor: 2 };
  return { outChannels: 64, inChannels: 32, perMultiprocessor: alpha === 8 ? 2 : 1 };
}

/** An H200 with other multiprocessors, launches in ms, or bandwidth, and workgroups as uneven. */
export function deviceWith(
  { multiprocessors = 132, unevenness = 0, launch = 0, bandwidth = H200.rates.winrsBuckets },
): DeviceModel {
  return {
    ...H200,
    multiprocessors,
    times: { ...H200.times, winrsKernel: 1e3 * launch },
    shares: { ...H200.shares, winrsUneven: unevenness },
    rates: { ...H200.rates, winrsBuckets: bandwidth },
  };
}

const FIGURES: Figures = {
  device: H200,
  workspaceShare: 0.5,
  throughput: measured,
  block: paperBlock,
  across: () => 1,
  sets: () => 1,
  setLaunches: 1,
  parts: 1,
  storeRate: Infinity,
};

/** What `configure()` chooses. */
export function configure(problem: ConvProblem, figures: Partial<Figures> = {}): Configuration {
  return configureBy(problem, { ...FIGURES, ...figures });
}

/** The configuration of a pair and segments that are given. */
export function configureAs(
  problem: ConvProblem,
  pair: KernelPair,
  segmentation: Segmentation,
  figures: Partial<Figures> = {},
): Configuration {
  const all = { ...FIGURES, ...figures };
  const axes = reduceAxes(problem);
  return {
    axes,
    pair,
    baseline: segmentation.count,
    segmentation,
    blocks: blockCount(problem, pair.first, all.block(pair.first)),
    predictedMs: predictMs(problem, axes, pair, segmentation, all),
  };
}

/** As `parsePair()` by an H200's rates. */
export function parsePair(
  text: string,
  filterWidth: number,
  outputWidth: number,
  throughput: (omega: Omega) => number = measured,
  tiledRows = 0,
): KernelPair {
  return parsePairBy(text, filterWidth, outputWidth, throughput, tiledRows);
}
