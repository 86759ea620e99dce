import { fullVariant } from "../../kernels/main_loop_variant.ts";
import { isMatrixPolicyName } from "../../kernels/matrix_policies.ts";
import { deviceOf } from "../device/h200.ts";
import { refuseSplitMath } from "../math.ts";
import { productUnit } from "../product.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { geometryOf } from "./geometry.ts";
import { timeInMath } from "./price.ts";
import { summedPatches } from "./split.ts";
import { plannedTile } from "./tiles.ts";

/** `auto` takes halves only where they are predicted to take less than this share of f32's time. */
const CLEARLY_LESS = 0.95;

/**
 * The request with how its products are multiplied: what was asked for, or what takes less time where the device's model says that
 * halves may be taken at all.
 */
export function inMath(request: PlanRequest): Planned<PlanRequest> {
  const { dtype, math = "auto", policy, exact } = request;
  const { math: _, ...plain } = request;
  if (math === "f32" || dtype !== "f32" && math === "auto") return plain;
  const split = { ...request, math: "f16x3" } as const;
  const refused = refuseSplitMath({
    dtype,
    depth: summedPatches(geometryOf(split, plannedTile(split)), split.problem.batch),
    hasUnit: productUnit(split) !== undefined,
  });
  if (math === "f16x3") return refused ?? split;
  const { matrixUnits, microKernel } = fullVariant(request.variant);
  if (
    refused !== undefined || exact || !matrixUnits || !microKernel ||
    deviceOf(request).shares.f16x3 === 0 || policy !== undefined && !isMatrixPolicyName(policy)
  ) {
    return plain;
  }
  const [halves, whole] = [timeInMath(split), timeInMath(plain)];
  // No other than these multiplies by a tile of matrix units.
  if (isRefusal(halves)) return policy === undefined ? plain : split;
  return isRefusal(whole) || halves < CLEARLY_LESS * whole ? split : plain;
}

/** Microseconds of non-fused Winograd, as {@linkcode timeInMath} has them. */
export function nonfusedTime(asked: PlanRequest): Planned<number> {
  const request = inMath(asked);
  return isRefusal(request) ? request : timeInMath(request);
}
