import { text } from "../html.ts";
import { median } from "../stats.ts";

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
