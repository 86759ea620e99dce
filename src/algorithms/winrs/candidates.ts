import type { PlanRequest } from "../request.ts";
import { type Candidate, pointless } from "../rival.ts";
import { reduceAxes } from "./axes.ts";
import { admissible, DIRECT } from "./omega.ts";
import { winrsReason } from "./plan.ts";
import { enlarged, pairAmplification, pairText, pairWithin } from "./price.ts";

/** WinRS as `auto` weighs it: the pair that it would take within the error that is allowed. */
export function winrsCandidates(request: PlanRequest, allowed: number): Candidate[] {
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
