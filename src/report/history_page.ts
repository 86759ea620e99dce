/** The page of `wgconv history`. */
import { caseLabel, dtypeText, seriesLabel } from "./case_key.ts";
import { type Mark, runChart, sparkline } from "./charts/history.ts";
import { type Chart, renderCharts } from "./charts/theme.ts";
import { CHANGE_COLOURS } from "./charts/speedup.ts";
import { counted, formatError, formatMilliseconds, formatShare } from "./format.ts";
import {
  type History,
  type HistoryCase,
  type HistoryChange,
  type HistoryPoint,
  relativeSpeeds,
} from "./history.ts";
import {
  allChanges,
  type CaseChange,
  casesByDevice,
  CHANGE_COLUMNS,
  CHANGED_RUN_COLUMNS,
  changedRunRows,
  changeRow,
  changeText,
  dayOf,
  historyHeading,
  standingLines,
} from "./history_views.ts";
import { figure, folded, heading, headline, type Html, htmlPage, table, text } from "./html.ts";
import { usableTime } from "./speed_change.ts";
import type { Column } from "./table.ts";

const COLOURS: Readonly<Record<HistoryChange["kind"], string>> = {
  SLOWER: CHANGE_COLOURS.slower,
  FASTER: CHANGE_COLOURS.faster,
  WRONG: "#cc3333",
  RIGHT: "#228833",
};

/** Regressions that have a chart of their own. */
const CHARTED = 12;
/** Rows of the table of changes; the page would be slow to open. */
const MOST_CHANGES = 2000;

/** What is drawn of a case over its runs, how it is printed, and the least factor that its scale spans. */
const FIGURES: readonly {
  readonly title: string;
  readonly of: (point: HistoryPoint) => number | null | undefined;
  readonly print: (value: number) => string;
  readonly least: number;
  readonly marks: readonly HistoryChange["kind"][];
}[] = [
  {
    title: "time",
    of: (point) => usableTime(point)?.median,
    print: formatMilliseconds,
    least: 1.2,
    marks: ["SLOWER", "FASTER"],
  },
  {
    title: "relative L2",
    of: ({ accuracy }) => accuracy?.rel_l2,
    print: formatError,
    least: 3,
    marks: ["WRONG", "RIGHT"],
  },
  { title: "of peak", of: ({ peak }) => peak, print: formatShare, least: 1.2, marks: [] },
];

/**
 * A history as one HTML page: charts as inline SVG, no scripts, nothing loaded.
 *
 * @param leftOut Why records are missing: a sentence a file.
 */
export async function historyPage(history: History, leftOut: readonly string[]): Promise<string> {
  const changes = allChanges(history);
  const standing = changes.filter(({ stands, kind }) =>
    stands && (kind === "SLOWER" || kind === "WRONG")
  );
  const [now, ...others] = standingLines(history);
  const charts = [
    ...speedCharts(history),
    ...standing.slice(-CHARTED).map((one) => changeChart(history, one)),
  ];
  const drawn = await renderCharts(charts);
  const key = (["SLOWER", "FASTER", "WRONG", "RIGHT"] as const)
    .map((kind) => `<li><i style="background:${COLOURS[kind]}"></i>${kind}</li>`).join("");
  return htmlPage("wgconv history", [
    "<h1>wgconv history</h1>",
    headline(now!, others),
    `<p>${text(historyHeading(history))}.</p>`,
    leftOut.length === 0
      ? ""
      : `<section class="failures">\n${heading("Left out")}\n<ul>${
        leftOut.map((line) => `<li>${text(line)}</li>`).join("\n")
      }</ul>\n</section>`,
    `<section>\n${heading("Over time")}\n<ul class="key">${key}</ul>\n<div class="figures">\n${
      drawn.map((drawing, i) => figure(charts[i]!, drawing)).join("\n")
    }\n</div>\n</section>`,
    changeTables(history, changes),
    `<section>\n${
      heading("Every case")
    }\n<p class="note">Values of the last run, and a line over all ` +
    `runs. Scales are logarithmic, each its own.</p>\n${caseTable(history)}\n</section>`,
    `<section>\n${heading("Runs")}\n${
      folded(counted(history.runs.length, "run"), history.runs.length, runTable(history))
    }\n</section>`,
  ]);
}

function speedCharts(history: History): Chart[] {
  const lines = casesByDevice(history).map(([name, cases]) => ({
    name,
    points: relativeSpeeds(cases).map(({ run, speed }) => ({ run, value: speed }))
      .filter(({ value }) => drawable(value)),
  })).filter(({ points }) => points.length > 0);
  return lines.map((line) =>
    runChart(history.runs, [line], {
      title: `Speed, ${line.name}`,
      caption: "Speed over that of cases' first runs: the geometric mean of the cases of a run.",
      axis: "speed",
      least: 1.2,
    })
  );
}

