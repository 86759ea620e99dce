import { shorten } from "../../printable.ts";
import type { HistoryRun } from "../history.ts";
import { logDomain, logEncoding, tickedAxis } from "./axes.ts";
import { type Chart, colourScale, FIT } from "./theme.ts";

/** A line of a chart over runs. */
export interface RunLine {
  readonly name: string;
  readonly points: readonly { readonly run: number; readonly value: number }[];
}

/** A run in which something changed. */
export interface RunMark {
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
