import type { Config, TopLevelSpec } from "vega-lite";
import { significant } from "../format.ts";
import { median } from "../stats.ts";

/** A tick of an axis, and what stands beside it: a text a line. */
interface Tick {
  readonly value: number;
  readonly label: string | readonly string[];
}

/**
 * An axis whose ticks are given one by one: a parameter for the chart and what says so to Vega-Lite.
 *
 * @param name Of the parameter, which the axis looks its labels up in.
 */
export function tickedAxis(name: string, ticks: readonly Tick[]) {
  return {
    param: { name, value: Object.fromEntries(ticks.map(({ value, label }) => [value, label])) },
    axis: {
      values: ticks.map(({ value }) => value),
      labelExpr: `${name}[datum.value]`,
      labelOverlap: false,
      labelFlush: false,
    },
  };
}

/** A unit and what it is of the base unit. */
interface Unit {
  readonly name: string;
  readonly scale: number;
}

/** Units of rates that are given in GFLOP/s, those of headlines and tables. */
export const RATE_UNITS: readonly Unit[] = [
  { name: "GFLOP/s", scale: 1 },
  { name: "TFLOP/s", scale: 1000 },
];

/** The largest unit that most of the values above zero have at least one of; the smallest where there are none. */
export function fittingUnit(values: readonly number[], units: readonly Unit[]): Unit {
  const positive = values.filter((value) => value > 0);
  const usual = positive.length === 0 ? 0 : median(positive);
  return units.findLast(({ scale }) => usual >= scale) ?? units[0]!;
}

/** Multiples within a decade that ticks are tried at, from many to few. */
const MULTIPLES = [[1, 1.5, 2, 3, 4, 5, 6, 8], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]];
/** Share of an axis that a tick's label needs, with air. */
const LABEL_ROOM = 0.1;
const LEAST_TICKS = 3;

/** Round values within a range, for an axis of logarithms: three or more, however narrow it is, and none too near the next. */
export function logTicks(low: number, high: number, print: (value: number) => string): Tick[] {
  const decades = Math.log10(high / low);
  const skip = Math.ceil(decades * LABEL_ROOM);
  for (const multiples of MULTIPLES) {
    const values = decadesOf(low, high, skip)
      .flatMap((power) => multiples.map((multiple) => Number(`${multiple}e${power}`)))
      .filter((value) => value >= low && value <= high);
    const apart = values.every((value, i) =>
      i === 0 || Math.log10(value / values[i - 1]!) >= LABEL_ROOM * decades
    );
    if (apart && values.length >= LEAST_TICKS) return ticksAt(values, print);
  }
  return ticksAt(evenValues(low, high), print);
}

function decadesOf(low: number, high: number, skip: number): number[] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
    .filter((power) => power % skip === 0);
}

/** Multiples of 1, 2 or 5 times a power of ten: three to eight of them. */
function evenValues(low: number, high: number): number[] {
  const rough = (high - low) / LEAST_TICKS;
  const power = Math.floor(Math.log10(rough));
  const step = [5, 2, 1].find((digit) => digit * 10 ** power <= rough)!;
  const unit = Number(`${step}e${power}`);
  const [first, last] = [Math.ceil(low / unit), Math.floor(high / unit)];
  return Array.from(
    { length: last - first + 1 },
    (_, i) => Number(((first + i) * unit).toPrecision(12)),
  );
}

function ticksAt(values: readonly number[], print: (value: number) => string): Tick[] {
  return values.map((value) => ({ value, label: print(value) }));
}

/** A logarithmic domain that leaves air around values, and is never narrower than asked. */
export function logDomain(
  values: readonly number[],
  least: number,
  air = 1.3,
): [low: number, high: number] {
  const [low, high] = [Math.min(...values) / air, Math.max(...values) * air];
  const missing = Math.max(1, Math.sqrt(least * low / high));
  return [low / missing, high * missing];
}

/** A number as an axis has it: `0.5`, `20`, `3k`, `1e-7`. */
export function axisNumber(value: number): string {
  if (value === 0) return "0";
  if (value < 0.01) return Number(value.toPrecision(4)).toExponential();
  return value >= 1e6
    ? `${Number((value / 1e6).toPrecision(4))}M`
    : value >= 1e4
    ? `${Number((value / 1000).toPrecision(4))}k`
    : String(Number(significant(value)));
}

/** An axis of logarithms: the parameter that holds its labels, and the encoding of a field. */
export function logEncoding(
  field: string,
  { title, domain: [low, high] }: {
    readonly title: string;
    readonly domain: readonly [number, number];
  },
) {
  const { param, axis } = tickedAxis(`${field}Labels`, logTicks(low, high, axisNumber));
  return {
    param,
    encoding: {
      field,
      type: "quantitative" as const,
      title,
      scale: { type: "log" as const, domain: [low, high], nice: false },
      axis,
    },
  };
}

