import type { Config, TopLevelSpec } from "vega-lite";

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
