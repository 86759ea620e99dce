/** Workgroups that take as long as each other: how many, and how long. */
export type WorkgroupGroup = readonly [count: number, time: number];

/**
 * When the last workgroup ends, where so many run at once and the next begins as soon as one has ended (list scheduling: Graham,
 * Bounds on Multiprocessing Timing Anomalies, 1969).
 *
 * @param groups In the order in which they begin; times in any unit.
 * @param places Workgroups that run at once, from 1.
 * @returns In the unit of `groups`; 0 without workgroups.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { makespan } from "./makespan.ts";
 *
 * assert.equal(makespan([[224, 21], [224, 7]], 132), 49);
 * ```
 */
export function makespan(groups: readonly WorkgroupGroup[], places: number): number {
  /** When places are free, the earliest first, and how many are then. */
  let free: { at: number; places: number }[] = [{ at: 0, places }];
  for (const [count, time] of groups) {
    let left = time === 0 ? 0 : count;
    while (left > 0) {
      const [{ at, places: open }, ...later] = free as [typeof free[number], ...typeof free];
      const taken = Math.min(open, left);
      // All that is free at once goes on in whole rounds, while nothing else is.
      const rounds = later.length === 0 && taken === open ? Math.floor(left / open) : 1;
      left -= taken * rounds;
      const end = at + time * rounds;
      free = taken === open ? later : [{ at, places: open - taken }, ...later];
      const behind = free.findIndex((one) => one.at >= end);
      const place = behind < 0 ? free.length : behind;
      const same = free[place];
      if (same?.at === end) free[place] = { at: end, places: same.places + taken };
      else free.splice(place, 0, { at: end, places: taken });
    }
  }
  return free.at(-1)!.at;
}
