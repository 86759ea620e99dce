import { variesLoop } from "../../kernels/main_loop_variant.ts";
import { isSoftware, type PlanRequest } from "../request.ts";
import { type Candidate, pointless, slowToCompile } from "../rival.ts";
import { reduceAxes } from "./axes.ts";
import { pairOptions } from "./configure.ts";
import { enlarged, isWeighed, mayTakeHalf } from "./half.ts";
import { DIRECT } from "./omega.ts";
import { possiblePairs } from "./pair.ts";
import { winrsReason } from "./plan.ts";
import { configuredWithin, pairAmplification, pairOf, pairText, pairWithin } from "./price.ts";

/** WinRS as `auto` weighs it: the pair that it would take within the error that is allowed, and one in f16. */
export function winrsCandidates(request: PlanRequest, allowed: number): Candidate[] {
  const algorithm = "winrs";
  const reason = winrsReason(request);
  if (reason !== undefined) return [{ algorithm, amplification: 1, reason }];
  const { problem } = request;
  const axes = reduceAxes(problem);
  const { widthAxis, filterWidth, outputWidth } = axes;
  const strided = problem.stride[widthAxis] !== 1 || problem.dilation[widthAxis] !== 1;
  const pairs = possiblePairs(filterWidth, outputWidth, () => 1, pairOptions(axes));
  const kernels = [
    ...new Set(pairs.flatMap(({ first, second }) => second ? [first, second] : [first])),
  ].filter((omega) => isWeighed(request, omega));
  if (strided || kernels.length === 1) return [pointless(algorithm)];
  if (isSoftware(request)) return [slowToCompile(algorithm)];
  return [within(), ...half()];

  function within(): Candidate {
    const most = Math.max(...kernels.map((omega) => enlarged(request, omega)));
    if (most <= allowed) return { algorithm, amplification: most };
    const pair = configuredWithin(request, allowed);
    if (pair.first === DIRECT) {
      const fastest = pairWithin(request, Infinity);
      return { algorithm, amplification: pairAmplification(request, fastest) };
    }
    return { algorithm, pair: pairText(pair), amplification: pairAmplification(request, pair) };
  }

  /** Transformed data in f16, where errors may be so large. */
  function half(): Candidate[] {
    if (request.dtype !== "f16" || variesLoop(request.variant)) return [];
    const variant = { halfTile: true };
    const halved = { ...request, variant };
    const pair = pairOf(halved, (omega) => mayTakeHalf(halved, omega));
    if (pair.first === DIRECT) return [];
    const amplification = pairAmplification(halved, pair);
    return [{ algorithm, pair: pairText(pair), variant, amplification }];
  }
}
