import { bestPoints, byFacet, distinct, type Point } from "./points.ts";
import { type Chart, colourScale, WRONG } from "./theme.ts";

/** Grouped bars of one figure a layer and series. */
interface BarChart {
  readonly title: string;
  readonly caption: string;
  readonly axis: string;
  readonly value: (point: Point) => number | null;
  /** Whether the axis is logarithmic but for zero. */
  readonly logarithmic?: boolean;
}

/** Throughput of each layer, by provider and algorithm: a chart a facet. */
export function throughputCharts(points: readonly Point[], series: readonly string[]): Chart[] {
  return byFacet(points).flatMap(([facet, all]) => {
    const fastest = Math.max(0, ...all.map(({ gflops }) => gflops ?? 0));
    const [unit, scale] = fastest >= 1000 ? ["TFLOP/s", 1000] : ["GFLOP/s", 1];
    return bars(bestPoints(all), series, {
      title: `Throughput, ${facet}`,
      caption: "Direct flops over median time; of several layouts and kernels the fastest." +
        wrongCaption(all),
      axis: unit,
      value: ({ gflops }) => gflops === null ? null : gflops / scale,
    });
  });
}

/** Workspace of each layer, by provider and algorithm; nothing where all need none. */
export function workspaceCharts(points: readonly Point[], series: readonly string[]): Chart[] {
  return byFacet(points).flatMap(([facet, all]) => {
    const best = bestPoints(all);
    const value = ({ record }: Point) =>
      record.workspace_bytes === null ? null : record.workspace_bytes / 2 ** 20;
    if (best.every((point) => !value(point))) return [];
    return bars(best, series, {
      title: `Workspace, ${facet}`,
      caption: "Bytes beyond inputs and output, of the record that the throughput is of. " +
        "No bar: none, or not recorded." + wrongCaption(all),
      axis: "MiB",
      value,
      logarithmic: true,
    });
  });
}

function wrongCaption(points: readonly Point[]): string {
  return points.some(({ right }) => !right) ? " ✕ failed its check or did not run." : "";
}

function bars(points: readonly Point[], all: readonly string[], chart: BarChart): Chart[] {
  const rows = points.map((point) => ({
    layer: point.label,
    series: point.series,
    value: point.right ? chart.value(point) : null,
    wrong: !point.right,
  }));
  if (rows.every(({ value, wrong }) => value === null && !wrong)) return [];
  const layers = distinct(rows.map(({ layer }) => layer));
  const shown = all.filter((name) => rows.some(({ series }) => series === name));
  const colours = colourScale(all);
  const range = shown.map((name) => colours.range[all.indexOf(name)]!);
  const long = Math.max(...layers.map((name) => name.length)) * layers.length > 110;
  const width = Math.max(420, Math.min(1160, layers.length * (shown.length * 11 + 12)));
  const spec: Chart["spec"] = {
    data: { values: rows },
    width,
    height: 240,
    encoding: {
      x: {
        field: "layer",
        type: "nominal",
        sort: layers,
        title: null,
        axis: { labelAngle: long ? -45 : 0, labelLimit: 220, grid: false },
        scale: { paddingInner: 0.2, paddingOuter: 0.1 },
      },
      xOffset: { field: "series", type: "nominal", sort: shown, scale: { domain: shown } },
      color: {
        field: "series",
        type: "nominal",
        scale: { domain: shown, range },
        legend: { columns: Math.floor(width / 170) },
      },
    },
    layer: [
      {
        transform: [{ filter: "datum.value !== null" }],
        mark: { type: "bar" },
        encoding: {
          y: {
            field: "value",
            type: "quantitative",
            title: chart.axis,
            ...(chart.logarithmic
              ? { scale: { type: "symlog" }, axis: { values: [0, 1, 10, 100, 1000, 10_000] } }
              : {}),
          },
        },
      },
      {
        transform: [{ filter: "datum.wrong" }],
        mark: { type: "text", text: "✕", color: WRONG, fontSize: 13, fontWeight: "bold", dy: -7 },
        encoding: { y: { datum: 0 }, color: { value: WRONG } },
      },
    ],
  };
  return [{ title: chart.title, caption: chart.caption, spec }];
}
