import type { Scalar } from "../../elements/scalar.ts";
import {
  fullVariant,
  type OutputLayout,
  outputLayoutName,
} from "../../kernels/main_loop_variant.ts";
import { paddedChannels } from "../../kernels/slices/geometry.ts";
import {
  type AcrossSides,
  parseSlicePolicy,
  sliceBytes,
  type SlicePolicy,
  slicePolicyName,
  unfitPolicy,
  workgroupThreads,
} from "../../kernels/slices/policy.ts";
import type { DeviceLimits } from "../plan.ts";
import { type Planned, type Refusal, refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { isLines, loopTime, policyShares } from "./loop_time.ts";
import { imageVectors, type SlicedProduct } from "./product.ts";

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
    unfitPolicy(policy, slices, scalar, layout) === undefined &&
    sliceBytes(policy, slices, across, scalar, layout) <= limits.maxComputeWorkgroupStorageSize;
}

/** Refuses a name that is no policy of sliced products. */
export function unknownPolicy(text: string): Refusal {
  const [, tile] = /^([\dx]+_[\dx]+)d$/.exec(text) ?? [];
  if (tile !== undefined) {
    return refusal("problem", `policy ${text} is gone, workgroups have one tile: use ${tile}`);
  }
  return refusal(
    "problem",
    `policy ${text} is none of fused Winograd's, expected one such as 64x32x8_8x8 (rows x columns ` +
      "x depth of a workgroup, rows x columns of a thread: multiples of 4 that divide the workgroup's; " +
      "with a behind it where a thread has all slices)",
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
    const unfit = unfitPolicy(policy, slices, "f32", layout);
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

/** Channels up to which policies for few were measured, ... */
const FEW_CHANNELS = 4;
/** ... and of threads with all slices, along three taps, where channels or images lie innermost. */
const FEW_BLOCKED = 12;

/** The policies that are measured for a product, of those for few channels as deep as it takes. */
function measuredPolicies(request: PlanRequest, product: SlicedProduct): SlicePolicy[] {
  const { channels, tile } = product;
  const { policies, few } = policyShares(request, tile);
  const parsed = (shares: Readonly<Record<string, number>>) =>
    Object.keys(shares).flatMap((name) => parseSlicePolicy(name) ?? []);
  const deep = parsed(policies);
  if (channels <= FEW_CHANNELS) {
    const depth = Math.max(1, channels);
    return [...deep, ...parsed(few).map((one) => one.allSlices ? { ...one, depth } : one)];
  }
  const blocked = channels <= FEW_BLOCKED && tile.endsWith(",3)") &&
    (isLines(request) || imageVectors(request));
  if (!blocked) return deep;
  // Of three and four channels at a time those that leave less of the last block empty.
  const depth = paddedChannels(channels, 3) < paddedChannels(channels, 4) ? 3 : 4;
  const own = parsed(few).filter(({ allSlices }) => allSlices);
  return [...deep, ...own.map((one) => ({ ...one, depth }))];
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
