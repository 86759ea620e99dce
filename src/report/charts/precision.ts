import type { Precisions, SpeedAndError } from "../precisions.ts";
import { axisNumber, fittingUnit, logDomain, logTicks, RATE_UNITS, tickedAxis } from "./axes.ts";
import { ALIGNS, placeLabels } from "./labels.ts";
import { distinct } from "./points.ts";
import { logEncoding } from "./scatter.ts";
import { type Chart, colourScale, FIT } from "./theme.ts";

/** Shapes of precisions, in their order of appearance. */
const SHAPES = [
  "circle",
  "square",
  "triangle-up",
  "diamond",
  "cross",
  "triangle-down",
  "triangle-right",
  "triangle-left",
];
/** Pixels of the plot: its height, and a width that it has at least beside its labels. */
const HEIGHT = 360;
const LEAST_WIDTH = 345;
/** Share of the axis between the least error and an error of 0, and beyond that. */
const ZERO_ROOM = 0.12;

/**
 * Error against throughput: a colour a provider, a shape a precision, a dot a case, and for each series a mark of what is
 * usual, with its name. None where every result is exact.
 */
export function precisionCharts(all: readonly Precisions[]): Chart[] {
  const series = all.flatMap(({ series }) => series);
  const looks: Looks = {
    colours: colourScale(distinct(series.map(({ provider }) => provider))),
    precisions: distinct(series.map(({ precision }) => precision)),
  };
  return all.filter(({ series }) => figuresOf(series).some(({ error }) => error > 0))
    .map((precisions) => precisionChart(precisions, looks));
}

/** Colours of providers, and the precisions that have shapes, the same in all charts of a page. */
interface Looks {
  readonly colours: { readonly domain: readonly string[]; readonly range: readonly string[] };
  readonly precisions: readonly string[];
}

function precisionChart(
  precisions: Precisions,
  { colours, precisions: shaped }: Looks,
): Chart {
  const { series, facet } = precisions;
  const figures = figuresOf(series);
  const rates = figures.map(({ gflops }) => gflops);
  const unit = fittingUnit(rates, RATE_UNITS);
  const across = errorAxis(figures.map(({ error }) => error));
  const heights = logDomain(rates.map((rate) => rate / unit.scale), 4, 1.25);
  const up = logEncoding("y", { title: `throughput, ${unit.name}`, domain: heights });
  const at = ({ gflops, error }: SpeedAndError) => ({
    x: error > 0 ? error : across.zero,
    y: gflops / unit.scale,
  });
  const dots = series.flatMap(({ cases, provider, precision }) =>
    [...cases.values()].map((one) => ({ ...at(one), provider, precision }))
  );
  const marks = series.map(({ usual, name: text, provider, precision }) => ({
    ...at(usual),
    text,
    provider,
    precision,
  }));
  const shown = distinct(series.map(({ provider }) => provider));
  const shapes = distinct(series.map(({ precision }) => precision));
  const looks = {
    fill: nominal(
      "provider",
      shown,
      shown.map((name) => colours.range[colours.domain.indexOf(name)]!),
    ),
    shape: nominal(
      "precision",
      shapes,
      shapes.map((name) => SHAPES[shaped.indexOf(name) % SHAPES.length]!),
    ),
  };
  const pointLayer = (values: readonly object[], style: object) => ({
    data: { values },
    mark: { type: "point", filled: true, ...style },
    encoding: looks,
  });
  const spec = {
    ...FIT,
    height: HEIGHT,
    params: [across.param, up.param],
    encoding: { x: across.encoding, y: up.encoding },
    layer: [
      ...across.zeroLine,
      pointLayer(dots, { size: 30, opacity: 0.55 }),
      ...nameLayers(marks, dots, across.domain, heights),
      pointLayer(marks, { size: 130, opacity: 1, stroke: "currentColor", strokeWidth: 1 }),
    ],
  } as Chart["spec"];
  return { title: `Speed against error, ${facet}`, caption: captionOf(precisions), spec };
}