function changeChart({ runs }: History, { of, ...change }: CaseChange): Chart {
  const { title, of: value, least, marks } = FIGURES[change.kind === "WRONG" ? 1 : 0]!;
  const { record, points, changes } = of;
  return runChart(runs, [{
    name: caseLabel(record),
    points: points.flatMap((point) => {
      const one = drawable(value(point));
      return one === undefined ? [] : [{ run: point.run, value: one }];
    }),
  }], {
    title: `${caseLabel(record)} ${record.op}, ${dtypeText(record)}`,
    caption: `${changeText(change)} since ${runs[change.after.run]!.label}. ` +
      `${seriesLabel(record)}, ${record.layout}`,
    axis: title === "time" ? "ms" : title,
    least,
    marks: changes.flatMap(({ kind, after }) => {
      const one = drawable(value(after));
      return marks.includes(kind) && one !== undefined
        ? [{ run: after.run, value: one, colour: COLOURS[kind] }]
        : [];
    }),
  });
}

function changeTables(history: History, changes: readonly CaseChange[]): string {
  if (changes.length === 0) {
    return `<section>\n${heading("Changes")}\n<p>No case changed.</p>\n</section>`;
  }
  const ids = new Map(history.cases.map((one, place) => [one, place]));
  const shown = changes.slice(-MOST_CHANGES).reverse();
  const rows = shown.map((change) => {
    const [problem, ...cells] = changeRow(history, change);
    const link = { html: `<a href="#case${ids.get(change.of)}">${text(problem!)}</a>` };
    return [link, ...cells, change.stands ? "yes" : "no"];
  });
  const runs = changedRunRows(history).reverse();
  const fewer = shown.length < changes.length
    ? `<p class="note">The latest ${MOST_CHANGES} of ${changes.length} changes.</p>\n`
    : "";
  return `<section>\n${heading("Changes")}\n` +
    `${folded(counted(runs.length, "run"), runs.length, table(CHANGED_RUN_COLUMNS, runs))}\n${
      folded(
        counted(changes.length, "change"),
        rows.length,
        fewer + table([...CHANGE_COLUMNS, { title: "stands" }], rows),
      )
    }\n</section>`;
}

function caseTable({ runs, cases }: History): string {
  const drawn = FIGURES.filter(({ of }) => cases.some(({ points }) => points.some(of)));
  const devices = new Set(cases.map(({ record }) => record.device)).size > 1;
  const columns: Column[] = [
    ...["problem", "op", "dtype", "layout", "made by"].map((title) => ({ title })),
    ...devices ? [{ title: "device" }] : [],
    ...drawn.flatMap(({ title }) => [{ title, align: "right" as const }, { title: "over time" }]),
    { title: "changes" },
  ];
  const rows = cases.map((one, place): (string | Html)[] => {
    const { record } = one;
    return [
      { html: `<span id="case${place}">${text(caseLabel(record))}</span>` },
      record.op,
      dtypeText(record),
      record.layout || "-",
      seriesLabel(record),
      ...devices ? [record.device] : [],
      ...drawn.flatMap((figure) => figureCells(one, figure, runs.length)),
      one.changes.map((change) => `${runs[change.after.run]!.label} ${changeText(change)}`)
        .join("; ") || "-",
    ];
  });
  return table(columns, rows);
}

function figureCells(
  { points, changes }: HistoryCase,
  { title, of, print, least, marks }: typeof FIGURES[number],
  places: number,
): [string, Html | string] {
  const own = points.flatMap((point) => {
    const value = drawable(of(point));
    return value === undefined ? [] : [{ at: point.run, value }];
  });
  const last = of(points.at(-1)!);
  const shown = last === null || last === undefined ? "-" : print(last);
  if (own.length === 0) return [shown, "-"];
  const found = changes.flatMap(({ kind, after }): Mark[] => {
    const value = drawable(of(after));
    return marks.includes(kind) && value !== undefined
      ? [{ at: after.run, value, colour: COLOURS[kind] }]
      : [];
  });
  const label = `${title}: ${print(own[0]!.value)} first, ${print(own.at(-1)!.value)} last, ` +
    `${counted(own.length, "run")}`;
  return [shown, { html: sparkline(own, { places, marks: found, least, label }) }];
}

/** What a logarithmic scale has room for. */
function drawable(value: number | null | undefined): number | undefined {
  return typeof value === "number" && value > 1e-300 && value < 1e300 ? value : undefined;
}

function runTable({ runs }: History): string {
  const names = [...new Set(runs.flatMap(({ traits }) => Object.keys(traits)))];
  const columns = ["run", "date", ...names].map((title) => ({ title }));
  return table(
    columns,
    runs.map((run) => [run.label, dayOf(run), ...names.map((name) => run.traits[name] || "-")])
      .reverse(),
  );
}
