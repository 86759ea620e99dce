import type { DeviceRates } from "./rates.ts";

/** Multiprocessors of the device that the rates are of. */
export const MULTIPROCESSORS = 132;

/** Microseconds of `multiplyAdds` at `teraflops`. */
export function productTime(multiplyAdds: number, teraflops: number): number {
  return 2 * multiplyAdds / (teraflops * 1e6);
}

/** Microseconds of moving f32 elements at `terabytes` a second. */
export function moveTime(elements: number, terabytes: number): number {
  return 4 * elements / (terabytes * 1e6);
}

/** A pass takes as long as the slower of its arithmetic and its traffic, and what a dispatch costs. */
export function passTime(product: number, movement: number, rates: DeviceRates): number {
  return Math.max(product, movement) + rates.dispatch;
}

/** Warps that keep a multiprocessor's arithmetic busy. */
const BUSY_WARPS = 12;

/** Share of its arithmetic that a multiprocessor uses with so many warps, as the main loop's model has it. */
export function occupancyRate(warps: number): number {
  return warps >= BUSY_WARPS ? 1 : 1 - (1 - warps / BUSY_WARPS) ** 1.6;
}

/**
 * Time of workgroups spread over the device, in times of one that a multiprocessor runs at full rate: whole waves, then
 * what is left, which runs with fewer warps.
 *
 * @param resident Workgroups that a multiprocessor runs side by side.
 */
export function waveTime(workgroups: number, resident: number, warps: number): number {
  const slots = resident * MULTIPROCESSORS;
  const wave = (each: number) => each === 0 ? 0 : each / occupancyRate(each * warps);
  const left = Math.ceil((workgroups % slots) / MULTIPROCESSORS);
  return Math.floor(workgroups / slots) * wave(resident) + wave(left);
}

/** Workgroups of so many warps that a multiprocessor of the main loop runs side by side. */
export function residentWorkgroups(warps: number): number {
  return Math.max(1, Math.floor(BUSY_WARPS / warps));
}