/** Draws charts as SVG texts, in order. Vega is loaded when this is first called. */
export async function renderCharts(charts: readonly Chart[]): Promise<string[]> {
  if (charts.length === 0) return [];
  const [vega, vegaLite] = await Promise.all([import("vega"), import("vega-lite")]);
  const drawn: string[] = [];
  for (const [index, { title, spec }] of charts.entries()) {
    const logger = vega.logger(vega.Error);
    const compiled = vegaLite.compile({ ...spec, config: CONFIG }, { logger });
    const view = new vega.View(vega.parse(compiled.spec), { renderer: "none", logger });
    const svg = await view.toSVG();
    view.finalize();
    drawn.push(labelled(uniqueIds(svg, `c${index}-`), title));
  }
  return drawn;
}

/**
 * Grounds and inks of a chart that is a file of its own. A page shows it as an image, which inherits nothing but whether
 * its reader prefers light or dark; with a ground of its own it is readable on any page.
 */
const FILE_STYLE = "<style>svg{color:#1d2126}.ground{fill:#ffffff}" +
  "@media(prefers-color-scheme:dark){svg{color:#e4e6ea}.ground{fill:#16181c}}</style>" +
  '<rect class="ground" width="100%" height="100%" rx="6" fill="#ffffff"/>';

/** Draws a chart as a file, for light and for dark pages. */
export async function renderFile(chart: Chart): Promise<string> {
  const [drawn = ""] = await renderCharts([chart]);
  return drawn.replace(/^<svg [^>]*>/, `$&${FILE_STYLE}`) + "\n";
}

/** Every chart's ids start anew, and they share a page. */
function uniqueIds(svg: string, prefix: string): string {
  return svg.replaceAll(/\bid="/g, `id="${prefix}`).replaceAll("url(#", `url(#${prefix}`);
}

/** Names the drawing for those who cannot see it. */
function labelled(svg: string, title: string): string {
  const label = title.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
  return svg.replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    .replace("<svg ", `<svg role="img" aria-label="${label}" `);
}

/** A chart of the page: one Vega-Lite specification, drawn as one SVG. */
export interface Chart {
  readonly title: string;
  /** What to see, and what was left out; empty where the section says it. */
  readonly caption: string;
  readonly spec: TopLevelSpec;
}

/** A chart's pixels from its labels' left to its plot's right: one fits a narrow window, three a wide one. */
const CHART_WIDTH = 410;

/** What makes a chart as wide, whatever room its labels take. */
export const FIT = {
  width: CHART_WIDTH,
  autosize: { type: "fit-x", contains: "padding" },
} as const;

/**
 * Fills of at least 3:1 against white and against the dark of GitHub's pages, told apart by people with
 * colour-blindness too (after Tol's bright scheme).
 */
export const PALETTE = [
  "#4477aa",
  "#dd6622",
  "#228833",
  "#cc3377",
  "#998822",
  "#2299bb",
  "#9966cc",
  "#808080",
  "#996644",
  "#dd6688",
];

/** One colour a series, the same in every chart of a page. */
export function colourScale(series: readonly string[]) {
  return { domain: [...series], range: series.map((_, i) => PALETTE[i % PALETTE.length]!) };
}

/** The shapes of operations, the same in every chart of a page; what is none is a circle. */
const SHAPES = [
  { op: "fwd", shape: "circle", sign: "●" },
  { op: "bwd-data", shape: "square", sign: "■" },
  { op: "bwd-filter", shape: "triangle-up", sign: "▲" },
] as const;

/** Sign of an operation's shape. */
export function shapeSign(op: string): string {
  return (SHAPES.find((one) => one.op === op) ?? SHAPES[0]).sign;
}

/** Operations by shape. */
export function shapeScale(ops: readonly string[]) {
  const shapes = ops.map((op) => (SHAPES.find((one) => one.op === op) ?? SHAPES[0]).shape);
  return { domain: [...ops], range: shapes };
}

/** Text and lines take the page's own colour, so that a chart is right in light and dark. */
const CONFIG: Config = {
  background: "transparent",
  font: "system-ui, sans-serif",
  view: { stroke: null },
  axis: {
    labelColor: "currentColor",
    titleColor: "currentColor",
    domainColor: "currentColor",
    tickColor: "currentColor",
    gridColor: "currentColor",
    gridOpacity: 0.13,
    domainOpacity: 0.5,
    tickOpacity: 0.5,
    labelFontSize: 11,
    titleFontSize: 11,
    titleFontWeight: "normal",
  },
  legend: {
    labelColor: "currentColor",
    titleColor: "currentColor",
    labelFontSize: 11,
    titleFontSize: 11,
    titleFontWeight: "normal",
    labelLimit: 300,
    symbolStrokeWidth: 0,
    orient: "top",
    direction: "horizontal",
    title: null,
  },
};
