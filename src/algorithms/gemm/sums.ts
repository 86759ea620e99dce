import type { Elements } from "../../elements/elements.ts";
import { F16_CHAIN } from "../../kernels/loop/thread_products.ts";
import type { UnitChain } from "../../kernels/matrix_units.ts";
import type { PlanArithmetic } from "../../problem/plan_arithmetic.ts";
import { type Cut, cutArithmetic } from "../cut.ts";

/** How the sums of a product are rounded; f16 chains are a whole number of steps. */
export function gemmSums(
  { accumulate: sums }: Elements,
  cut: Cut,
  steps: number,
  packed: number,
  asked: UnitChain | undefined,
): PlanArithmetic {
  const { chain, segment, unit, math } = cutArithmetic(cut, steps, asked);
  const depth = cut.policy.depth * packed;
  return {
    sums,
    ...(unit === undefined ? {} : { unit }),
    ...(math === undefined ? {} : { math }),
    ...(segment === undefined ? {} : { segment: segment * packed }),
    ...(sums === "f16"
      ? { chain: Math.max(1, Math.floor(F16_CHAIN / depth)) * depth }
      : chain === undefined
      ? {}
      : { chain: chain * packed }),
  };
}
