import { distinct } from "./points.ts";
import { axisNumber, logTicks, tickedAxis } from "./axes.ts";
import { type Chart, colourScale, FIT, shapeScale } from "./theme.ts";

/** A dot of a chart of dots. */
export interface Dot {
  readonly x: number;
  readonly y: number;
  readonly series: string;
  readonly op: string;
}

/** An axis of logarithms. */
export interface LogAxis {
  readonly title: string;
  readonly domain: readonly [low: number, high: number];
  readonly print?: (value: number) => string;
}

/** Dots on two axes of logarithms, a colour a series and a shape an operation. */
export function dotLayer(dots: readonly Dot[], all: readonly string[], xy: LogAxes) {
  const shown = all.filter((name) => dots.some(({ series }) => series === name));
  const colours = colourScale(all);
  return {
    data: { values: [...dots] },
    mark: { type: "point", filled: true, size: 40, opacity: 0.8 },
    encoding: {
      ...xy.encoding,
      color: {
        field: "series",
        type: "nominal",
        scale: { domain: shown, range: shown.map((name) => colours.range[all.indexOf(name)]!) },
        legend: null,
      },
      shape: {
        field: "op",
        type: "nominal",
        scale: shapeScale(distinct(dots.map(({ op }) => op))),
        legend: null,
      },
    },
  } as const;
}

/** Two axes of logarithms, of fields `x` and `y`. */
export type LogAxes = ReturnType<typeof logAxes>;

/** Prepares axes for {@linkcode dotLayer} and what lies below its dots. */
export function logAxes(x: LogAxis, y: LogAxis) {
  const [across, up] = [logEncoding("x", x), logEncoding("y", y)];
  return {
    params: [across.param, up.param],
    encoding: { x: across.encoding, y: up.encoding },
  };
}

/** An axis of logarithms: the parameter that holds its labels, and the encoding of a field. */
export function logEncoding(
  field: string,
  { title, domain: [low, high], print = axisNumber }: LogAxis,
) {
  const { param, axis } = tickedAxis(`${field}Labels`, logTicks(low, high, print));
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

/** A chart of layers on two such axes. */
export function logChart(xy: LogAxes, layer: readonly unknown[]): Chart["spec"] {
  return { ...FIT, height: 280, params: xy.params, layer: [...layer] } as Chart["spec"];
}
