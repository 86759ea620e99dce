import { elementCount } from "../tensor/tensor.ts";
import type { PlanRequest } from "./request.ts";

/** Depth up to which storing four images one by one takes longer than loading four at once saves. */
const SHALLOW_DEPTH = 64;

/**
 * Whether columns of a forward product count single images although four could be interleaved: with few products
 * a result and images' places together, four places leave in one store. An H200 then does cv7 of the im2win paper
 * (27 products a result) in 0.64 (fused) to 0.78 of the time.
 */
export function prefersSingleImages({ problem, layout }: PlanRequest): boolean {
  const depth = problem.inChannels / problem.groups * elementCount(problem.filterSize);
  return problem.op === "fwd" && layout === "nchw" && depth <= SHALLOW_DEPTH &&
    elementCount(problem.outputSize) % 4 === 0;
}
