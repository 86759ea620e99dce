import { type CaseSpeedup, type Speedups, speedupText } from "../speedups.ts";
import { axisNumber, logDomain, logTicks, tickedAxis } from "./axes.ts";
import { layoutRows, ROWS_AXIS } from "./rows.ts";
import { type Chart, FIT } from "./theme.ts";

/** Pixels of a row's dot. */
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
        axis: { ...x.axis, orient: ROWS_AXIS },
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
