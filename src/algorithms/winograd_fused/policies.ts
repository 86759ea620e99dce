import {
  parseSlicePolicy,
  sliceBytes,
  type SlicePolicy,
  slicePolicyName,
  sliceThreads,
} from "../../kernels/slices/policy.ts";
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

/** Whether a device can run `slices` of a policy. */
export function slicePolicyFits(
  policy: SlicePolicy,
  slices: number,
  padded: boolean,
  limits: DeviceLimits,
): boolean {
  const threads = sliceThreads(policy) * slices;
  return threads <= limits.maxComputeInvocationsPerWorkgroup &&
    sliceBytes(policy, slices, padded) <= limits.maxComputeWorkgroupStorageSize;
}

/** Longer sums are flushed: up to here one accumulator has a MARE of 4e-7 (docs/accuracy.md), of large tiles half. */
const FLUSH_ABOVE = 768;
/** Slices of a large tile, above those of F(4x4,3x3). */
const LARGE_SLICES = 37;
/** Products between flushes where the user does not say. */
const FLUSH_EVERY = 128;
/** Results of a thread, and of a workgroup, above which a second set of accumulators does not stay in registers. */
const FLUSHED_RESULTS = { thread: 64, workgroup: 16_384 };

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

/**
 * The policy of the request, or the first that fits the device. Refused if it, or none, fits.
 *
 * @param flushed Whether there are second accumulators.
 */
export function choosePolicy(
  request: PlanRequest,
  slices: number,
  padded: boolean,
  flushed: boolean,
): Planned<SlicePolicy> {
  const { limits } = request;
  if (request.policy !== undefined) {
    const policy = parseSlicePolicy(request.policy);
    if (policy === undefined) return unknownPolicy(request.policy);
    if (slicePolicyFits(policy, slices, padded, limits)) return policy;
    return refusal(
      "limit",
      `${slices} slices of policy ${slicePolicyName(policy)} do not fit the device's ` +
        `${limits.maxComputeWorkgroupStorageSize} bytes of workgroup memory and ` +
        `${limits.maxComputeInvocationsPerWorkgroup} invocations`,
    );
  }
  const policy = POLICIES.find((one) =>
    slicePolicyFits(one, slices, padded, limits) &&
    (!flushed || (one.threadRows * one.threadColumns <= FLUSHED_RESULTS.thread &&
      slices * one.rows * one.columns <= FLUSHED_RESULTS.workgroup))
  );
  if (policy === undefined) {
    return refusal(
      "limit",
      `the ${slices} products of a tile fit no policy in the device's ` +
        `${limits.maxComputeWorkgroupStorageSize} bytes of workgroup memory and ` +
        `${limits.maxComputeInvocationsPerWorkgroup} invocations`,
    );
  }
  return policy;
}
