import type { Candidate } from "../rival.ts";
import { algorithms } from "../registry.ts";
import type { PlanRequest } from "../request.ts";
import { inaccuracy } from "./accuracy.ts";

/** Every algorithm that `auto` weighs for a request, those that it may not take with the reason. */
export function candidatesOf(request: PlanRequest, allowed: number): Candidate[] {
  const weighed = algorithms().flatMap(({ heeds, candidates }) =>
    // Where a tile is said, only what has tiles can be meant.
    request.tile !== undefined && !heeds.includes("tile")
      ? []
      : candidates?.(request, allowed) ?? []
  );
  return weighed.map((candidate) =>
    candidate.reason === undefined && candidate.amplification > allowed
      ? {
        ...candidate,
        reason: `it ${inaccuracy(request, candidate.amplification, allowed)}`,
      }
      : candidate
  );
}
