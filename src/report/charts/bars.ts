import {
  axisNumber,
  BYTE_UNITS,
  evenTicks,
  fittingUnit,
  RATE_UNITS,
  type Tick,
  tickedAxis,
} from "./axes.ts";
import { bestPoints, byFacet, distinct, type Point } from "./points.ts";
import { layoutRows, ROWS_AXIS } from "./rows.ts";
import { type Chart, colourScale, FIT, WRONG } from "./theme.ts";

/** Pixels of a bar: thick where there are few. */
const [THICK, THIN] = [16, 9];
const FEW_BARS = 24;

/** Bars of one figure, a row a layer and a bar a series of it. */
interface BarChart {
  readonly title: string;
  readonly axis: string;
  readonly value: (point: Point) => number | null;
  /** Where the value lies for the noise of its samples. */
  readonly noise: (point: Point) => readonly [low: number, high: number] | null;
  /** Ticks of an axis that reaches so far. */
  readonly ticks: (most: number) => readonly Tick[];
  /** Whether the axis is logarithmic but for zero. */
  readonly logarithmic?: boolean;
}

/** Throughput of each layer, by provider and algorithm: a chart a facet, where something was timed. */
export function throughputCharts(points: readonly Point[], series: readonly string[]): Chart[] {
  return byFacet(points).flatMap(([facet, all]) => {
    const best = bestPoints(all);
    const rates = best.flatMap(({ right, gflops }) => right ? gflops ?? [] : []);
    const unit = fittingUnit(rates, RATE_UNITS);
    return bars(best, series, {
      title: `Throughput, ${facet}`,
      axis: unit.name,
      value: ({ gflops }) => gflops === null ? null : gflops / unit.scale,
      ticks: evenTicks,
      noise: ({ noise }) => noise === null ? null : [noise[0] / unit.scale, noise[1] / unit.scale],
    });
  });
}

/** Workspace of each layer, by provider and algorithm; nothing where all right ones need none. */
export function workspaceCharts(points: readonly Point[], series: readonly string[]): Chart[] {
  return byFacet(points).flatMap(([facet, all]) => {
    const best = bestPoints(all);
    const bytes = best.flatMap(({ right, record }) => right ? record.workspace_bytes ?? [] : []);
    const unit = fittingUnit(bytes, BYTE_UNITS);
    return bars(best, series, {
      title: `Workspace, ${facet}`,
      axis: unit.name,
      value: ({ record }) =>
        record.workspace_bytes === null ? null : record.workspace_bytes / unit.scale,
      noise: () => null,
      ticks: powersUpTo,
      logarithmic: true,
    });
  });
}

/** 0, 1, 10 and so on; even steps where the values reach no further than 20. */
function powersUpTo(most: number): Tick[] {
  if (most <= 20) return evenTicks(most);
  const powers = [0, 1, 10, 100, 1000, 1e4, 1e5, 1e6].filter((tick) => tick <= most);
  return powers.map((value) => ({ value, label: axisNumber(value) }));
}

function bars(points: readonly Point[], all: readonly string[], chart: BarChart): Chart[] {
  const layers = Map.groupBy(points, ({ label }) => label);
  const thickness = points.length <= FEW_BARS ? THICK : THIN;
  const rows = layoutRows(
    [...layers].map(([label, own]) => ({ label, marks: own.length })),
    thickness,
  );
  const values = [...layers].flatMap(([label, own]) =>
    own.toSorted((a, b) => all.indexOf(a.series) - all.indexOf(b.series)).map((point, mark) => {
      const middle = rows.at(label, mark);
      const [low, high] = (point.right ? chart.noise(point) : null) ?? [null, null];
      return {
        series: point.series,
        value: point.right ? chart.value(point) : null,
        wrong: !point.right,
        low,
        high,
        middle,
        top: middle - thickness / 2 + 0.5,
        bottom: middle + thickness / 2 - 0.5,
      };
    })
  );
  const most = Math.max(...values.map(({ value, high }) => high ?? value ?? 0));
  if (most === 0) return [];
  const shown = distinct(points.map(({ series }) => series));
  const colours = colourScale(all);
  const ticks = tickedAxis("ticks", chart.ticks(most));
  const x = {
    type: "quantitative" as const,
    title: chart.axis,
    axis: { ...ticks.axis, orient: ROWS_AXIS },
    // The label of a tick at the end has room.
    scale: chart.logarithmic
      ? { type: "symlog" as const, domain: [0, most * Math.max(1, most) ** 0.05 * 1.03] }
      : { domain: [0, 1.05 * most], nice: false },
  };
  const y = (field: string) => ({ ...rows.y, field });
  const spec: Chart["spec"] = {
    ...FIT,
    height: rows.height,
    params: [rows.param, ticks.param],
    data: { values },
    layer: [
      {
        transform: [{ filter: "datum.value !== null" }],
        mark: { type: "rect" },
        encoding: {
          x: { ...x, field: "value" },
          x2: { datum: 0 },
          y: y("top"),
          y2: { field: "bottom" },
          color: {
            field: "series",
            type: "nominal",
            scale: { domain: shown, range: shown.map((name) => colours.range[all.indexOf(name)]!) },
            legend: null,
          },
        },
      },
      {
        transform: [{ filter: "datum.low !== null" }],
        mark: { type: "rule", color: "currentColor", strokeWidth: 1.5, description: "noise" },
        encoding: { x: { ...x, field: "low" }, x2: { field: "high" }, y: y("middle") },
      },
      {
        transform: [{ filter: "datum.wrong" }],
        mark: { type: "text", text: "✕", color: WRONG, fontSize: 11, fontWeight: "bold", dx: 7 },
        encoding: { x: { ...x, datum: 0 }, y: y("middle") },
      },
    ],
  };
  const wrong = points.some(({ right }) => !right);
  return [{
    title: chart.title,
    caption: wrong ? "✕ failed its check or did not run." : "",
    spec,
  }];
}
