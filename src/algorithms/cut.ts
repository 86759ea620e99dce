import { UnsupportedError } from "../errors.ts";
import { mainLoopBytes, mainLoopWorkgroups } from "../kernels/main_loop.ts";
import { dealsRows, type TileLoader, vectorSide } from "../kernels/loader.ts";
import { findPolicy, policyThreads, TILE_POLICIES, type TilePolicy } from "../kernels/policy.ts";
import type { DeviceLimits } from "./plan.ts";

/** A product before it is cut: `batches` of rows x columns x depth. */
export interface Product {
  readonly rows: number;
  readonly columns: number;
  readonly batches: number;
  /** Depth in steps of a policy: padding depends on the tile's depth. */
  steps(policy: TilePolicy): number;
  /** Elements of the result, all batches. */
  readonly elements: number;
  /** Workspace of a policy beside partial results; 0 where absent. */
  workspaceBytes?(policy: TilePolicy): number;
  readonly a: TileAccess;
  readonly b: TileAccess;
}

type TileAccess =
  & Pick<TileLoader, "along">
  & Partial<Pick<TileLoader, "vector" | "vectorAlong">>;

export interface Cut {
  readonly policy: TilePolicy;
  readonly splits: number;
  /** Predicted cost, in multiply-adds of a fully used device. */
  readonly cost: number;
}

// Rate of a policy's inner loop, of the best one's, where warps keep it busy (docs/performance.md): 8 warps of
// `large` and `huge` never do, so theirs is more than what they reach.
const EFFICIENCY: Readonly<Record<string, number>> = {
  tiny: 0.25,
  sliver: 0.3,
  flat: 0.6,
  narrow: 0.6,
  small: 0.86,
  wide: 0.96,
  tall: 1,
  broad: 0.98,
  large: 1.03,
  huge: 1.12,
};

/** A software device gains nothing from large tiles, and pays for compiling what they unroll. */
const FEW_MULTIPROCESSORS = 16;

// An H200's ratios: its 25 T multiply-adds a second against 1.5 T elements moved (some in the cache), and
// 3 µs a dispatch.
export const MULTIPLY_ADDS_PER_ELEMENT = 16;
export const MULTIPLY_ADDS_PER_DISPATCH = 75e6;
/** What a tile side of 128 costs, as a share, where it is stored across: its stores meet in the same banks. */
const STORED_ACROSS = 0.92;
/** A guess at what a side costs that the threads do not share row by row: every load has its own place. */
const DEALT_UNEVENLY = 0.6;
/** Warps that keep a multiprocessor's arithmetic busy; also what the registers of these kernels let it hold. */
const BUSY_WARPS = 12;
// lavapipe stops a loop after 65,535 iterations without a word.
const MOST_STEPS = 60_000;
const MOST_SPLITS = 512;

/** Whether a device can run the main loop with this policy and these tile loaders. */
export function policyFits(
  policy: TilePolicy,
  limits: DeviceLimits,
  a: TileAccess,
  b: TileAccess,
): boolean {
  return policyThreads(policy) <= limits.maxComputeInvocationsPerWorkgroup &&
    mainLoopBytes(policy, a, b) <= limits.maxComputeWorkgroupStorageSize;
}

/** Share of the best rate that the policy's inner loop reaches on these operands. */
function efficiencyOf(policy: TilePolicy, { a, b }: Product): number {
  const threads = policyThreads(policy);
  const side = (access: TileAccess, extent: number) => {
    const across = vectorSide(access) === "depth" && extent >= 128 ? STORED_ACROSS : 1;
    const loader = { ...access, vector: access.vector ?? 1 };
    return dealsRows(loader, extent, policy.depth, threads) ? across : across * DEALT_UNEVENLY;
  };
  return (EFFICIENCY[policy.name] ?? 1) * side(a, policy.rows) * side(b, policy.columns);
}

/** Share of its arithmetic that a multiprocessor uses with so many warps: few hide no latency. */
function occupancyRate(warps: number): number {
  return warps >= BUSY_WARPS ? 1 : 1 - (1 - warps / BUSY_WARPS) ** 1.6;
}

/**
 * Time until the last workgroup ends, in times of one workgroup at full rate: whole waves, then a wave of what
 * is left, which runs with fewer warps and so at a lower rate.
 */
function waveTime(workgroups: number, multiprocessors: number, warps: number): number {
  const resident = Math.max(1, Math.floor(BUSY_WARPS / warps));
  const slots = resident * multiprocessors;
  const wave = (each: number) => each === 0 ? 0 : each / occupancyRate(each * warps);
  const left = Math.ceil((workgroups % slots) / multiprocessors);
  return Math.floor(workgroups / slots) * wave(resident) + wave(left);
}

