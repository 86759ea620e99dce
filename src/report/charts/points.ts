import { type CaseFigures, caseFigures } from "../case_figures.ts";
import { seriesLabel } from "../case_label.ts";
import type { ReadCase } from "../record_schema.ts";

/** A case with what charts need of it. */
export interface Point extends CaseFigures {
  readonly record: ReadCase;
  /** Who made it and how. */
  readonly series: string;
  /** What stands in charts of its own: operation, dtype, device. */
  readonly facet: string;
  /** Whether it ran and was not found wrong. */
  readonly right: boolean;
}

/** The points of cases; the device is part of the facet only where there are several. */
export function chartPoints(cases: readonly ReadCase[]): Point[] {
  const devices = new Set(cases.map(({ device }) => device).filter((device) => device !== ""));
  return cases.map((record) => {
    const { op, dtype, accumulate, device, time_ms, verdict } = record;
    const summed = accumulate === undefined ? dtype : `${dtype} summed in ${accumulate}`;
    return {
      ...caseFigures(record),
      record,
      series: seriesLabel(record),
      facet: [op, summed, ...(devices.size > 1 && device !== "" ? [device] : [])].join(", "),
      right: time_ms !== null && verdict !== "fail" && verdict !== "error",
    };
  });
}

/** Different values in their order of appearance. */
export function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}

/** For each layer and series the fastest right point (of several layouts or kernels), or else a wrong one. */
export function bestPoints(points: readonly Point[]): Point[] {
  const groups = Map.groupBy(
    points,
    (point) => JSON.stringify([point.facet, point.label, point.series]),
  );
  const rate = ({ right, gflops }: Point) => right ? gflops ?? 0 : -1;
  return [...groups.values()].map((group) =>
    group.reduce((best, point) => rate(point) > rate(best) ? point : best)
  );
}

/** Points by facet, in order of appearance. */
export function byFacet(points: readonly Point[]): [facet: string, points: Point[]][] {
  return byFacetOf(points, ({ facet }) => facet);
}

/** Points by what `facet` says of each, in order of appearance. */
export function byFacetOf(
  points: readonly Point[],
  facet: (point: Point) => string,
): [facet: string, points: Point[]][] {
  return [...Map.groupBy(points, facet)];
}
