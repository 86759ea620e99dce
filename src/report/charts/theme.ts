import type { Config, TopLevelSpec } from "vega-lite";

/** A chart of the page: one Vega-Lite specification, drawn as one SVG. */
export interface Chart {
  readonly title: string;
  /** What to see, and what was left out. */
  readonly caption: string;
  readonly spec: TopLevelSpec;
}

/** Fills that are told apart on light and on dark ground, by people with colour-blindness too (Tol, bright). */
const PALETTE = [
  "#4477aa",
  "#ee7733",
  "#228833",
  "#cc3377",
  "#bbaa33",
  "#44aacc",
  "#9966cc",
  "#999999",
  "#885533",
  "#ee99aa",
];

/** Colour of what went wrong. */
export const WRONG = "#dd3322";

/** One colour a series, the same in every chart of a page. */
export function colourScale(series: readonly string[]) {
  return { domain: [...series], range: series.map((_, i) => PALETTE[i % PALETTE.length]!) };
}

/** Text and lines take the page's own colour, so that a chart is right in light and dark. */
export const CONFIG: Config = {
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

/** Legend of shapes, beside a chart whose colours are explained above it. */
export const SHAPE_LEGEND = {
  symbolFillColor: "currentColor",
  orient: "right",
  direction: "vertical",
} as const;
