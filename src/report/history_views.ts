import { printableMessage } from "../printable.ts";
import { caseLabel, dtypeText, seriesLabel } from "./case_key.ts";
import { isWrong } from "./comparison.ts";
import { percent } from "./comparison_views.ts";
import { counted, formatMilliseconds, significant } from "./format.ts";
import {
  changedRuns,
  type History,
  type HistoryCase,
  type HistoryChange,
  type HistoryPoint,
  type HistoryRun,
  relativeSpeeds,
} from "./history.ts";
import { verdictWord } from "./record.ts";
import { type Column, type Paint, textTable } from "./table.ts";

/** Rows of a table on a terminal. */
const SHOWN = 20;

/** A change and the case that it is of. */
export interface CaseChange extends HistoryChange {
  readonly of: HistoryCase;
}

/** Every change, by its run; those of a run with the largest first. */
export function allChanges({ cases }: History): CaseChange[] {
  const size = ({ speedup = 0 }: HistoryChange) => -Math.abs(Math.log(speedup));
  return cases.flatMap((of) => of.changes.map((change) => ({ ...change, of })))
    .sort((a, b) => a.after.run - b.after.run || size(a) - size(b));
}

export const CHANGED_RUN_COLUMNS: readonly Column[] = [
  { title: "run" },
  { title: "date", whole: true },
  { title: "slower", align: "right" },
  { title: "faster", align: "right" },
  { title: "wrong", align: "right" },
  { title: "right again", align: "right" },
  { title: "new in it", spare: 1 },
];

/** A row for each run in which something changed. */
export function changedRunRows(history: History): string[][] {
  return changedRuns(history).map(({ run, counts, differences }) => [
    history.runs[run]!.label,
    dayOf(history.runs[run]!),
    ...[counts.SLOWER, counts.FASTER, counts.WRONG, counts.RIGHT].map(String),
    differences.join(", ") || "-",
  ]);
}

export const CHANGE_COLUMNS: readonly Column[] = [
  { title: "problem" },
  { title: "op" },
  { title: "dtype", spare: 3 },
  { title: "layout", spare: 2 },
  { title: "made by", spare: 1 },
  { title: "change", whole: true },
  { title: "since" },
  { title: "before", align: "right" },
  { title: "after", align: "right" },
  { title: "p", align: "right", spare: 4 },
];

/** A change as a row of {@linkcode CHANGE_COLUMNS}. */
export function changeRow({ runs }: History, { of, ...change }: CaseChange): string[] {
  const { record } = of;
  const { after, before, p } = change;
  return [
    caseLabel(record),
    record.op,
    dtypeText(record),
    record.layout || "-",
    seriesLabel(record),
    changeText(change),
    runs[after.run]!.label,
    pointText(before),
    pointText(after),
    typeof p === "number" ? p.toExponential(1) : "-",
  ];
}

/** `SLOWER by 20 %`, `WRONG: pass became fail: channel 3`. */
export function changeText({ kind, speedup, reason }: HistoryChange): string {
  if (speedup === undefined) return `${kind}: ${reason!.split("\n")[0]}`;
  return kind === "SLOWER"
    ? `SLOWER by ${percent(1 / speedup - 1)}`
    : `FASTER by ${percent(speedup - 1)}`;
}

/** A history as plain data: its runs, and what changed in them. */
export function historyData(history: History) {
  const point = ({ run, time_ms: time, verdict, peak }: HistoryPoint) => ({
    run: history.runs[run]!.label,
    ...{ time_ms: time?.median ?? null, verdict, peak },
  });
  return {
    runs: history.runs,
    cases: history.cases.length,
    changes: allChanges(history).map(({ of: { record }, before, after, ...change }) => ({
      ...{ problem: record.problem, op: record.op, dtype: record.dtype, layout: record.layout },
      ...{ algorithm: record.algorithm, provider: record.provider, device: record.device },
      ...change,
      ...{ before: point(before), after: point(after) },
    })),
  };
}

function pointText({ time_ms: time, verdict }: HistoryPoint): string {
  if (time === null || verdict === "fail") return verdictWord(verdict);
  return formatMilliseconds(time.median);
}

/** The day of a run: `2026-11-29`; `-` where it is not known. */
export function dayOf({ date }: HistoryRun): string {
  return date === "" ? "-" : date.slice(0, 10);
}

