import { variesLoop } from "../../kernels/main_loop_variant.ts";
import { isSoftware, type PlanRequest } from "../request.ts";
import { type Candidate, pointless, slowToCompile } from "../rival.ts";
import { reduceAxes } from "./axes.ts";
import { fillsTiles } from "./configure.ts";
import { enlarged, isHalf, mayTakeHalf } from "./half.ts";
import { admissible, DIRECT } from "./omega.ts";
import { winrsReason } from "./plan.ts";
import { pairAmplification, pairOf, pairText, pairWithin } from "./price.ts";

/** WinRS as `auto` weighs it: the pair that it would take within the error that is allowed, and one in f16. */
export function winrsCandidates(request: PlanRequest, allowed: number): Candidate[] {
  const algorithm = "winrs";
  const reason = winrsReason(request);
  if (reason !== undefined) return [{ algorithm, amplification: 1, reason }];
  const { problem } = request;
  const axes = reduceAxes(problem);
  const { widthAxis, filterWidth } = axes;
  const strided = problem.stride[widthAxis] !== 1 || problem.dilation[widthAxis] !== 1;
  const kernels = admissible(filterWidth, isHalf(request) ? 0 : axes.tiledRows)
    .filter((omega) => fillsTiles(axes, omega));
  if (strided || kernels.length === 1) return [pointless(algorithm)];
  if (isSoftware(request)) return [slowToCompile(algorithm)];
  return [within(), ...half()];

  function within(): Candidate {
    const most = Math.max(...kernels.map((omega) => enlarged(request, omega)));
    if (most <= allowed) return { algorithm, amplification: most };
    const pair = pairWithin(request, allowed);
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
