import type { Config, TopLevelSpec } from "vega-lite";

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