/** Devices of cases, each with its own. */
export function casesByDevice({ cases }: History): [device: string, cases: HistoryCase[]][] {
  return [...Map.groupBy(cases, ({ record }) => record.device || "a device that no record names")];
}

/** What a history has: `1000 runs of 200 cases on NVIDIA H200, 2024-01-01 to 2026-09-26`. */
export function historyHeading(history: History): string {
  const { runs, cases } = history;
  const days = runs.map(dayOf).filter((day) => day !== "-");
  const dates = days.length === 0
    ? ""
    : days[0] === days.at(-1)
    ? `, ${days[0]}`
    : `, ${days[0]} to ${days.at(-1)}`;
  const devices = casesByDevice(history).map(([device]) => device).join(" and ");
  return `${counted(runs.length, "run")} of ${counted(cases.length, "case")} on ${devices}${dates}`;
}

/** What is so in the last runs: sentences. */
export function standingLines(history: History): string[] {
  const { runs, cases } = history;
  const slower =
    cases.filter(({ changes }) => changes.some(({ kind, stands }) => kind === "SLOWER" && stands))
      .length;
  const wrong = cases.filter(({ points }) => isWrong(points.at(-1)!)).length;
  const passing = cases.reduce((sum, one) => sum + one.passing, 0);
  const devices = casesByDevice(history);
  const speeds = devices.flatMap(([device, own]) => {
    const last = relativeSpeeds(own).at(-1);
    const where = devices.length > 1 ? ` on ${device}` : "";
    return last === undefined || runs.length < 2 ? [] : [
      `speed of the last run${where}: ${significant(last.speed)} times that of cases' first runs ` +
      "(geometric mean)",
    ];
  });
  const gone = devices.reduce((sum, [, own]) => {
    const last = Math.max(...own.map(({ points }) => points.at(-1)!.run));
    return sum + own.filter(({ points }) => points.at(-1)!.run < last).length;
  }, 0);
  const untimed =
    cases.filter(({ points }) =>
      points.every(({ time_ms: time }) => time === null || time.samples.length < 5)
    ).length;
  return [
    `${counted(slower, "case")} slower than before, ${wrong} wrong`,
    ...speeds,
    ...devices.length > 1
      ? [`${devices.length} devices: a case is compared with its own device's runs alone`]
      : [],
    ...passing === 0 ? [] : [
      `noise: ${counted(passing, "single run")} of a case differed and the next did not; ` +
      "not counted",
    ],
    ...gone === 0 ? [] : [`${counted(gone, "case")} not in the last run`],
    ...untimed === 0 ? [] : [
      `${counted(untimed, "case")} with fewer than 5 samples a run, whose times no test can tell`,
    ],
  ];
}

/**
 * A history as plain text: the runs that changed something, the changes that stand, what is so now.
 *
 * @param paint What becomes of words that say how a case came out.
 */
export function historyText(history: History, paint: Paint, room?: number): string {
  const lines = (all: readonly string[]) => all.map(printableMessage).join("\n");
  const rows = changedRunRows(history);
  const [now, ...others] = standingLines(history);
  const standing = allChanges(history).filter(({ stands, kind }) =>
    stands && (kind === "SLOWER" || kind === "WRONG")
  );
  const last = (all: readonly string[][]) => all.slice(-SHOWN);
  const table = (columns: readonly Column[], all: readonly string[][], painted?: Paint) =>
    textTable(columns, last(all), painted, room) +
    (all.length > SHOWN ? `\nand ${all.length - SHOWN} earlier ones (--output FILE.html)` : "");
  return [
    lines([historyHeading(history)]),
    rows.length === 0
      ? "no case changed"
      : `runs with changes:\n${table(CHANGED_RUN_COLUMNS, rows)}`,
    standing.length === 0 ? "" : `regressions that stand:\n${
      table(
        CHANGE_COLUMNS,
        standing.map((one) => changeRow(history, one)),
        (cell, column) => CHANGE_COLUMNS[column]!.title === "change" ? paint(cell, column) : cell,
      )
    }`,
    lines([`at the last run: ${now}`, ...others]),
  ].filter((part) => part !== "").join("\n\n");
}
