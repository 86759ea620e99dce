import { variesLoop } from "../../kernels/variant.ts";
import { FLOAT_DTYPES } from "../../problem/conv_problem.ts";
import { type Algorithm, type OptionChoice, pointless, slowToCompile } from "../algorithm.ts";
import { deviceOf } from "../device/h200.ts";
import { copyTime } from "../device/model.ts";
import type { Candidate } from "../plan.ts";
import { isRefusal, refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { resultBytes, resultElements } from "../tensors.ts";
import { mostSegments } from "./baseline.ts";
import { configure, coveringRates, pairOptions, rivalPairs } from "./configure.ts";
import { enlarged, isWeighed, kernelRates, mayTakeHalf, remembered } from "./half.ts";
import { DIRECT, isStrided, NEVER, type Omega, reduceAxes, type Throughput } from "./omega.ts";
import { fastestPair, type KernelPair, pairKernels, pairText, possiblePairs } from "./pair.ts";
import {
  configured,
  figuresOf,
  planWinrs,
  targetBytes,
  type WinrsGeometry,
  winrsGeometry,
  winrsReason,
} from "./plan.ts";

function pairAmplification(request: PlanRequest, pair: KernelPair): number {
  return Math.max(...pairKernels(pair).map((omega) => enlarged(request, omega)));
}

/** Rates of a request's kernels, of which nothing chooses others than may be taken. */
function allowedRates(request: PlanRequest, mayTake: (omega: Omega) => boolean): Throughput {
  const rates = kernelRates(request);
  return remembered((omega) => rates(omega) * (mayTake(omega) ? 1 : NEVER));
}

/** The pair that is fastest by its rates alone among kernels that may be taken. */
function pairOf(request: PlanRequest, mayTake: (omega: Omega) => boolean): KernelPair {
  const axes = reduceAxes(request.problem);
  const rates = coveringRates(axes, allowedRates(request, mayTake));
  return fastestPair(axes.filterWidth, axes.outputWidth, rates, pairOptions(axes));
}

/** The pair that is configured of kernels that enlarge errors by `most` at most, one of which is Ω2(1,1). */
function configuredWithin(request: PlanRequest, most: number): KernelPair {
  const { pair: _, ...free } = request;
  const mayTake = (omega: Omega) => enlarged(request, omega) <= most;
  const figures = figuresOf(free);
  if (isRefusal(figures)) return pairOf(request, mayTake);
  return configure(request.problem, { ...figures, throughput: allowedRates(request, mayTake) })
    .pair;
}

/** Microseconds of WinRS as it would be configured; sums are rounded in a pass. */
function winrsTime({ request, configuration }: WinrsGeometry): number {
  const { problem } = request;
  const device = deviceOf(request);
  const summed = targetBytes(request);
  const moved = summed + resultBytes(request) * resultElements(problem);
  const rounding = summed === 0 ? 0 : copyTime(moved, device.rates.stream, device);
  return 1e3 * configuration.predictedMs + rounding;
}

/** Results of a thread of the tiles whose rates are measured. */
const LEAST_RESULTS = 128;

/** WinRS as `auto` weighs it: the pair that it would take within the error that is allowed, and one in f16. */
export function winrsCandidates(request: PlanRequest, allowed: number): Candidate[] {
  const algorithm = "winrs";
  const reason = winrsReason(request);
  if (reason !== undefined) return [{ algorithm, amplification: 1, reason }];
  const { problem } = request;
  const axes = reduceAxes(problem);
  const { widthAxis, filterWidth, outputWidth } = axes;
  const pairs = possiblePairs(filterWidth, outputWidth, () => 1, pairOptions(axes));
  const kernels = [...new Set(pairs.flatMap(pairKernels))]
    .filter((omega) => isWeighed(request, omega));
  if (isStrided(problem, widthAxis) || kernels.length === 1) return [pointless(algorithm)];
  const { slowCompiler, threadResults } = deviceOf(request);
  if (slowCompiler) return [slowToCompile(algorithm)];
  if (threadResults < LEAST_RESULTS) {
    const reason = `its speed with less than ${LEAST_RESULTS} results a thread was not measured`;
    return [{ algorithm, amplification: 1, reason }];
  }
  return [within(), ...half()];

  function within(): Candidate {
    const most = Math.max(...kernels.map((omega) => enlarged(request, omega)));
    if (most <= allowed) return { algorithm, amplification: most };
    const pair = configuredWithin(request, allowed);
    if (pair.first === DIRECT) {
      const fastest = pairOf(request, () => true);
      return { algorithm, amplification: pairAmplification(request, fastest) };
    }
    return { algorithm, pair: pairText(pair), amplification: pairAmplification(request, pair) };
  }

  /** Transformed data in f16, where errors may be so large. */
  function half(): Candidate[] {
    if (request.dtype !== "f16" || variesLoop(request.schedule)) return [];
    const variant = { halfTile: true };
    const halved = { ...request, schedule: { ...request.schedule, ...variant } };
    const pair = pairOf(halved, (omega) => mayTakeHalf(halved, omega));
    if (pair.first === DIRECT) return [];
    const amplification = pairAmplification(halved, pair);
    return [{ algorithm, pair: pairText(pair), variant, amplification }];
  }
}

/** Backward-filter by one-dimensional Winograd in segments. */
export const winrs: Algorithm<WinrsGeometry> = {
  name: "winrs",
  options: ["policy", "splits", "flush", "rotatedLoop", "halfTile", "matrixUnits", "pair"],
  dtypes: FLOAT_DTYPES,
  refuse: winrsReason,
  candidates: winrsCandidates,
  geometry: winrsGeometry,
  price: winrsTime,
  rivals: winrsRivals,
  plan: planWinrs,
};

/** Of pairs predicted up to this much slower than the fastest other segments are worth measuring. */
const SEGMENT_SLACK = 1.15;

/**
 * Every pair worth measuring with the model's segments. Of those that the model has within 15 % of the fastest also half
 * and twice as many, where their buckets fit in the workspace. None where WinRS cannot do the problem.
 */
export function winrsRivals(request: PlanRequest): OptionChoice[] {
  if (winrsReason(request) !== undefined) return [];
  const pairs = rivalPairs(request.problem, kernelRates(request));
  const choices: OptionChoice[] = pairs.length === 0 ? [{}] : pairs
    .filter((pair) => winrsReason({ ...request, pair }) === undefined)
    .map((pair) => ({ pair }));
  const rivals = choices.flatMap((choice) => {
    const configuration = configured({ ...request, ...choice });
    return isRefusal(configuration) ? [] : [{ choice, ...configuration }];
  });
  const fastest = Math.min(...rivals.map(({ predictedMs }) => predictedMs));
  return rivals.flatMap(({ choice, predictedMs, segmentation: { rows, firstColumns, count } }) => {
    const own = choice.pair === undefined ? [] : [choice];
    const figures = figuresOf({ ...request, ...choice });
    if (predictedMs > fastest * SEGMENT_SLACK || isRefusal(figures)) return own;
    const most = mostSegments(request.problem, figures.workspaceShare);
    const others = [rows * firstColumns / 2, rows * firstColumns * 2].map(Math.floor)
      .filter((splits) => {
        const forced = splits < 1
          ? refusal("problem", "")
          : configured({ ...request, ...choice, schedule: { ...request.schedule, splits } });
        if (isRefusal(forced)) return false;
        const taken = forced.segmentation.count;
        return taken !== count && taken <= most;
      });
    return [...own, ...others.map((segments) => ({ ...choice, segments }))];
  });
}
