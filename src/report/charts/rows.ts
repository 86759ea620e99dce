/** Rows of a chart, one a case: each is as high as its label and its mark need, so that none touches another. */
import { tickedAxis } from "./axes.ts";

/** Characters of a line of a label. */
const LINE = 24;
/** Lines of a label; what is longer loses its middle. */
const MOST_LINES = 4;
/** Pixels of a line of a label, and between rows. */
const LINE_HEIGHT = 12;
const GAP = 6;

/** Where the axis of the marks' values stands: however many rows there are, beside the heading. */
export const ROWS_AXIS = "top" as const;

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
