import type { Scalar } from "../../elements/scalar.ts";
import {
  fullVariant,
  type OutputLayout,
  outputLayoutName,
} from "../../kernels/main_loop_variant.ts";
import { sliceBytes, unfitPolicy } from "../../kernels/slices/memory.ts";
import {
  type AcrossSides,
  parseSlicePolicy,
  type SlicePolicy,
  slicePolicyName,
  workgroupThreads,
} from "../../kernels/slices/policy.ts";
import type { DeviceLimits } from "../plan.ts";
import { type Planned, type Refusal, refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { loopTime, policyShares } from "./loop_time.ts";
import type { SlicedProduct } from "./product.ts";

/** Tiles of a workgroup in the order of preference; the first that fits the device and the slices is taken. */
const POLICIES = [
  "64x64x8_8x16",
  "64x64x8_8x8",
  "64x32x8_8x8",
  "32x32x8_8x8",
  "32x32x4_8x8",
  "32x32x8_4x4",
  "32x32x4_4x4",
  "16x32x4_4x4",
  "16x16x4_4x4",
  "16x16x2_4x4",
  "8x8x4_4x4",
  "8x8x2_4x4",
].map((name) => parseSlicePolicy(name)!);

/** Operands whose loaders store along the depth: the image's, where neighbouring threads read neighbouring channels. */
export function imageAcross({ layout }: Pick<PlanRequest, "layout">): AcrossSides {
  return layout === "nhwc" ? ["a"] : [];
}

/** Whether a device can run `slices` of a policy, whose tile holds `scalar`. */
export function slicePolicyFits(
  policy: SlicePolicy,
  slices: number,
  across: AcrossSides,
  limits: DeviceLimits,
  scalar: Scalar = "f32",
  layout: OutputLayout = "threads",
): boolean {
  const threads = workgroupThreads(policy, slices);
  return threads <= limits.maxComputeInvocationsPerWorkgroup &&
    unfitPolicy(policy, scalar, layout) === undefined &&
    sliceBytes(policy, slices, across, scalar, layout) <= limits.maxComputeWorkgroupStorageSize;
}

/** Refuses a name that is no policy of sliced products. */
export function unknownPolicy(text: string): Refusal {
  const [, tile, way] = /^([\dx]+_[\dx]+)([ad])$/.exec(text) ?? [];
  if (tile !== undefined) {
    const why = way === "a" ? "threads have one slice" : "workgroups have one tile";
    return refusal("problem", `policy ${text} is gone, ${why}: use ${tile}`);
  }
  return refusal(
    "problem",
    `policy ${text} is none of fused Winograd's, expected one such as 64x32x8_8x8 (rows x columns ` +
      "x depth of a workgroup, rows x columns of a thread: multiples of 4 that divide the workgroup's)",
  );
}

/**
 * The policy of the request; or the one that is predicted to be fastest of those that are measured; or the first that fits.
 * Refused if it, or none, fits.
 */
export function choosePolicy(
  request: PlanRequest,
  product: SlicedProduct,
): Planned<SlicePolicy> {
  const { limits } = request;
  const { slices } = product;
  const across = imageAcross(request);
  const { outputLayout: layout } = fullVariant(request.variant);
  const laid = layout === "threads" ? "" : ` with ${outputLayoutName(layout)}`;
  if (request.policy !== undefined) {
    const policy = parseSlicePolicy(request.policy);
    if (policy === undefined) return unknownPolicy(request.policy);
    if (slicePolicyFits(policy, slices, across, limits, "f32", layout)) return policy;
    const unfit = unfitPolicy(policy, "f32", layout);
    if (unfit !== undefined) return refusal("problem", unfit);
    return refusal(
      "limit",
      `${slices} slices of policy ${slicePolicyName(policy)}${laid} do not fit the device's ` +
        `${limits.maxComputeWorkgroupStorageSize} bytes of workgroup memory and ` +
        `${limits.maxComputeInvocationsPerWorkgroup} invocations`,
    );
  }
  const fits = (one: SlicePolicy) => slicePolicyFits(one, slices, across, limits, "f32", layout);
  const policy = measuredPolicy(request, product, fits) ?? POLICIES.find(fits);
  if (policy === undefined) {
    return refusal(
      "limit",
      `the ${slices} products of a tile${laid} fit no policy in the device's ` +
        `${limits.maxComputeWorkgroupStorageSize} bytes of workgroup memory and ` +
        `${limits.maxComputeInvocationsPerWorkgroup} invocations`,
    );
  }
  return policy;
}

/** Channels up to which policies for few were measured. */
const FEW_CHANNELS = 4;

/** The policies that are measured for a product. */
function measuredPolicies(request: PlanRequest, { channels, tile }: SlicedProduct): SlicePolicy[] {
  const { policies, few } = policyShares(request, tile);
  const names = [...Object.keys(policies), ...(channels <= FEW_CHANNELS ? Object.keys(few) : [])];
  return names.flatMap((name) => parseSlicePolicy(name) ?? []);
}

/** The fastest of the measured policies that fit. */
function measuredPolicy(
  request: PlanRequest,
  product: SlicedProduct,
  fits: (policy: SlicePolicy) => boolean,
): SlicePolicy | undefined {
  let best: SlicePolicy | undefined, least = Infinity;
  for (const policy of measuredPolicies(request, product).filter(fits)) {
    const time = loopTime(request, product, policy);
    if (time < least) [best, least] = [policy, time];
  }
  return best;
}
