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
import type { ConvProblem } from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { deviceOf } from "../device/h200.ts";
import type { DeviceModel } from "../device/model.ts";
import { type Refusal, refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { slicePolicyFits, unknownPolicy } from "../winograd_fused/policies.ts";
import {
  DIRECT,
  type Omega,
  slicesAlong,
  slicesAtOnce,
  slicesOf,
  threadSets,
  tileElements,
} from "./omega.ts";
import type { KernelPair } from "./pair.ts";

/** What a workgroup computes: `outChannels` (B_N) x `inChannels` (B_M) tiles of n filter columns. */
export interface CacheBlock {
  readonly outChannels: number;
  readonly inChannels: number;
  /** Workgroups that fit one multiprocessor; 1 where absent. */
  readonly perMultiprocessor?: number;
}

/**
 * Workgroups of one segment: filter elements / n · ceil(O_C / B_N) · ceil(I_C / B_M), for each group.
 *
 * @throws {RangeError} if what a tile yields does not divide the filter's elements.
 */
export function blockCount(
  problem: Pick<ConvProblem, "filterSize" | "inChannels" | "outChannels" | "groups">,
  omega: Omega,
  block: CacheBlock,
): number {
  const taps = elementCount(problem.filterSize);
  const { filter } = tileElements(omega);
  if (taps % filter !== 0) {
    throw new RangeError(
      `Cannot count blocks: a filter of ${
        problem.filterSize.join("x")
      } is not made of ${filter} elements at once`,
    );
  }
  return taps / filter * problem.groups *
    Math.ceil(problem.outChannels / problem.groups / block.outChannels) *
    Math.ceil(problem.inChannels / problem.groups / block.inChannels);
}

/** ρ of F(n, r) at a cache block: flops of the batched product for each element loaded. */
export function intensity(omega: Omega, block: CacheBlock): number {
  const [bn, bm] = [block.outChannels, block.inChannels];
  return 2 * bn * bm / (bn * tileElements(omega).gradient + bm * slicesOf(omega));
}

/** Workgroups of a cache block that run at one time on the whole device. */
export function workgroupsInFlight(
  { perMultiprocessor = 1 }: CacheBlock,
  { multiprocessors }: DeviceModel,
): number {
  return multiprocessors * perMultiprocessor;
}

export function filterElements(
  { filterSize, inChannels, outChannels, groups }: ConvProblem,
): number {
  return elementCount(filterSize) * inChannels / groups * outChannels;
}

export function dataElements(problem: ConvProblem): number {
  const { batch, inChannels, outChannels, inputSize, outputSize } = problem;
  return filterElements(problem) +
    batch * (elementCount(inputSize) * inChannels + elementCount(outputSize) * outChannels);
}

/**
 * Z_max as memory allows it: the most segments whose buckets stay within a share of the data.
 *
 * @param share Workspace as a multiple of the elements of X, ∇Y and ∇W.
 */
export function mostSegments(problem: ConvProblem, share: number): number {
  // Buckets of an empty ∇W have no elements.
  const bucket = Math.max(1, filterElements(problem));
  return 1 + Math.floor(share * dataElements(problem) / bucket);
}

/** b̂2 in rounds of workgroups in flight: one segment is enough from so many blocks on. */
const ENOUGH_ROUNDS = 4;
/** Rounds of workgroups in flight that are wanted: per unit of computation intensity, flops an element; at least, and at most. */
const ROUNDS = { perIntensity: 0.6, least: 3, most: 6 };
/** Z2: time of writing and reading buckets as a share of the kernels' time. */
const REDUCTION_SHARE = 0.05;
/** Accumulations a segment has at least. */
const LEAST_ACCUMULATIONS = 512;

/** Algorithm 1: the baseline segment count Ẑ of the first kernel, a whole number from 1. */
export function baselineSegments(
  problem: ConvProblem,
  { first }: KernelPair,
  block: CacheBlock,
  device: DeviceModel,
  workspaceShare: number,
): number {
  const inFlight = workgroupsInFlight(block, device);
  const { batch } = problem;
  const [inputs, outputs] = [elementCount(problem.inputSize), elementCount(problem.outputSize)];
  const area = block.outChannels * block.inChannels;
  const { filter } = tileElements(first);
  const b0 = batch * outputs * problem.outChannels / filter / area;
  const b1 = batch * inputs * problem.inChannels / filter / area;
  const b2 = blockCount(problem, first, block);
  // Without channels there are no blocks.
  const start = (b0 + b1) / (1.45 * Math.max(1, b2));
  if (start < 2 && b2 >= ENOUGH_ROUNDS * inFlight) return 1;

  const most = Math.min(inFlight, mostSegments(problem, workspaceShare));
  const wantedRounds = Math.max(ROUNDS.least, ROUNDS.perIntensity * intensity(first, block));
  const z1 = Math.min(ROUNDS.most, wantedRounds) * inFlight / b2;
  // An element of a bucket is written and read, 8 bytes; one of ∇W takes 2·N·O_H·O_W flops.
  const { winrsOverall, winrsBuckets } = device.rates;
  const z2 = 1 + REDUCTION_SHARE * (2 * batch * outputs / winrsOverall * winrsBuckets / 8);
  const wanted = Math.max(1, Math.min(start, z1, z2, batch * outputs / LEAST_ACCUMULATIONS));
  const padded = Math.min(2 ** Math.ceil(Math.log2(wanted)), 8);
  return Math.max(1, Math.min(padded * Math.ceil(wanted / padded), most));
}

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
  const { schedule: { policy } = {} } = request;
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
  if (request.schedule?.policy !== undefined) {
    const forced = parseSlicePolicy(request.schedule?.policy);
    if (forced !== undefined && fits(forced)) return forced;
  }
  const policies = tile === "f16" ? HALF_POLICIES : POLICIES;
  const slices = omega === DIRECT ? omega.alpha : slicesAtOnce(omega);
  const most = deviceOf(request).threadResults;
  return policies[slices]!.find((one) => threadResults(one, slices) <= most && fits(one));
}

