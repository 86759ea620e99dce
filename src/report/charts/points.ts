import { type CaseFigures, caseFigures } from "../case_figures.ts";
import { caseLabel, seriesLabel } from "../case_key.ts";
import type { ReadCase, ReadTime } from "../record_schema.ts";
import { type Interval, noiseInterval } from "../speed_change.ts";

/** A case with what charts need of it. */
export interface Point extends CaseFigures {
  readonly record: ReadCase;
  readonly series: string;
  /** What stands in charts of its own: operation, dtype, device. */
  readonly facet: string;
  /** Where it ran; empty where all points ran on one device. */
  readonly device: string;
  /** Whether it ran and was not found wrong. */
  readonly right: boolean;
  /** Where its throughput lies, in GFLOP/s, for the noise of its samples; `null` of fewer than three. */
  readonly noise: Interval | null;
}

/** Operations as a training step runs them; others follow. */
const OPERATION_ORDER = ["fwd", "bwd-data", "bwd-filter"];

/**
 * The points of cases: operations as a training step runs them, the layers of each in one order. The device is part of
 * the facet only where there are several.
 */
export function chartPoints(all: readonly ReadCase[]): Point[] {
  const cases = withOneSpelling(all);
  const devices = new Set(cases.map(({ device }) => device).filter((device) => device !== ""));
  const layers = distinct(cases.map(caseLabel));
  const order = (record: ReadCase) =>
    (OPERATION_ORDER.indexOf(record.op) + 4) % 4 * layers.length +
    layers.indexOf(caseLabel(record));
  const ordered = cases.map((record) => ({ record, key: order(record) }))
    .sort((a, b) => a.key - b.key);
  return ordered.map(({ record }) => {
    const figures = caseFigures(record);
    const { op, dtype, accumulate, time_ms, verdict } = record;
    const device = devices.size > 1 ? record.device : "";
    const summed = accumulate === undefined ? dtype : `${dtype} summed in ${accumulate}`;
    return {
      ...figures,
      record,
      series: seriesLabel(record),
      facet: [op, summed, ...(device === "" ? [] : [device])].join(", "),
      device,
      right: time_ms !== null && verdict !== "fail" && verdict !== "error",
      noise: rateInterval(time_ms, figures.gflops),
    };
  });
}

/**
 * Cases with one name for each device: wgpu and CUDA say `NVIDIA H200` where Dawn says `nvidia-h200`. Capitals come before
 * small letters, and are what the table of devices has.
 */
export function withOneSpelling(cases: readonly ReadCase[]): ReadCase[] {
  const plain = (name: string) => name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  const names = distinct(cases.map(({ device }) => device)).sort();
  const first = (device: string) => names.find((name) => plain(name) === plain(device))!;
  return cases.map((record) => ({ ...record, device: first(record.device) }));
}

/** Of the times that samples spread over, as far as there are any; a slow call is a low rate. */
function rateInterval(time: ReadTime | null, gflops: number | null): Interval | null {
  if (time === null || gflops === null || time.samples.length < 3) return null;
  const [low, high] = noiseInterval(time);
  const [least, most] = [Math.min(...time.samples), Math.max(...time.samples)];
  const rate = (ms: number) => gflops * time.median / ms;
  return [rate(Math.min(high, most)), rate(Math.max(low, least))];
}

/** Different values in their order of appearance. */
export function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}

/** Who made points and how, those of a provider beside each other. */
export function seriesOf(points: readonly Point[]): string[] {
  const providers = [...Map.groupBy(points, ({ record }) => record.provider).values()];
  return distinct(providers.flatMap((own) => own.map(({ series }) => series)));
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
