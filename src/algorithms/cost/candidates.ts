import type { Candidate } from "../rival.ts";
import { algorithms } from "../registry.ts";
import type { PlanRequest } from "../request.ts";
import { missingOption, unsupported } from "../unsupported.ts";
import { inaccuracy } from "./accuracy.ts";

/** Every algorithm that `auto` weighs for a request, those that it may not take with the reason. */
export function candidatesOf(request: PlanRequest, allowed: number): Candidate[] {
  const weighed = algorithms().flatMap((algorithm) => {
    // Where a choice is said, only what has it can be meant.
    if (missingOption(algorithm, request) !== undefined) return [];
    if (request.math === "f16x3" && !algorithm.options.includes("math")) return [];
    const offered = algorithm.candidates?.(request, allowed) ?? [];
    const reason = offered.length === 0 ? undefined : unsupported(algorithm, request);
    return reason === undefined ? offered : offered.map((one) => ({ ...one, reason }));
  });
  return weighed.map((candidate) =>
    candidate.reason === undefined && candidate.amplification > allowed
      ? {
        ...candidate,
        reason: `it ${inaccuracy(request, candidate.amplification, allowed)}`,
      }
      : candidate
  );
}
