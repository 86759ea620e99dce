import { elementsOf } from "../../elements/elements.ts";
import {
  type AcrossSides,
  parseSlicePolicy,
  type SlicePolicy,
  sliceSets,
  threadResults,
  workgroupThreads,
} from "../../kernels/slices/policy.ts";
import {
  unitSets,
  unitSliceBytes,
  unitSlicePolicies,
  type UnitSlicePolicy,
  unitSliceThreads,
} from "../../kernels/slices/unit_loop.ts";
import { allowsUnits } from "../../kernels/main_loop_variant.ts";
import type { DeviceModel } from "../device/model.ts";
import { type Refusal, refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { slicePolicyFits, unknownPolicy } from "../winograd_fused/policies.ts";
import type { CacheBlock } from "./baseline.ts";
import { DIRECT, type Omega, slicesAlong, slicesAtOnce, slicesOf, threadSets } from "./omega.ts";

/** Tiles of a workgroup for each α, or as many slices at once of a nested kernel, in the order of preference; the first that fits the device is taken. */
const POLICIES: Readonly<Record<number, readonly SlicePolicy[]>> = Object.fromEntries(
  Object.entries({
    2: "128x64x8_8x8 64x64x8_8x8 32x32x8_4x4",
    4: "64x64x8_8x16 64x64x8_8x8 32x32x8_8x8 32x32x8_4x4",
    8: "64x64x8_8x16 64x32x8_8x8 32x32x4_8x8 16x32x4_4x4",
    16:
      "64x32x8_8x16 64x32x7_8x16 64x32x8_8x8 64x32x7_8x8 32x32x8_8x8 32x32x4_8x8 16x16x4_4x4 16x16x2_4x4",
  }).map(([alpha, names]) => [alpha, names.split(" ").map((name) => parseSlicePolicy(name)!)]),
);

/** The same of tiles in f16, which leave room for twice the depth on small devices. */
const HALF_POLICIES: typeof POLICIES = {
  ...POLICIES,
  8: POLICIES[8]!.toSpliced(2, 0, parseSlicePolicy("32x32x8_8x8")!),
};

/** Slices that one kernel of a share multiplies: those in these rows and columns of a tile's. */
export interface SliceSet {
  readonly rows: readonly number[];
  readonly columns: readonly number[];
}

/** The slices of each kernel that a share takes: of some rows each where threads multiply, of some columns on matrix units. */
export function sliceSetsOf(request: PlanRequest, omega: Omega): SliceSet[] {
  const [rows, columns] = slicesAlong(omega);
  const [rowSets, columnSets] = unitPolicyOf(request, omega) === undefined
    ? [threadSets(omega), 1]
    : [1, unitSets(columns)];
  return sliceSets(rows, rowSets).flatMap((rows) =>
    sliceSets(columns, columnSets).map((columns) => ({ rows, columns }))
  );
}

/** Operands whose loaders store along the depth. */
export function operandsAcross({ layout }: Pick<PlanRequest, "layout">): AcrossSides {
  return layout === "nhwc" ? [] : ["a", "b"];
}

/** Refuses a policy that is none, and kernels of which no policy fits the device. */
export function refusePolicies(
  request: PlanRequest,
  kernels: readonly Omega[],
): Refusal | undefined {
  const { policy } = request;
  if (policy !== undefined && parseSlicePolicy(policy) === undefined) return unknownPolicy(policy);
  const without = kernels.find((omega) => findPolicy(request, omega) === undefined);
  return without === undefined
    ? undefined
    : refusal("limit", `no policy of ${slicesAtOnce(without)} slices fits the device`);
}

/**
 * The policy of a kernel on a device: the one asked for where it fits, as two kernels may differ in what they can. For
 * requests that {@linkcode refusePolicies} lets pass.
 */
export function policyOf(request: PlanRequest, omega: Omega): SlicePolicy {
  return findPolicy(request, omega)!;
}

function findPolicy(request: PlanRequest, omega: Omega): SlicePolicy | undefined {
  const { tile } = elementsOf(request);
  const fits = (policy: SlicePolicy) =>
    slicePolicyFits(policy, slicesAtOnce(omega), operandsAcross(request), request.limits, tile);
  if (request.policy !== undefined) {
    const forced = parseSlicePolicy(request.policy);
    if (forced !== undefined && fits(forced)) return forced;
  }
  const policies = tile === "f16" ? HALF_POLICIES : POLICIES;
  return policies[omega === DIRECT ? omega.alpha : slicesAtOnce(omega)]!.find(fits);
}

/** Channels of a group come in vectors of so many halves. */
const WIDE = 8;

/**
 * The policy of a kernel on matrix units, where its data is rounded to f16 anyhow and results to it, so that nothing is seen of how
 * units cut sums off: of nhwc, whose channels lie in whole vectors. Undefined where threads multiply: with Ω2(1,1)
 * and a buffer of registers too.
 */
export function unitPolicyOf(request: PlanRequest, omega: Omega): UnitSlicePolicy | undefined {
  const { problem, layout, limits, matrixUnits, policy } = request;
  const { tile, accumulate, result } = elementsOf(request);
  const { groups, inChannels, outChannels } = problem;
  if (
    matrixUnits === undefined || policy !== undefined || !allowsUnits(request.variant) ||
    tile !== "f16" || accumulate !== "f32" || result !== "f16" || layout !== "nhwc" ||
    omega === DIRECT || omega.rows !== undefined ||
    [inChannels, outChannels].some((channels) => channels / groups % WIDE !== 0)
  ) return undefined;
  return unitSlicePolicies(slicesOf(omega), matrixUnits).find((one) =>
    unitSliceBytes(one) <= limits.maxComputeWorkgroupStorageSize &&
    unitSliceThreads(one) <= limits.maxComputeInvocationsPerWorkgroup
  );
}

/** Channels that threads load at once: of nhwc four, where these lie in whole vectors and each thread has some of both operands. */
export function loadVector(request: PlanRequest, omega: Omega): 1 | 4 {
  const { problem: { groups, inChannels, outChannels }, layout } = request;
  const policy = findPolicy(request, omega);
  if (layout !== "nhwc" || policy === undefined) return 1;
  const vectors = Math.min(policy.rows, policy.columns) * policy.depth / 4;
  return vectors >= workgroupThreads(policy, slicesAtOnce(omega)) &&
      [inChannels, outChannels].every((channels) => channels / groups % 4 === 0)
    ? 4
    : 1;
}

/** The cache block of a kernel. */
export function blockOf(request: PlanRequest, device: DeviceModel, omega: Omega): CacheBlock {
  const units = unitPolicyOf(request, omega);
  if (units === undefined) return cacheBlock(device, policyOf(request, omega), slicesAtOnce(omega));
  return {
    outChannels: units.rows,
    inChannels: units.columns,
    perMultiprocessor: resident(device, unitSliceThreads(units) * REGISTERS.many),
  };
}

/** Registers of a thread with up to 64 sums and with more. */
const REGISTERS = { few: 128, many: 256 };

/** The cache block of a kernel's policy, and the workgroups of it that a multiprocessor holds by their registers. */
export function cacheBlock(
  device: DeviceModel,
  policy: SlicePolicy,
  slices: number,
): CacheBlock {
  const each = threadResults(policy, slices) > 64 ? REGISTERS.many : REGISTERS.few;
  const registers = workgroupThreads(policy, slices) * each;
  return {
    outChannels: policy.rows,
    inChannels: policy.columns,
    perMultiprocessor: resident(device, registers),
  };
}

/** Workgroups of so many registers that a multiprocessor holds. */
function resident({ registers }: DeviceModel, each: number): number {
  return Math.max(1, Math.floor(registers / each));
}
