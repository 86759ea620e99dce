import { directFlops, tensorShape } from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { deviceOf } from "../device/h200.ts";
import { moveTime, passTime } from "../device/model.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { reduceAxes } from "./axes.ts";
import { enlarged, kernelRates, NEVER } from "./half.ts";
import { type Omega, omegaName } from "./omega.ts";
import { fastestPair, type KernelPair, pairCost } from "./pair.ts";
import { resultBytes } from "../tensors.ts";
import { configured, targetBytes } from "./plan.ts";
import { throughputOf } from "./throughput.ts";

/** Share of the rows at least that clipping leaves in layers as they are. */
const KEPT = 0.85;

/** How much a pair enlarges rounding errors. */
export function pairAmplification(request: PlanRequest, { first, second }: KernelPair): number {
  return Math.max(...[first, ...(second ? [second] : [])].map((omega) => enlarged(request, omega)));
}

/** The pair that is fastest by its rates alone among kernels that may be taken. */
export function pairOf(request: PlanRequest, mayTake: (omega: Omega) => boolean): KernelPair {
  const { filterWidth, outputWidth } = reduceAxes(request.problem);
  const throughput = throughputOf(kernelRates(request));
  return fastestPair(
    filterWidth,
    outputWidth,
    (omega) => mayTake(omega) ? throughput(omega) : throughput(omega) * NEVER,
  );
}

/** The same of kernels that enlarge errors by `most` at most. */
export function pairWithin(request: PlanRequest, most: number): KernelPair {
  return pairOf(request, (omega) => enlarged(request, omega) <= most);
}

/** `a8n3r6,a4n3r2`. */
export function pairText({ first, second }: KernelPair): string {
  return [first, ...(second === undefined ? [] : [second])].map(omegaName).join(",");
}

/** Microseconds that WinRS takes at least: a pair's rate with all multiprocessors busy to the end. */
export function winrsBound(request: PlanRequest, pair: KernelPair): number {
  const { problem } = request;
  const { outputWidth } = reduceAxes(problem);
  const rate = outputWidth / pairCost(pair, throughputOf(kernelRates(request)));
  return KEPT * directFlops(problem) / (rate * 1e6);
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
