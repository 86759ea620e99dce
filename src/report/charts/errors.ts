import { byFacetOf, distinct, type Point } from "./points.ts";
import { type Chart, colourScale, SHAPE_LEGEND } from "./theme.ts";

/** A figure of accuracy; `null` where a record does not have it. */
interface Figure {
  readonly name: string;
  readonly caption: string;
  readonly of: (point: Point) => number | null | undefined;
}

const FIGURES: readonly Figure[] = [
  {
    name: "MARE",
    caption: "Mean absolute relative error.",
    of: ({ record }) => record.accuracy?.mare,
  },
  {
    name: "relative L2 error",
    caption: "Of the gate's figures, the error's energy.",
    of: ({ record }) => record.accuracy?.rel_l2,
  },
  {
    name: "bound ratio over its limit",
    caption: "Of the gate's figures, the worst output; 1 fails.",
    of: ({ record }) => {
      const { max_bound_ratio: ratio, bound_limit: limit } = record.accuracy ?? {};
      return typeof ratio === "number" && typeof limit === "number" ? ratio / limit : null;
    },
  },
];

/** Bins of a decade. */
const BINS = 8;
const POWER_LABEL = "pow(10, datum.value) >= 0.01 ? format(pow(10, datum.value), '~r') : " +
  "'1e' + format(datum.value, '~r')";

/** How errors are spread over the cases: a histogram a figure and dtype. */
export function errorHistograms(points: readonly Point[], series: readonly string[]): Chart[] {
  return byFacetOf(points, ({ record }) => record.dtype).flatMap(([dtype, all]) =>
    FIGURES.flatMap((figure) => histogram(dtype, all, figure, series))
  );
}

function histogram(
  dtype: string,
  points: readonly Point[],
  figure: Figure,
  all: readonly string[],
): Chart[] {
  const values = points.flatMap((point) => {
    const value = figure.of(point);
    return typeof value === "number" ? [{ value, series: point.series }] : [];
  });
  const positive = values.filter(({ value }) => value > 0);
  if (positive.length === 0) return [];
  const rows = positive.map(({ value, series }) => {
    const bin = Math.floor(Math.log10(value) * BINS) / BINS;
    return { bin, end: bin + 1 / BINS, series };
  });
  const exact = values.length - positive.length;
  const shown = all.filter((name) => rows.some(({ series }) => series === name));
  const colours = colourScale(all);
  const low = Math.min(...rows.map(({ bin }) => bin));
  const high = Math.max(...rows.map(({ end }) => end));
  const spec: Chart["spec"] = {
    data: { values: rows },
    width: 300,
    height: 180,
    mark: { type: "bar", binSpacing: 0 },
    encoding: {
      x: {
        field: "bin",
        type: "quantitative",
        bin: { binned: true, step: 1 / BINS },
        title: figure.name,
        axis: { values: powers(low, high), labelExpr: POWER_LABEL, grid: false },
        scale: { domain: [Math.floor(low * 2) / 2, Math.ceil(high * 2) / 2], nice: false },
      },
      x2: { field: "end" },
      y: { aggregate: "count", title: "cases", axis: { tickMinStep: 1 } },
      color: {
        field: "series",
        type: "nominal",
        scale: { domain: shown, range: shown.map((name) => colours.range[all.indexOf(name)]!) },
        legend: { columns: 2 },
      },
    },
  };
  return [{
    title: `${figure.name}, ${dtype}`,
    caption: figure.caption + (exact > 0 ? ` ${exact} exact results are left out.` : ""),
    spec,
  }];
}

/** Whole powers of ten about a range of logarithms, halves too where it is narrow. */
function powers(low: number, high: number): number[] {
  const [first, last] = [Math.floor(low), Math.ceil(high)];
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

/** MARE against accumulation length: a chart a dtype. */
export function accumulationCharts(points: readonly Point[], series: readonly string[]): Chart[] {
  return byFacetOf(points, ({ record }) => record.dtype).flatMap(([dtype, all]) => {
    const rows = all.flatMap(({ record, accumulation, series }) => {
      const mare = record.accuracy?.mare;
      return mare && accumulation ? [{ mare, accumulation, series, op: record.op }] : [];
    });
    if (distinct(rows.map(({ accumulation }) => accumulation)).length < 2) return [];
    const shown = series.filter((name) => rows.some((row) => row.series === name));
    const colours = colourScale(series);
    const range = shown.map((name) => colours.range[series.indexOf(name)]!);
    const scale = { type: "log" as const, nice: false, padding: 12 };
    const spec: Chart["spec"] = {
      data: { values: rows },
      width: 640,
      height: 280,
      mark: { type: "point", filled: true, size: 46, opacity: 0.8 },
      encoding: {
        x: {
          field: "accumulation",
          type: "quantitative",
          title: "accumulation length: products summed into one result",
          scale,
          axis: { format: "~s", tickCount: 6 },
        },
        y: {
          field: "mare",
          type: "quantitative",
          title: "MARE",
          scale,
          axis: { format: "~e", tickCount: 5 },
        },
        color: {
          field: "series",
          type: "nominal",
          scale: { domain: shown, range },
          legend: { columns: 4 },
        },
        shape: {
          field: "op",
          type: "nominal",
          scale: { domain: distinct(rows.map(({ op }) => op)) },
          legend: SHAPE_LEGEND,
        },
      },
    };
    return [{
      title: `MARE against accumulation length, ${dtype}`,
      caption: "Of every record that has both, wrong results included.",
      spec,
    }];
  });
}
