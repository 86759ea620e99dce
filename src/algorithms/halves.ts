/** What products and convolutions of f32 in halves have in common. */
import { isMatrixPolicyName } from "../kernels/matrix_policies.ts";
import type { UnitChain } from "../kernels/matrix_units.ts";
import { MOST_SPLIT_DEPTH } from "../kernels/split_rescale.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { splitDrift } from "../problem/split_rounding.ts";
import { type Cut, cutArithmetic } from "./cut.ts";
import { deviceOf } from "./device/h200.ts";
import { refuseBindings } from "./passes.ts";
import type { Plan } from "./plan.ts";
import { productUnit } from "./product.ts";
import { isRefusal, type Planned, type Refusal, refusal } from "./refusal.ts";
import type { PlanRequest } from "./request.ts";

/** Products of a sum from which on `auto` weighs halves at all. */
export const LEAST_SPLIT_DEPTH = 32;

/** Why products of this depth cannot be made of halves. */
export function refuseSplitMath({ dtype, depth, hasUnit }: {
  readonly dtype: string;
  readonly depth: number;
  /** Whether there is a matrix unit for them. */
  readonly hasUnit: boolean;
}): Refusal | undefined {
  if (dtype !== "f32") {
    return refusal("problem", `math f16x3 is of f32 operands, the dtype is ${dtype}`);
  }
  if (depth >= MOST_SPLIT_DEPTH) {
    return refusal("problem", `math f16x3 takes sums of fewer than 2^24 products, not ${depth}`);
  }
  return hasUnit ? undefined : refusal(
    "limit",
    "math f16x3 wants matrix units of f16 with f32 sums, and there are none: wgconv devices --backend dawn lists a device's",
  );
}

/** What of an algorithm decides whether its products are of halves. */
interface SplitChoice {
  /** Products of a sum. */
  readonly products: number;
  readonly hasUnit: boolean;
  /** Products of a sum from which on `auto` weighs halves. */
  readonly least?: number;
  /** `auto` takes halves only where they are predicted to take less than this share of f32's time. */
  readonly clearly: number;
  /** Predicted to take so much, of halves or in f32. */
  time(math: "f16x3" | "f32"): Planned<number>;
}

/** How f32 is multiplied: as is asked for, or what takes less time where the device's model says that halves may be taken at all. */
export function chooseSplit(
  request: Pick<PlanRequest, "math" | "schedule" | "exact" | "device"> & {
    readonly dtype: string;
  },
  { products, hasUnit, least = 0, clearly, time }: SplitChoice,
): Planned<"f16x3" | "f32"> {
  const { dtype, math = "auto", exact = false, schedule: { policy } = {} } = request;
  const refused = refuseSplitMath({ dtype, depth: products, hasUnit }) ??
    (request.schedule?.matrixUnits === false
      ? refusal("problem", "math f16x3 multiplies on matrix units, which the variant leaves out")
      : undefined);
  if (math === "f16x3") return refused ?? "f16x3";
  if (
    math === "f32" || refused !== undefined || exact || products < least ||
    deviceOf(request).shares.f16x3 === 0 || policy !== undefined && !isMatrixPolicyName(policy)
  ) {
    return "f32";
  }
  const [halves, whole] = [time("f16x3"), time("f32")];
  // No other than these multiplies by a tile of matrix units.
  if (isRefusal(halves)) return policy === undefined ? "f32" : "f16x3";
  return isRefusal(whole) || halves < clearly * whole ? "f16x3" : "f32";
}

/** A convolution's geometry in the math that its request names, or that is predicted to take less time. */
export interface MathGeometry<Geometry> {
  /** The request, which may leave it open. */
  readonly asked: PlanRequest;
  /** The same with its math. */
  readonly request: PlanRequest;
  readonly geometry: Geometry;
}

/** How an algorithm that multiplies halves derives and prices what it multiplies. */
interface MathChoice<Geometry> extends Pick<SplitChoice, "least" | "clearly"> {
  /** Products of a sum, given the request in halves. */
  products(split: PlanRequest): number;
  /** Of a request whose math is said. */
  geometry(request: PlanRequest): Planned<Geometry>;
  /** Predicted microseconds. */
  time(geometry: Geometry): number;
}

/** Chooses the math of a request and derives its geometry. */
export function geometryInMath<Geometry>(
  asked: PlanRequest,
  { products, geometry, time, ...choice }: MathChoice<Geometry>,
): Planned<MathGeometry<Geometry>> {
  const { math = "auto", ...plain } = asked;
  const split = { ...asked, math: "f16x3" } as const;
  const derived: { f16x3?: Planned<Geometry>; f32?: Planned<Geometry> } = {};
  const of = (math: "f16x3" | "f32") =>
    derived[math] ??= geometry(math === "f16x3" ? split : plain);
  const hasUnit = math !== "f32" && productUnit(split) !== undefined;
  const closed = math === "f32" || math === "auto" && (asked.dtype !== "f32" || !hasUnit);
  const chosen = closed ? "f32" : chooseSplit(asked, {
    ...choice,
    products: products(split),
    hasUnit,
    time(math) {
      const made = of(math);
      return isRefusal(made) ? made : time(made);
    },
  });
  if (isRefusal(chosen)) return chosen;
  const made = of(chosen);
  return isRefusal(made)
    ? made
    : { asked, request: chosen === "f16x3" ? split : plain, geometry: made };
}

/**
 * Plans what {@linkcode geometryInMath} derived; in f32 where nobody asked for halves and these take bindings or workspace that there
 * is no room for.
 *
 * @param derive The geometry of a request whose math is said.
 */
export function planInMath<Geometry>(
  { asked, request, geometry }: MathGeometry<Geometry>,
  derive: (request: PlanRequest) => Planned<Geometry>,
  plan: (geometry: Geometry) => Planned<Plan>,
): Planned<Plan> {
  const planned = plan(geometry);
  if (request.math !== "f16x3" || asked.math === "f16x3" || asked.schedule?.policy !== undefined) {
    return planned;
  }
  const { maxWorkspaceBytes = Infinity, limits } = asked;
  const fits = !isRefusal(planned) && planned.workspaceBytes <= maxWorkspaceBytes &&
    refuseBindings(planned, limits) === undefined;
  if (fits) return planned;
  const whole = derive({ ...asked, math: "f32" });
  return isRefusal(whole) ? whole : plan(whole);
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
