import { type PlanArithmetic, quadsOf } from "../problem/plan_arithmetic.ts";
import type { Triple } from "../reference/geometry.ts";

/** The tiles of a group. */
export interface TileGrid {
  /** Images, or channels of a group for a filter's gradient. */
  readonly outer: number;
  /** Along three axes. */
  readonly tiles: Triple;
  /** Result channels of a group. */
  readonly channels: number;
}

/** Places or channels in runs that are neighbours in memory and share scales; runs of one where nothing is shared. */
export interface Neighbourhoods {
  /** Members of each. */
  readonly size: number;
  readonly groups: number;
  members(group: number): number[];
  groupOf(member: number): number;
}

/** Fours of `total`; the last ones begin earlier where they would not be whole. */
function fours(total: number): Neighbourhoods {
  const size = Math.min(4, total);
  return {
    size,
    groups: Math.ceil(total / 4),
    members: (group) => {
      const first = Math.min(4 * group, total - size);
      return Array.from({ length: size }, (_, k) => first + k);
    },
    groupOf: (member) => Math.floor(member / 4),
  };
}

function single(total: number): Neighbourhoods {
  return { size: 1, groups: total, members: (group) => [group], groupOf: (member) => member };
}

/** Which places and channels are simulated together, since transformed data of neighbours shares a scale. */
export function neighbourhoods(
  { outer, tiles: [t0, t1, t2], channels }: TileGrid,
  arithmetic: PlanArithmetic,
): { places: Neighbourhoods; channels: Neighbourhoods } {
  const spots = t0 * t1 * t2;
  const quads = quadsOf(arithmetic);
  const placed = quads !== undefined && [quads.places, quads.products].includes("places");
  const channelled = quads !== undefined && [quads.channels, quads.products].includes("channels");
  return {
    places: !placed
      ? single(outer * spots)
      : quads.outerInner
      ? between(fours(outer), spots)
      : fours(outer * spots),
    channels: channelled ? fours(channels) : single(channels),
  };
}

/** Neighbourhoods whose members lie `spots` apart. */
function between(
  { size, groups, members, groupOf }: Neighbourhoods,
  spots: number,
): Neighbourhoods {
  return {
    size,
    groups: groups * spots,
    members: (group) =>
      members(Math.floor(group / spots)).map((member) => member * spots + group % spots),
    groupOf: (member) => groupOf(Math.floor(member / spots)) * spots + member % spots,
  };
}
