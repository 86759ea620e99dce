import { dealsRows, vectorSide } from "../kernels/loader.ts";
import { policyThreads, type TilePolicy } from "../kernels/policy.ts";
import type { Product, TileAccess } from "./cut.ts";

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
  broad: 0.93,
  large: 1.03,
  huge: 1.12,
};

/** A software device gains nothing from large tiles, and pays for compiling what they unroll. */
export const FEW_MULTIPROCESSORS = 16;

/** What a tile side of 128 costs, as a share, where it is stored across: its stores meet in the same banks. */
const STORED_ACROSS = 0.92;
/** A guess at what a side costs that the threads do not share row by row: every load has its own place. */
const DEALT_UNEVENLY = 0.6;
/** Warps that keep a multiprocessor's arithmetic busy; also what the registers of these kernels let it hold. */
const BUSY_WARPS = 12;

/** Share of the best rate that the policy's inner loop reaches on these operands. */
function efficiencyOf(policy: TilePolicy, { a, b }: Product): number {
  const threads = policyThreads(policy);
  const side = (access: TileAccess, extent: number) => {
    if (access.packing?.(extent) !== undefined) return 1;
    const across = vectorSide(access) === "depth" && extent >= 128 ? STORED_ACROSS : 1;
    const loader = { ...access, vector: access.vector ?? 1 };
    return dealsRows(loader, extent, policy.depth, threads) ? across : across * DEALT_UNEVENLY;
  };
  return (EFFICIENCY[policy.name] ?? 1) * side(a, policy.rows) * side(b, policy.columns);
}

/** Share of its arithmetic that a multiprocessor uses with so many warps: few hide no latency. */
export function occupancyRate(warps: number): number {
  return warps >= BUSY_WARPS ? 1 : 1 - (1 - warps / BUSY_WARPS) ** 1.6;
}

/** Workgroups that a multiprocessor runs side by side. */
export function residentWorkgroups(policy: TilePolicy): number {
  return Math.max(1, Math.floor(BUSY_WARPS / (policyThreads(policy) / 32)));
}

/**
 * Time until the last workgroup ends, in times of one workgroup at full rate: whole waves, then a wave of what
 * is left, which runs with fewer warps and so at a lower rate.
 */
function waveTime(workgroups: number, multiprocessors: number, policy: TilePolicy): number {
  const warps = policyThreads(policy) / 32;
  const resident = residentWorkgroups(policy);
  const slots = resident * multiprocessors;
  const wave = (each: number) => each === 0 ? 0 : each / occupancyRate(each * warps);
  const left = Math.ceil((workgroups % slots) / multiprocessors);
  return Math.floor(workgroups / slots) * wave(resident) + wave(left);
}

/** Cost, in multiply-adds of a fully used device, of workgroups of so many steps: filling the pipeline and storing take about as much as two more. */
export function loopCost(
  product: Product,
  policy: TilePolicy,
  multiprocessors: number,
  workgroups: number,
  steps: number,
): number {
  const one = policy.rows * policy.columns * policy.depth * (steps + 2);
  return multiprocessors *
    (multiprocessors < FEW_MULTIPROCESSORS
      ? one * Math.ceil(workgroups / multiprocessors)
      : one * waveTime(workgroups, multiprocessors, policy) / efficiencyOf(policy, product));
}
