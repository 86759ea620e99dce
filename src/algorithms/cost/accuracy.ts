import { accumulationLength } from "../../problem/conv_problem.ts";
import { boundRatioLimit } from "../../problem/error_bound.ts";
import type { PlanRequest } from "../request.ts";

/**
 * How much `auto` lets an algorithm enlarge rounding errors where the user says nothing. Forward and backward-data: all
 * tiles of α ≤ 8 on both axes (F(6x6,3x3) has 46, F(7x7,2x2) 66), whose MARE stays below 6e-7; not α = 16.
 * Backward-filter: WinRS with α = 16 (up to 514), whose MARE stays below 2e-6, and two axes of up to α = 10
 * (F(9x9,2x2): 1019), which errs as much; not α = 16 on both (10⁵).
 */
const DEFAULT_AMPLIFICATION = { data: 70, filter: 1100 };

/** Times the relative L2 error of direct sums of f16 that transformed data in half the bytes may have unasked. */
export const HALF_ALLOWED = 4;

/** Largest amplification that `auto` may choose for a request. */
export function allowedAmplification(request: PlanRequest): number {
  const { problem, epilogue: { activation }, exact, maxBoundRatio } = request;
  if (exact) return 1;
  if (maxBoundRatio === undefined) {
    return DEFAULT_AMPLIFICATION[problem.op === "bwd-filter" ? "filter" : "data"];
  }
  const length = accumulationLength(problem);
  const limit = (amplification: number) =>
    boundRatioLimit({ accumulationLength: length, amplification, activation });
  // The limit grows in proportion to what is above 1.
  const each = limit(3) - limit(2);
  return Math.max(1, 2 + (maxBoundRatio - limit(2)) / each);
}

/** What is said of an algorithm that enlarges errors more than `allowed`: it "is no exact algorithm", or by how much. */
export function inaccuracy({ exact }: PlanRequest, amplification: number, allowed: number): string {
  const figure = (value: number) => `${Number(value.toPrecision(3))}`;
  return exact
    ? "is no exact algorithm"
    : `enlarges rounding errors ${figure(amplification)} times, ${figure(allowed)} are allowed`;
}
