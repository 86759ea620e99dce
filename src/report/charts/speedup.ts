import { type CaseSpeedup, type Speedups, speedupText } from "../speedups.ts";
import { axisNumber, type Chart, FIT, logDomain, logTicks, tickedAxis } from "./theme.ts";

const MARK_HEIGHT = 12;

/** Colours of what is faster, slower, the same and in doubt; words beside them say so too. */
export const CHANGE_COLOURS: Readonly<Record<CaseSpeedup["change"], string>> = {
  faster: "#4477aa",
  slower: "#dd6622",
  same: "#808080",
  ambiguous: "#998822",
};

/** Speed-ups, a row a case: a dot, its noise, and the figure beside it. */
export function speedupChart({ provider, baseline, facet, cases }: Speedups): Chart {
  const rows = layoutRows(cases.map(({ label }) => label), MARK_HEIGHT);
  const values = cases.map(({ ratio, noise: [low, high], change }, row) => ({
    y: rows.middles[row],
    ratio,
    low,
    high,
    change,
    text: ratio.toFixed(2),
    below: ratio < 1,
  }));
  const [least, most] = logDomain([1, ...values.flatMap(({ low, high }) => [low, high])], 2, 1.08);
  // Figures stand beside their lines within the plot, on the side away from 1.
  const room = (most / least) ** 0.25;
  const low = values.some(({ below }) => below) ? least / room : least;
  const high = most * room;
  const x = tickedAxis("ratios", logTicks(low, high, axisNumber));
  const domains = Object.keys(CHANGE_COLOURS) as CaseSpeedup["change"][];
  const color = {
    field: "change",
    type: "nominal" as const,
    scale: { domain: domains, range: domains.map((change) => CHANGE_COLOURS[change]) },
    legend: null,
  };
  const y = { ...rows.y, field: "y" };
  const spec: Chart["spec"] = {
    ...FIT,
    height: rows.height,
    params: [rows.param, x.param],
    data: { values },
    encoding: {
      x: {
        field: "ratio",
        type: "quantitative",
        title: `speed over ${baseline}'s`,
        scale: { type: "log", domain: [low, high], nice: false },
        axis: { ...x.axis, orient: "top" },
      },
      y,
    },
    layer: [
      {
        mark: { type: "rule", color: "currentColor", opacity: 0.6, strokeDash: [3, 3] },
        encoding: { x: { datum: 1 }, y: { value: 0 }, y2: { value: "height" } },
      },
      {
        mark: { type: "rule", strokeWidth: 2, description: "noise" },
        encoding: { x: { field: "low" }, x2: { field: "high" }, color },
      },
      { mark: { type: "point", filled: true, size: 50, opacity: 1 }, encoding: { color } },
      {
        transform: [{ filter: "!datum.below" }],
        mark: { type: "text", align: "left", dx: 7, fontSize: 11, color: "currentColor" },
        encoding: { x: { field: "high", type: "quantitative" }, text: { field: "text" } },
      },
      {
        transform: [{ filter: "datum.below" }],
        mark: { type: "text", align: "right", dx: -7, fontSize: 11, color: "currentColor" },
        encoding: { x: { field: "low", type: "quantitative" }, text: { field: "text" } },
      },
    ],
  };
  return {
    title: `${provider} over ${baseline}, ${facet}`,
    caption: `${speedupText(cases)}.`,
    spec,
  };
}

/** Rows of a chart, one a case: each is as high as its label and its mark need, so that none touches another. */

const LINE = 24;
/** Lines of a label; what is longer loses its middle. */
const MOST_LINES = 4;
const LINE_HEIGHT = 12;
const GAP = 6;

/** Lays rows out below each other: the middle of each row's mark, and the axis of y, whose values are pixels from the top. */
export function layoutRows(labels: readonly string[], markHeight: number) {
  let top = GAP / 2;
  const middles: number[] = [];
  const ticks = labels.map((label) => {
    const lines = wrapLabel(label);
    const height = Math.max(lines.length * LINE_HEIGHT, markHeight);
    const middle = top + height / 2;
    middles.push(middle);
    top += height + GAP;
    // A label of several lines begins at its tick.
    return { value: middle - (lines.length - 1) * LINE_HEIGHT / 2, label: lines };
  });
  const height = top - GAP / 2;
  const { param, axis } = tickedAxis("rowLabels", ticks);
  const y = {
    type: "quantitative" as const,
    title: null,
    scale: { domain: [height, 0], nice: false, zero: false },
    axis: {
      ...axis,
      grid: false,
      ticks: false,
      domain: false,
      labelPadding: 6,
      labelLimit: 0,
      labelLineHeight: LINE_HEIGHT,
    },
  };
  return { height, middles, param, y };
}

/**
 * A label in lines, cut behind `_`, `/`, `-`, `.` or a space where one is near, or else behind a size of a descriptor, and in
 * its middle where it is too long.
 */
export function wrapLabel(label: string): string[] {
  const room = LINE * MOST_LINES;
  const half = (room - LINE) / 2;
  const shown = label.length <= room - LINE
    ? label
    : `${label.slice(0, half)}…${label.slice(-half)}`;
  const lines: string[] = [];
  let rest = shown;
  while (rest.length > LINE) {
    const end = lastCut(rest, /[_/\-. ]/g) ?? lastCut(rest, /\d(?=[a-z])/g) ?? LINE;
    lines.push(rest.slice(0, end).trimEnd());
    rest = rest.slice(end);
  }
  return [...lines, rest];
}

/** Where a line may end last behind a sign; undefined where that leaves less than half a line. */
function lastCut(text: string, signs: RegExp): number | undefined {
  const cut = [...text.slice(0, LINE + 1).matchAll(signs)].map(({ index }) => index + 1)
    .findLast((end) => end <= LINE);
  return cut !== undefined && cut > LINE / 2 ? cut : undefined;
}
