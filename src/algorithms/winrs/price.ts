import { directFlops, tensorShape } from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { deviceOf } from "../device/h200.ts";
import { moveTime, passTime } from "../device/model.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { reduceAxes } from "./axes.ts";
import { configure, coveringRates, pairOptions } from "./configure.ts";
import { enlarged, kernelRates } from "./half.ts";
import { type Omega, omegaName, OMEGAS } from "./omega.ts";
import { fastestPair, type KernelPair, pairCost } from "./pair.ts";
import { resultBytes } from "../tensors.ts";
import { configured, configureOptions, targetBytes } from "./plan.ts";
import { NEVER, throughputOf, type ThroughputTable } from "./throughput.ts";

/** How much a pair enlarges rounding errors. */
export function pairAmplification(request: PlanRequest, { first, second }: KernelPair): number {
  return Math.max(...[first, ...(second ? [second] : [])].map((omega) => enlarged(request, omega)));
}

/** Rates of a request's kernels, of which nothing chooses others than may be taken. */
function allowedRates(request: PlanRequest, mayTake: (omega: Omega) => boolean): ThroughputTable {
  const rates = kernelRates(request);
  return Object.fromEntries(OMEGAS.map((omega) => {
    const name = omegaName(omega);
    return [name, rates[name]! * (mayTake(omega) ? 1 : NEVER)];
  }));
}

/** The pair that is fastest by its rates alone among kernels that may be taken. */
export function pairOf(request: PlanRequest, mayTake: (omega: Omega) => boolean): KernelPair {
  const axes = reduceAxes(request.problem);
  const rates = coveringRates(axes, throughputOf(allowedRates(request, mayTake)));
  return fastestPair(axes.filterWidth, axes.outputWidth, rates, pairOptions(axes));
}

/** The same of kernels that enlarge errors by `most` at most. */
export function pairWithin(request: PlanRequest, most: number): KernelPair {
  return pairOf(request, (omega) => enlarged(request, omega) <= most);
}

/** The pair that is configured of kernels that enlarge errors by `most` at most, one of which is Ω2(1,1). */
export function configuredWithin(request: PlanRequest, most: number): KernelPair {
  const { pair: _, ...free } = request;
  const options = configureOptions(free);
  if (isRefusal(options)) return pairWithin(request, most);
  const throughput = allowedRates(request, (omega) => enlarged(request, omega) <= most);
  return configure(request.problem, { ...options, throughput }).pair;
}

/** `a8n3r6,a4n3r2`. */
export function pairText({ first, second }: KernelPair): string {
  return [first, ...(second === undefined ? [] : [second])].map(omegaName).join(",");
}

/** Microseconds that WinRS takes at least: a pair's rate with all multiprocessors busy to the end. */
export function winrsBound(request: PlanRequest, pair: KernelPair): number {
  const { problem } = request;
  const axes = reduceAxes(problem);
  const rates = coveringRates(axes, throughputOf(kernelRates(request)));
  return directFlops(problem) / (axes.outputWidth / pairCost(pair, rates) * 1e6);
}

/** Microseconds of WinRS as it would be configured; sums are rounded in a pass. */
export function winrsTime(request: PlanRequest): Planned<number> {
  const configuration = configured(request);
  if (isRefusal(configuration)) return configuration;
  const { problem } = request;
  const device = deviceOf(request);
  const summed = targetBytes(request);
  const elements = elementCount(tensorShape(problem, "filter"));
  const rounding = summed === 0
    ? 0
    : passTime(0, moveTime(summed + resultBytes(request) * elements, device.rates.stream), device);
  return 1e3 * configuration.predictedMs + rounding;
}
