import type { ModuleBuilder } from "../module.ts";

/** A tap's place among all of them, row-major, of its places along the axes. */
export function tapCountText(
  module: ModuleBuilder,
  name: string,
  taps: readonly number[],
  tap: (axis: number) => string,
): string {
  return taps.reduce(
    (text, count, d) =>
      d === 0 ? tap(0) : `(${text} * ${module.size(`${name}_taps${d}`, count)} + ${tap(d)})`,
    "",
  );
}
