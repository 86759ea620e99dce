import type { Scalar } from "../../elements/scalar.ts";
import { paddedChannels } from "../../kernels/slices/geometry.ts";
import { sliceBlocks, type SplitBlocks } from "../../kernels/slices/loop.ts";
import {
  type AcrossSides,
  parseSlicePolicy,
  sliceBytes,
  type SlicePolicy,
  slicePolicyName,
  threadResults,
  unfitPolicy,
  workgroupThreads,
} from "../../kernels/slices/policy.ts";
import { deviceOf } from "../device/h200.ts";
import { type DeviceModel, moveTime, productTime, waveTime } from "../device/model.ts";
import type { DeviceLimits } from "../plan.ts";
import { type Planned, type Refusal, refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { partialBytes, resultBytes } from "../tensors.ts";
import {
  chainSteps,
  depthSteps,
  imageVectors,
  isWholeDepth,
  type SlicedProduct,
} from "./geometry.ts";

/** Registers of a thread with up to 16 results, up to 64 and more. */
const REGISTERS = { thin: 64, few: 128, many: 256 };
/** Results of a thread that 64 and 128 registers hold. */
const THIN_RESULTS = 16;
const FEW_RESULTS = 64;

/** Registers and warps of a policy's workgroup, and the blocks that a multiprocessor runs at once. */
function residents(device: DeviceModel, policy: SlicePolicy, slices: number) {
  const threads = workgroupThreads(policy, slices);
  const results = threadResults(policy, slices);
  const wide = results > FEW_RESULTS;
  const registers = threads *
    REGISTERS[wide ? "many" : results <= THIN_RESULTS ? "thin" : "few"];
  return {
    registers,
    blocks: Math.max(1, Math.floor(device.registers / registers)),
    // A thread with many results has the instruction-level parallelism of two with few.
    warps: threads / 32 * (wide ? 2 : 1),
  };
}

function productBlocks(
  { layout }: PlanRequest,
  { tiles, targets, groups }: SlicedProduct,
  policy: SlicePolicy,
): number {
  const lines = layout === "nhwc";
  return sliceBlocks({
    rows: lines ? tiles : targets,
    columns: lines ? targets : tiles,
    batches: groups,
  }, policy);
}

/**
 * The split blocks of a product: those beyond whole waves of full blocks; all blocks where a full depth is flushed or the user sets the
 * number of splits. None where whole waves hold all.
 */
export function splitBlocks(
  request: PlanRequest,
  product: SlicedProduct,
  policy: SlicePolicy,
): SplitBlocks | undefined {
  const { splits } = product;
  if (splits === 1) return undefined;
  const blocks = productBlocks(request, product, policy);
  const device = deviceOf(request);
  const wave = device.multiprocessors * residents(device, policy, product.slices).blocks;
  const auto = request.schedule?.splits === undefined;
  const first = auto && isWholeDepth(request, product) ? Math.floor(blocks / wave) * wave : 0;
  const count = blocks - first;
  return count === 0 ? undefined : {
    first,
    count,
    splits,
    steps: depthSteps(product, policy.depth),
  };
}

/** Bytes that memory moves at once. */
const SECTOR = 32;

const FLOAT_BYTES = 4;

/** Cost of a workgroup's prologue, in steps of its loop. */
const FILL_STEPS = 0.5;

/** Whether channels lie innermost. */
function isLines({ layout }: PlanRequest): boolean {
  return layout === "nhwc";
}

/** Depth by which policies for few channels are named. */
const FEW_DEPTH = 4;

/** Measured speeds of policies relative to each other, by name: of any depth, and for few channels. */
function policyShares(
  request: PlanRequest,
  tile: string,
): Readonly<Record<"policies" | "few", Readonly<Record<string, number>>>> {
  const { policies, few } = deviceOf(request).shares.sliced;
  const way = imageVectors(request) ? "images" : isLines(request) ? "lines" : "scattered";
  return { policies: policies[way][tile] ?? {}, few: few[way][tile] ?? {} };
}

/** A policy's relative speed; that of the slowest measured one of its kind where it was not measured. */
function policyShare(request: PlanRequest, tile: string, policy: SlicePolicy): number {
  const { policies, few } = policyShares(request, tile);
  const known = { ...policies, ...few };
  const named = slicePolicyName({ ...policy, depth: Math.max(policy.depth, FEW_DEPTH) });
  const like = () =>
    Object.entries(known).filter(([name]) =>
      parseSlicePolicy(name)?.allSlices === policy.allSlices
    );
  return known[named] ?? Math.min(1, ...like().map(([, share]) => share));
}

/** Microseconds of a policy's mainloop: waves of workgroups, each of which multiplies and stores its results at each flush. */
export function loopTime(
  request: PlanRequest,
  product: SlicedProduct,
  policy: SlicePolicy,
): number {
  const { slices, axes, aligned, targets, tiles, groups } = product;
  const device = deviceOf(request);
  const lines = isLines(request);
  const results = threadResults(policy, slices);
  const wide = results > FEW_RESULTS;
  const thin = results <= THIN_RESULTS;
  const { registers, blocks: resident, warps } = residents(device, policy, slices);
  const places = policy.rows * policy.columns;
  const { rates, shares, multiprocessors } = device;
  const { one, oneWide, two } = rates.sliced;
  const rate = (axes > 1 ? two : wide ? oneWide : one) *
    policyShare(request, product.tile, policy) *
    (registers > device.registers ? shares.sliced.spilled : 1) *
    (thin ? shares.sliced.thin : 1);
  const blocks = productBlocks(request, product, policy);
  // Neighbouring threads store a vector of images each: half a sector where the batch is one vector.
  const narrow = imageVectors(request) && request.problem.batch * resultBytes(request) < SECTOR;
  // The share of blocks that is no padding; partial results include it.
  const real = groups * targets * tiles / Math.max(1, blocks * places);
  /** Of so many workgroups with so many splits, which store coalesced vectors in all layouts. */
  const time = (workgroups: number, splits: number) => {
    const { longest, chain, chains } = chainSteps(request, { ...product, splits }, policy.depth);
    const multiply = productTime(
      multiprocessors * places * slices * (longest + FILL_STEPS) * policy.depth,
      rate,
    );
    const parts = chains === "stored" ? Math.ceil(longest / chain) : 1;
    const bytes = splits > 1 ? partialBytes(request) : resultBytes(request);
    const stored = parts * places * product.results;
    const vectors = lines || splits > 1 || imageVectors(request);
    const scattered = rates.slicedStore.scattered *
      (axes > 1 || request.layout !== "nchw"
        ? 1
        : shares.sliced.rowStores[aligned ? "fours" : "cut"]);
    const [own, filled] = splits > 1
      ? [rates.stream, 1]
      : [rates.stream * (vectors && !narrow ? 1 : shares.sliced.rowStores.own), real];
    // Threads with all slices transform their own sums: they store without waiting, while other workgroups multiply.
    const store = policy.allSlices
      // f16 was not measured: it counts as f32.
      ? moveTime(
        Math.max(bytes, FLOAT_BYTES) * stored * workgroups * filled,
        vectors || aligned ? own : scattered,
      )
      : moveTime(bytes * stored * multiprocessors, vectors ? rates.slicedStore.lines : scattered) *
        Math.ceil(workgroups / multiprocessors);
    return multiply * waveTime(device, workgroups, resident, warps) + store;
  };
  const split = splitBlocks(request, product, policy);
  if (split === undefined) return time(blocks, 1);
  const shared = time(split.count * split.splits, split.splits);
  return split.first === 0 ? shared : time(split.first, 1) + shared;
}

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
): boolean {
  const threads = workgroupThreads(policy, slices);
  return threads <= limits.maxComputeInvocationsPerWorkgroup &&
    unfitPolicy(policy, slices, scalar) === undefined &&
    sliceBytes(policy, slices, across, scalar) <= limits.maxComputeWorkgroupStorageSize;
}

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
 * The request's policy; else the fastest of the measured ones; else the first that fits. Refused if it, or none, fits.
 */
export function choosePolicy(request: PlanRequest, product: SlicedProduct): Planned<SlicePolicy> {
  const { limits } = request;
  const { slices } = product;
  const across = imageAcross(request);
  if (request.schedule?.policy !== undefined) {
    const policy = parseSlicePolicy(request.schedule?.policy);
    if (policy === undefined) return unknownPolicy(request.schedule?.policy);
    if (slicePolicyFits(policy, slices, across, limits, "f32")) return policy;
    const unfit = unfitPolicy(policy, slices, "f32");
    if (unfit !== undefined) return refusal("problem", unfit);
    return refusal(
      "limit",
      `${slices} slices of policy ${slicePolicyName(policy)} do not fit the device's ` +
        `${limits.maxComputeWorkgroupStorageSize} bytes of workgroup memory and ` +
        `${limits.maxComputeInvocationsPerWorkgroup} invocations`,
    );
  }
  const most = deviceOf(request).threadResults;
  const fits = (one: SlicePolicy) =>
    threadResults(one, slices) <= most &&
    slicePolicyFits(one, slices, across, limits, "f32");
  const policy = measuredPolicy(request, product, fits) ?? POLICIES.find(fits);
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
