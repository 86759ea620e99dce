import { shorten } from "../../printable.ts";
import type { HistoryRun } from "../history.ts";
import { text } from "../html.ts";
import { median } from "../stats.ts";
import { type Chart, colourScale, FIT, logDomain, logEncoding, tickedAxis } from "./theme.ts";

const WIDTH = 160;
const HEIGHT = 28;
/** Room for marks. */
const EDGE = 4;

/** A place of a line that stands out. */
export interface Mark {
  readonly at: number;
  readonly value: number;
  readonly colour: string;
}

/**
 * A small line of values on a logarithmic scale, for a table's cell. More places than it is wide are drawn as the medians of
 * neighbours.
 *
 * @param points Places from 0 below `places`, in order, with values above 0.
 * @param least How much the largest and the smallest value of the scale differ at least, as a factor.
 * @param label What it shows, for those who cannot see it.
 */
export function sparkline(
  points: readonly { readonly at: number; readonly value: number }[],
  { places, marks = [], least, label }: {
    readonly places: number;
    readonly marks?: readonly Mark[];
    readonly least: number;
    readonly label: string;
  },
): string {
  if (points.length === 0) return "-";
  const logs = points.map(({ value }) => Math.log(value));
  const [low, high] = logs.reduce(
    ([a, b], log) => [Math.min(a, log), Math.max(b, log)],
    [Infinity, -Infinity],
  );
  const air = Math.max(0, Math.log(least) - (high - low)) / 2;
  const x = (at: number) =>
    Math.round(EDGE + (WIDTH - 2 * EDGE) * (places > 1 ? at / (places - 1) : 0.5));
  const y = (value: number) =>
    Math.round(
      10 * (EDGE + (HEIGHT - 2 * EDGE) * (high + air - Math.log(value)) /
          (high - low + 2 * air || 1)),
    ) / 10;
  const line = [...Map.groupBy(points, ({ at }) => x(at))]
    .map(([at, own]) => `${at},${y(median(own.map(({ value }) => value)))}`);
  const dot = (cx: number, cy: number, colour: string, r: number) =>
    `<circle cx="${cx}" cy="${cy}" r="${r}" fill="${colour}"/>`;
  const shown = [
    line.length > 1
      ? `<polyline points="${
        line.join(" ")
      }" fill="none" stroke="currentColor" stroke-width="1.2" opacity=".75"/>`
      : dot(x(points[0]!.at), y(points[0]!.value), "currentColor", 2),
    ...marks.map(({ at, value, colour }) => dot(x(at), y(value), colour, 3.2)),
  ];
  return `<svg role="img" aria-label="${text(label)}" width="${WIDTH}" height="${HEIGHT}" ` +
    `viewBox="0 0 ${WIDTH} ${HEIGHT}">${shown.join("")}</svg>`;
}

/** A line of a chart over runs. */
interface RunLine {
  readonly name: string;
  readonly points: readonly { readonly run: number; readonly value: number }[];
}

/** A run in which something changed. */
interface RunMark {
  readonly run: number;
  readonly value: number;
  readonly colour: string;
}

/** Longest label of a run on the axis, the pixels of a character and of the axis. */
const LONGEST = 19;
const CHARACTER = 6.5;
const AXIS = 330;

/** Values over runs, on a logarithmic scale whose ends differ by `least` or more. */
export function runChart(
  runs: readonly HistoryRun[],
  lines: readonly RunLine[],
  { title, caption, axis, marks = [], least }: {
    readonly title: string;
    readonly caption: string;
    readonly axis: string;
    readonly marks?: readonly RunMark[];
    readonly least: number;
  },
): Chart {
  const rows = lines.flatMap(({ name, points }) => points.map((point) => ({ ...point, name })));
  const up = logEncoding("value", {
    title: axis,
    domain: logDomain(rows.map(({ value }) => value), least, 1.02),
  });
  const x = tickedAxis("runLabels", runTicks(runs));
  const scale = colourScale(lines.map(({ name }) => name));
  return {
    title,
    caption,
    spec: {
      ...FIT,
      height: 190,
      params: [up.param, x.param],
      encoding: {
        x: {
          field: "run",
          type: "quantitative",
          title: null,
          axis: { ...x.axis, grid: false },
          scale: { domain: [0, Math.max(1, runs.length - 1)], nice: false, zero: false },
        },
        y: up.encoding,
      },
      layer: [
        {
          data: { values: rows },
          mark: { type: "line", strokeWidth: 1.5, point: rows.length === 1 },
          encoding: { color: { field: "name", type: "nominal", scale, legend: null } },
        },
        ...marks.length === 0 ? [] : [{
          data: { values: [...marks] },
          mark: { type: "point" as const, filled: true, size: 60, opacity: 1 },
          encoding: { color: { field: "colour", type: "nominal" as const, scale: null } },
        }],
      ],
    },
  };
}

/** As many runs as have room for their names and days. */
function runTicks(runs: readonly HistoryRun[]) {
  const labels = runs.map(({ label }) => shorten(label, LONGEST));
  const longest = Math.max(...labels.map(({ length }) => length), 10);
  const most = Math.max(2, Math.min(5, Math.floor(AXIS / (longest * CHARACTER + 12))));
  const count = Math.min(most, runs.length);
  const places = Array.from(
    { length: count },
    (_, i) => count === 1 ? 0 : Math.round(i * (runs.length - 1) / (count - 1)),
  );
  return places.map((value) => {
    const day = runs[value]!.date.slice(0, 10);
    const label = labels[value]!;
    return { value, label: day === "" || label.startsWith(day) ? label : [label, day] };
  });
}
