import type { Scalar } from "../../elements/scalar.ts";
import {
  fullVariant,
  type OutputLayout,
  outputLayoutName,
} from "../../kernels/main_loop_variant.ts";
import { sliceBytes, unfitSums } from "../../kernels/slices/memory.ts";
import {
  type AcrossSides,
  parseSlicePolicy,
  type SlicePolicy,
  slicePolicyName,
  sliceThreads,
} from "../../kernels/slices/policy.ts";
import { deviceOf } from "../device/h200.ts";
import type { DeviceLimits } from "../plan.ts";
import { type Planned, type Refusal, refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";

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

/** How a request's sums lie before the output transform. */
export function outputLayoutOf({ variant }: Pick<PlanRequest, "variant">): OutputLayout {
  return fullVariant(variant).outputLayout;
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
  const threads = sliceThreads(policy) * slices;
  return threads <= limits.maxComputeInvocationsPerWorkgroup &&
    unfitSums(policy, scalar, layout) === undefined &&
    sliceBytes(policy, slices, across, scalar, layout) <= limits.maxComputeWorkgroupStorageSize;
}

/** Longer sums are flushed: up to here one accumulator has a MARE of 4e-7 (docs/accuracy.md), of large tiles half. */
const FLUSH_ABOVE = 768;
/** Slices of a large tile, above those of F(4x4,3x3). */
const LARGE_SLICES = 37;
/** Products between flushes where the user does not say. */
const FLUSH_EVERY = 128;
/** Results of a thread, and of a workgroup, above which a second set of accumulators does not stay in registers. */
const FLUSHED_RESULTS = { thread: 64, workgroup: 24_576 };

/** Products between flushes for sums of `length`; 0 for none. */
export function flushEvery({ flush }: PlanRequest, slices: number, length: number): number {
  const most = slices < LARGE_SLICES ? FLUSH_ABOVE : FLUSH_ABOVE / 2;
  const every = flush ?? (length > most ? FLUSH_EVERY : 0);
  return every < length ? every : 0;
}

/** Refuses a name that is no policy of sliced products. */
export function unknownPolicy(text: string): Refusal {
  return refusal(
    "problem",
    `policy ${text} is none of fused Winograd's, expected one such as 64x32x8_8x8 (rows x columns ` +
      "x depth of a workgroup, rows x columns of a thread: multiples of 4 that divide the workgroup's)",
  );
}

/** A sliced product for which a policy is chosen. */
export interface SlicedProduct {
  /** "F(2x2,3x3)", and its slices. */
  readonly tile: string;
  readonly slices: number;
  /** Target channels of a group, and tiles of all images. */
  readonly targets: number;
  readonly tiles: number;
  /** Whether there are second accumulators. */
  readonly flushed: boolean;
}

/**
 * The policy of the request; or the one that the device is measured to be fastest with, tiles that are partly empty counted; or
 * the first that fits. Refused if it, or none, fits.
 */
export function choosePolicy(
  request: PlanRequest,
  product: SlicedProduct,
): Planned<SlicePolicy> {
  const { limits } = request;
  const { slices, flushed } = product;
  const across = imageAcross(request);
  const layout = outputLayoutOf(request);
  const laid = layout === "threads" ? "" : ` with ${outputLayoutName(layout)}`;
  if (request.policy !== undefined) {
    const policy = parseSlicePolicy(request.policy);
    if (policy === undefined) return unknownPolicy(request.policy);
    if (slicePolicyFits(policy, slices, across, limits, "f32", layout)) return policy;
    const unfit = unfitSums(policy, "f32", layout);
    if (unfit !== undefined) return refusal("problem", unfit);
    return refusal(
      "limit",
      `${slices} slices of policy ${slicePolicyName(policy)}${laid} do not fit the device's ` +
        `${limits.maxComputeWorkgroupStorageSize} bytes of workgroup memory and ` +
        `${limits.maxComputeInvocationsPerWorkgroup} invocations`,
    );
  }
  const fits = (one: SlicePolicy) =>
    slicePolicyFits(one, slices, across, limits, "f32", layout) &&
    (!flushed || (one.threadRows * one.threadColumns <= FLUSHED_RESULTS.thread &&
      slices * one.rows * one.columns <= FLUSHED_RESULTS.workgroup));
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

/** What policies reach of each other where that is measured, by name. */
export function policyShares(
  request: PlanRequest,
  tile: string,
): Readonly<Record<string, number>> {
  const { policies } = deviceOf(request).shares.sliced;
  return policies[request.layout === "nhwc" ? "lines" : "scattered"][tile] ?? {};
}

/** The fastest of the measured policies that fit, by its rate and by what of its tiles is results. */
function measuredPolicy(
  request: PlanRequest,
  { tile, targets, tiles }: SlicedProduct,
  fits: (policy: SlicePolicy) => boolean,
): SlicePolicy | undefined {
  const lines = request.layout === "nhwc";
  const rates = policyShares(request, tile);
  const [rows, columns] = lines ? [tiles, targets] : [targets, tiles];
  const share = (count: number, extent: number) => count / (Math.ceil(count / extent) * extent);
  let best: SlicePolicy | undefined, most = 0;
  for (const [name, rate] of Object.entries(rates)) {
    const policy = parseSlicePolicy(name);
    if (policy === undefined || !fits(policy)) continue;
    const used = rate * share(rows, policy.rows) * share(columns, policy.columns);
    if (used > most) [best, most] = [policy, used];
  }
  return best;
}
