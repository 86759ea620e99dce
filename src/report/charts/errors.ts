import {
  axisNumber,
  type Chart,
  colourScale,
  FIT,
  logDomain,
  logTicks,
  tickedAxis,
} from "./theme.ts";
import { byFacetOf, type Point } from "./points.ts";

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
    caption: "Of the gate's figures, the worst output; 1 is the limit.",
    of: ({ record }) => {
      const { max_bound_ratio: ratio, bound_limit: limit } = record.accuracy ?? {};
      return typeof ratio === "number" && typeof limit === "number" ? ratio / limit : null;
    },
  },
];

const BINS = 8;

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
  const exact = values.length - positive.length;
  const rows = stackedBins(positive, all);
  const shown = all.filter((name) => rows.some(({ series }) => series === name));
  const colours = colourScale(all);
  const [low, high] = logDomain(rows.flatMap(({ low, high }) => [low, high]), 10, 1.05);
  const x = tickedAxis("errors", logTicks(low, high, axisNumber));
  const spec: Chart["spec"] = {
    ...FIT,
    height: 180,
    params: [x.param],
    data: { values: rows },
    mark: { type: "rect" },
    encoding: {
      x: {
        field: "low",
        type: "quantitative",
        title: figure.name,
        axis: { ...x.axis, grid: false },
        scale: { type: "log", domain: [low, high], nice: false },
      },
      x2: { field: "high" },
      y: {
        field: "from",
        type: "quantitative",
        title: "cases",
        axis: { tickMinStep: 1, tickCount: 5, format: "d" },
      },
      y2: { field: "to" },
      color: {
        field: "series",
        type: "nominal",
        scale: { domain: shown, range: shown.map((name) => colours.range[all.indexOf(name)]!) },
        legend: null,
      },
    },
  };
  return [{
    title: `${figure.name}, ${dtype}`,
    caption: figure.caption + (exact > 0 ? ` ${exact} exact results are left out.` : ""),
    spec,
  }];
}

/** Cases of a bin and series, above those of the series before. */
interface Bin {
  readonly series: string;
  readonly low: number;
  readonly high: number;
  readonly from: number;
  readonly to: number;
}

function stackedBins(
  values: readonly { readonly value: number; readonly series: string }[],
  all: readonly string[],
): Bin[] {
  const bins = Map.groupBy(values, ({ value }) => Math.floor(Math.log10(value) * BINS));
  return [...bins].flatMap(([bin, own]) => {
    let to = 0;
    return all.flatMap((series) => {
      const from = to;
      to += own.filter((one) => one.series === series).length;
      if (to === from) return [];
      return [{ series, low: 10 ** (bin / BINS), high: 10 ** ((bin + 1) / BINS), from, to }];
    });
  });
}
