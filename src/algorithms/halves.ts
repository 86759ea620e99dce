/** What convolutions of f32 in halves have in common. */
import { fullVariant } from "../kernels/main_loop_variant.ts";
import { isMatrixPolicyName } from "../kernels/matrix_policies.ts";
import type { UnitChain } from "../kernels/matrix_units.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { splitDrift } from "../problem/split_drift.ts";
import { type Cut, cutArithmetic } from "./cut.ts";
import { deviceOf } from "./device/h200.ts";
import { refuseSplitMath } from "./math.ts";
import { refuseBindings } from "./passes.ts";
import type { Plan } from "./plan.ts";
import { productUnit } from "./product.ts";
import { isRefusal, type Planned, refusal } from "./refusal.ts";
import type { PlanRequest } from "./request.ts";

/**
 * The request with how its products are multiplied: what was asked for, or what takes less time where the device's model says that
 * halves may be taken at all.
 *
 * @param algorithm Products of a sum, of a request in halves, and the microseconds of a request whose kind of product is said.
 */
export function inMath(
  request: PlanRequest,
  { depth, time, least = 0, clearly }: {
    depth(split: PlanRequest): number;
    time(request: PlanRequest): Planned<number>;
    /** Products of a sum from which on `auto` weighs halves. */
    readonly least?: number;
    /** `auto` takes halves only where they are predicted to take less than this share of f32's time. */
    readonly clearly: number;
  },
): Planned<PlanRequest> {
  const { dtype, math = "auto", policy, exact } = request;
  const { math: _, ...plain } = request;
  if (math === "f32" || dtype !== "f32" && math === "auto") return plain;
  const split = { ...request, math: "f16x3" } as const;
  const products = depth(split);
  const refused = refuseSplitMath({
    dtype,
    depth: products,
    hasUnit: productUnit(split) !== undefined,
  });
  const { matrixUnits, microKernel } = fullVariant(request.variant);
  if (math === "f16x3") {
    if (refused !== undefined) return refused;
    return matrixUnits && microKernel ? split : refusal(
      "problem",
      "math f16x3 multiplies on matrix units, which the variant leaves out",
    );
  }
  if (
    refused !== undefined || exact || !matrixUnits || !microKernel || products < least ||
    deviceOf(request).shares.f16x3 === 0 || policy !== undefined && !isMatrixPolicyName(policy)
  ) {
    return plain;
  }
  const [halves, whole] = [time(split), time(plain)];
  // No other than these multiplies by a tile of matrix units.
  if (isRefusal(halves)) return policy === undefined ? plain : split;
  return isRefusal(whole) || halves < clearly * whole ? split : plain;
}

/**
 * Plans a request as {@linkcode inMath} has it; in f32 where nobody asked for halves and these take bindings or workspace that there is
 * no room for.
 */
export function planInMath(
  asked: PlanRequest,
  request: Planned<PlanRequest>,
  plan: (request: PlanRequest) => Planned<Plan>,
): Planned<Plan> {
  if (isRefusal(request)) return request;
  const planned = plan(request);
  if (request.math !== "f16x3" || asked.math === "f16x3" || asked.policy !== undefined) {
    return planned;
  }
  const { maxWorkspaceBytes = Infinity, limits } = asked;
  const fits = !isRefusal(planned) && planned.workspaceBytes <= maxWorkspaceBytes &&
    refuseBindings(planned, limits) === undefined;
  return fits ? planned : plan({ ...asked, math: "f32" });
}

/** Matrices that are filled less than this have clearly fewer products a step. */
const FILLED = 0.9;

/**
 * How products of halves are summed; of a chain two values are one product.
 *
 * @param depth Values along the depth, padded.
 * @param products Of a sum.
 * @param filled Share of the values of matrices that are no padding.
 */
export function halvesArithmetic(
  cut: Cut,
  depth: number,
  products: number,
  unit: UnitChain | undefined,
  cutsOff: boolean | undefined,
  filled = 1,
): PlanArithmetic {
  const steps = Math.ceil(depth / cut.policy.depth);
  const { chain, segment, unit: step = 1, ...rest } = cutArithmetic(cut, steps, unit);
  const share = filled < FILLED ? filled : 1;
  const real = (values: number) => Math.max(1, Math.round(share * values));
  const sums = {
    ...rest,
    unit: real(step),
    ...(chain === undefined ? {} : { chain: real(chain / 2) }),
    ...(segment === undefined ? {} : { segment: real(segment / 2) }),
  };
  return { ...sums, ...splitDrift(sums, products, cutsOff) };
}