/**
 * The cheapest cut of a product: time of the busiest multiprocessor, waste of padding included, plus
 * what split-K writes and reads again.
 *
 * @param multiprocessors What the device runs side by side.
 * @param forcedSplits The user's number of splits, taken as it is up to what the problem and the workspace allow.
 */
export function chooseCut(
  product: Product,
  limits: DeviceLimits,
  multiprocessors: number,
  candidates: readonly TilePolicy[] = TILE_POLICIES,
  forcedSplits?: number,
  maxWorkspaceBytes = Infinity,
): Cut {
  let best: Cut | undefined;
  for (const policy of candidates) {
    const steps = product.steps(policy);
    const tiles = mainLoopWorkgroups({ ...product, steps, splits: 1 }, policy);
    const bytes = Math.min(limits.maxBufferSize, limits.maxStorageBufferBindingSize);
    const allowed = maxWorkspaceBytes - (product.workspaceBytes?.(policy) ?? 0);
    const room = Math.floor(Math.min(bytes, allowed) / (4 * Math.max(1, product.elements)));
    const most = Math.max(1, Math.min(MOST_SPLITS, steps, room));
    const least = Math.min(most, Math.max(1, Math.ceil(steps / MOST_STEPS)));
    const forced = forcedSplits === undefined ? undefined : Math.min(most, forcedSplits);
    for (
      let splits = forced ?? least;
      splits <= (forced ?? most);
      splits += splits < 32 ? 1 : 16
    ) {
      const perSplit = Math.ceil(steps / splits);
      // A split without steps would be pure waste.
      if (splits > 1 && perSplit * (splits - 1) >= steps && forced === undefined) continue;
      const workgroups = tiles * splits;
      // Filling the pipeline and storing costs about as much as two steps.
      const one = policy.rows * policy.columns * policy.depth * (perSplit + 2);
      const software = multiprocessors < FEW_MULTIPROCESSORS;
      const loop = multiprocessors *
        (software
          ? one * Math.ceil(workgroups / multiprocessors)
          : one * waveTime(workgroups, multiprocessors, policyThreads(policy) / 32) /
            efficiencyOf(policy, product));
      const reduce = splits === 1 ? 0 : (2 * splits + 1) * product.elements *
          MULTIPLY_ADDS_PER_ELEMENT + MULTIPLY_ADDS_PER_DISPATCH;
      const cost = loop + reduce;
      if (best === undefined || cost < best.cost) best = { policy, splits, cost };
    }
  }
  if (best === undefined) throw new RangeError("Cannot plan: no tile policy fits the device");
  return best;
}

/** What a request says of cutting. */
export interface CutRequest {
  readonly policy?: string;
  readonly splits?: number;
  readonly limits: DeviceLimits;
  readonly workgroupsInFlight?: number | undefined;
  /** Most bytes of workspace; partial results must fit in. */
  readonly maxWorkspaceBytes?: number;
}

/** Multiprocessors assumed where nobody measured: an H200's 132 with two workgroups each. */
const DEFAULT_WORKGROUPS_IN_FLIGHT = 264;

/**
 * The user's policy and splits, or the cheapest that the device can run.
 *
 * @throws {RangeError} if the policy is unknown.
 * @throws {UnsupportedError} if it does not fit the device.
 */
export function cutProduct(
  request: CutRequest,
  product: Product,
): Cut {
  const { limits } = request;
  const fits = (policy: TilePolicy) => policyFits(policy, limits, product.a, product.b);
  let candidates = TILE_POLICIES.filter(fits);
  if (request.policy !== undefined) {
    const policy = findPolicy(request.policy);
    if (policy === undefined) {
      throw new RangeError(
        `Cannot plan: policy ${request.policy} is none of ${
          TILE_POLICIES.map(({ name }) => name).join(", ")
        }`,
      );
    }
    if (!fits(policy)) {
      throw new UnsupportedError(
        `Cannot plan: policy ${policy.name} does not fit the device's ` +
          `${limits.maxComputeWorkgroupStorageSize} bytes of workgroup memory and ` +
          `${limits.maxComputeInvocationsPerWorkgroup} invocations`,
      );
    }
    candidates = [policy];
  }
  const inFlight = request.workgroupsInFlight ?? DEFAULT_WORKGROUPS_IN_FLIGHT;
  const multiprocessors = Math.max(1, Math.round(inFlight / 2));
  return chooseCut(
    product,
    limits,
    multiprocessors,
    candidates,
    request.splits,
    request.maxWorkspaceBytes,
  );
}
