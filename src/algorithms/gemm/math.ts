import { deviceOf } from "../device/h200.ts";
import { chooseSplit } from "../halves.ts";
import { LEAST_SPLIT_DEPTH, type MathChoice } from "../math.ts";
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
  const { problem: { m, n, k, batch }, dtype, math = "auto" } = request;
  if (math === "f32" && dtype !== "f32") {
    return refusal("problem", `math f32 is of f32 operands, the dtype is ${dtype}`);
  }
  if (math === "f32" || m * n * k * batch === 0) return "f32";
  const split = { ...request, math: "f16x3" } as const;
  return chooseSplit(request, {
    products: k,
    hasUnit: productUnit(split) !== undefined,
    least: LEAST_SPLIT_DEPTH,
    clearly: CLEARLY_LESS,
    time(math) {
      const cut = cutGemm({ ...request, math });
      if (isRefusal(cut)) return cut;
      // Beside what the cut reckons with there is the pass over flagged tiles.
      return cut.cost + (math === "f16x3" ? deviceOf(request).costs.dispatch : 0);
    },
  });
}
