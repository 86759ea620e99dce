import { fullVariant } from "../../kernels/main_loop_variant.ts";
import { isMatrixPolicyName } from "../../kernels/matrix_policies.ts";
import { deviceOf } from "../device/h200.ts";
import { LEAST_SPLIT_DEPTH, type MathChoice, refuseSplitMath } from "../math.ts";
import { productUnit } from "../product.ts";
import { isRefusal, type Planned, refusal } from "../refusal.ts";
import { cutGemm } from "./cut.ts";
import type { GemmRequest } from "./request.ts";

/** `auto` takes halves only where they are predicted to take less than this share of f32's time. */
const CLEARLY_LESS = 0.9;

/**
 * How a product is multiplied: what was asked for, or what takes less time where the device's model says that halves may be
 * taken at all. Products of nothing are in f32.
 */
export function chooseMath(
  request: GemmRequest,
): Planned<Exclude<MathChoice, "auto">> {
  const { problem: { m, n, k, batch }, dtype, math = "auto", policy, variant } = request;
  if (math === "f32" && dtype !== "f32") {
    return refusal("problem", `math f32 is of f32 operands, the dtype is ${dtype}`);
  }
  if (math === "f32" || m * n * k * batch === 0) return "f32";
  const split = { ...request, math: "f16x3" } as const;
  const refused = refuseSplitMath({
    dtype,
    depth: k,
    hasUnit: productUnit(split) !== undefined,
  });
  const { matrixUnits, microKernel } = fullVariant(variant);
  if (math === "f16x3") {
    if (refused !== undefined) return refused;
    return matrixUnits && microKernel ? "f16x3" : refusal(
      "problem",
      "math f16x3 multiplies on matrix units, which the variant leaves out",
    );
  }
  if (
    refused !== undefined || !matrixUnits || !microKernel || k < LEAST_SPLIT_DEPTH ||
    deviceOf(request).shares.f16x3 === 0 || policy !== undefined && !isMatrixPolicyName(policy)
  ) {
    return "f32";
  }
  const [halves, whole] = [cutGemm(split), cutGemm({ ...request, math: "f32" })];
  // No other than these multiplies by a tile of matrix units.
  if (isRefusal(halves)) return policy === undefined ? "f32" : halves;
  // Beside what the cut reckons with there is the pass over flagged tiles.
  const flagged = deviceOf(request).costs.dispatch;
  return isRefusal(whole) || halves.cost + flagged < CLEARLY_LESS * whole.cost ? "f16x3" : "f32";
}