/** Channels of a group come in vectors of so many halves. */
const WIDE = 8;

/**
 * The policy of a kernel on matrix units, where its data is rounded to f16 anyhow and results to it, so that nothing is seen of how
 * units cut sums off: of nhwc, whose channels lie in whole vectors. Undefined where threads multiply: with Ω2(1,1)
 * and a buffer of registers too.
 */
export function unitPolicyOf(request: PlanRequest, omega: Omega): UnitSlicePolicy | undefined {
  const { problem, layout, limits, matrixUnits, schedule = {} } = request;
  const { tile, accumulate, result } = elementsOf(request);
  const { groups, inChannels, outChannels } = problem;
  if (
    matrixUnits === undefined || schedule.policy !== undefined || schedule.matrixUnits === false ||
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

/** The cache block of a kernel's policy, and the workgroups of it that a multiprocessor holds by their registers. */
export function blockOf(request: PlanRequest, device: DeviceModel, omega: Omega): CacheBlock {
  const block = ({ rows, columns }: { rows: number; columns: number }, registers: number) => ({
    outChannels: rows,
    inChannels: columns,
    perMultiprocessor: Math.max(1, Math.floor(device.registers / registers)),
  });
  const units = unitPolicyOf(request, omega);
  if (units !== undefined) return block(units, unitSliceThreads(units) * REGISTERS.many);
  const policy = policyOf(request, omega);
  const slices = slicesAtOnce(omega);
  const each = REGISTERS[threadResults(policy, slices) > 64 ? "many" : "few"];
  return block(policy, workgroupThreads(policy, slices) * each);
}

/** Registers of a thread with up to 64 sums and with more. */
const REGISTERS = { few: 128, many: 256 };
