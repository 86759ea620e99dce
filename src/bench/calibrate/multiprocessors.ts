import { UnsupportedError } from "../../errors.ts";
import type { Measuring } from "./measuring.ts";
import { busyPlan } from "./simple_plans.ts";

/** Most workgroups that are tried. */
const MOST = 4096;
/** Workgroups that wait for others, or share with them, take twice as long as one; this is in between. */
const LONGER = 1.5;
/** Grids that are timed together. */
const TOGETHER = 8;

/**
 * How many workgroups run side by side as fast as one alone: a grid of more takes a second wave. Looked for between powers of
 * two, then by ever closer grids.
 *
 * @throws {UnsupportedError} where one workgroup cannot be timed.
 */
export async function countMultiprocessors({ time }: Pick<Measuring, "time">): Promise<number> {
  const known = new Map<number, number>();
  const measure = async (grids: readonly number[]) => {
    const plans = grids.map((grid) => {
      return { name: `busy ${grid}`, plan: busyPlan(grid), dtype: "f32" as const };
    });
    const times = await time(plans);
    grids.forEach((grid, place) => {
      const taken = times[place]!;
      if (typeof taken === "string" || !(taken.median > 0 && Number.isFinite(taken.median))) {
        const what = typeof taken === "string" ? taken : `it took ${taken.median} ms`;
        throw new UnsupportedError(`Cannot calibrate: ${grid} workgroups cannot be timed: ${what}`);
      }
      known.set(grid, taken.min);
    });
  };
  const powers = Array.from({ length: 1 + Math.log2(MOST) }, (_, exponent) => 2 ** exponent);
  await measure(powers);
  const alone = known.get(1)!;
  const isLonger = (grid: number) => known.get(grid)! > LONGER * alone;
  const end = powers.find(isLonger);
  if (end === undefined) return MOST;
  let [least, most] = [end / 2, end];
  while (most - least > 1) {
    const parts = Math.min(TOGETHER, most - least);
    const between = Array.from(
      { length: parts - 1 },
      (_, i) => least + Math.round((i + 1) * (most - least) / parts),
    );
    await measure(between);
    const longer = between.find(isLonger) ?? most;
    least = Math.max(least, ...between.filter((grid) => grid < longer));
    most = longer;
  }
  return least;
}