function figuresOf(series: Precisions["series"]): SpeedAndError[] {
  return series.flatMap(({ cases }) => [...cases.values()]);
}

function nominal(field: string, domain: readonly string[], range: readonly string[]) {
  return { field, type: "nominal", scale: { domain, range }, legend: null };
}

/** Relative L2 errors; where some are 0 these have a place of their own left of the others. */
function errorAxis(errors: readonly number[]) {
  const positive = errors.filter((error) => error > 0);
  const exact = positive.length < errors.length;
  const [low, high] = logDomain(positive, 100, 2);
  const step = (high / low) ** ZERO_ROOM;
  const zero = low / step;
  const domain: [number, number] = exact ? [zero / Math.sqrt(step), high] : [low, high];
  const ticks = [
    ...(exact ? [{ value: zero, label: "0" }] : []),
    ...logTicks(low, high, axisNumber),
  ];
  const { param, axis } = tickedAxis("errorLabels", ticks);
  const zeroLine = exact
    ? [{
      data: { values: [{}] },
      mark: { type: "rule", color: "currentColor", opacity: 0.4, strokeDash: [3, 3] },
      encoding: { x: { datum: low }, y: { value: 0 }, y2: { value: "height" } },
    }]
    : [];
  return {
    zero,
    zeroLine,
    domain,
    param,
    encoding: {
      field: "x",
      type: "quantitative",
      title: "relative L2 error",
      scale: { type: "log", domain, nice: false },
      axis,
    },
  };
}

interface Dot {
  readonly x: number;
  readonly y: number;
}

/** Names of marks, and lines to those that stand apart. */
function nameLayers(
  marks: readonly (Dot & { readonly text: string })[],
  dots: readonly Dot[],
  xs: readonly [number, number],
  ys: readonly [number, number],
) {
  const perX = LEAST_WIDTH / Math.log(xs[1] / xs[0]);
  const perY = HEIGHT / Math.log(ys[1] / ys[0]);
  const pixel = ({ x, y }: Dot) => ({
    x: perX * Math.log(x / xs[0]),
    y: perY * Math.log(ys[1] / y),
  });
  const places = placeLabels(
    marks.map((mark) => ({ ...pixel(mark), text: mark.text })),
    dots.map(pixel),
    { width: LEAST_WIDTH, height: HEIGHT },
  );
  const named = marks.map(({ x, y, text }, i) => {
    const { align, dx, dy } = places[i]!;
    const nameX = x * Math.exp(dx / perX);
    return { x, y, text, align, nameX, nameY: y * Math.exp(-dy / perY), apart: dy !== 0 };
  });
  const name = {
    x: { field: "nameX", type: "quantitative" },
    y: { field: "nameY", type: "quantitative" },
  };
  return [
    {
      data: { values: named.filter(({ apart }) => apart) },
      mark: { type: "rule", color: "currentColor", opacity: 0.8 },
      encoding: { x2: { field: "nameX" }, y2: { field: "nameY" } },
    },
    ...ALIGNS.map((align) => ({
      data: { values: named.filter((one) => one.align === align) },
      mark: { type: "text", align, baseline: "middle", fontSize: 11, color: "currentColor" },
      encoding: { ...name, text: { field: "text" } },
    })),
  ];
}

function captionOf({ labels, shared, others, series, unchecked }: Precisions): string {
  const cases = labels.size === 1 ? "the one case" : `the ${labels.size} cases`;
  const exact = series.flatMap(({ name, cases }) => {
    const zeros = [...cases.values()].filter(({ error }) => error === 0).length;
    return zeros === 0 ? [] : [`${name} is exact in ${zeros} of ${cases.size}.`];
  });
  return [
    shared
      ? `Over ${cases} that every series has${others > 0 ? `, ${others} more left out` : ""}.`
      : "No case is common to all: each series is of its own cases.",
    ...exact,
    ...(unchecked.length === 0 ? [] : [`Without errors, and not here: ${unchecked.join(", ")}.`]),
  ].join(" ");
}
