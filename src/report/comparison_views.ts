import { caseLabel, dtypeText, seriesLabel } from "./case_key.ts";
import { printableMessage } from "../printable.ts";
import type { ComparedCase, Comparison } from "./comparison.ts";
import { distinct, withOneSpelling } from "./charts/points.ts";
import { formatMilliseconds } from "./format.ts";
import type { ReadCase } from "./record_schema.ts";
import { type Column, markdownTable, markdownText, textTable } from "./table.ts";

const CASE_COLUMNS: readonly Column[] = [
  { title: "problem" },
  { title: "op" },
  { title: "dtype", spare: 3 },
  { title: "layout", spare: 2 },
  { title: "made by", spare: 1 },
  { title: "base", align: "right" },
  { title: "new", align: "right" },
  { title: "speed-up", align: "right" },
  { title: "speed", whole: true },
  { title: "accuracy", whole: true },
];

const SUMMARY_COLUMNS: readonly Column[] = [
  { title: "op" },
  { title: "cases", align: "right" },
  { title: "geomean speed-up", align: "right" },
  { title: "total speed-up", align: "right" },
  { title: "SAME", align: "right" },
  { title: "FASTER", align: "right" },
  { title: "SLOWER", align: "right" },
  { title: "AMBIGUOUS", align: "right" },
];

/** How a comparison is shown. */
interface ViewOptions {
  /** Characters in a line of the terminal; undefined where there is none. */
  readonly room?: number | undefined;
  /** Whether the speed-up of the total time stands beside the geometric mean. */
  readonly weighted?: boolean | undefined;
}

/**
 * A comparison as plain text.
 *
 * @param paint What becomes of words that say how a case came out.
 */
export function comparisonText(
  comparison: Comparison,
  paint: (text: string) => string = (text) => text,
  { room, weighted = false }: ViewOptions = {},
): string {
  const table: Table = (columns, rows) =>
    textTable(columns, rows, (cell, column) => {
      const { title } = columns[column]!;
      return title === "speed" || title === "accuracy" ? paint(cell) : cell;
    }, room);
  return sections(comparison, table, weighted).join("\n\n");
}

/** A comparison as Markdown, for a pull request. */
export function comparisonMarkdown(
  comparison: Comparison,
  { weighted = false }: ViewOptions = {},
): string {
  return sections(comparison, markdownTable, weighted, (line) => `- ${markdownText(line)}`)
    .join("\n\n");
}

/** A comparison as plain data, without the samples. */
export function comparisonData(comparison: Comparison) {
  const { rule, accuracyRegressions, onlyBase, onlyNext } = comparison;
  return {
    by: comparison.by,
    threshold: rule.threshold,
    margin: rule.margin,
    exit_code: comparison.exitCode,
    cases: comparison.cases.map(({ base, next, speed, accuracy, regression }) => ({
      problem: next.problem,
      op: next.op,
      dtype: next.dtype,
      ...(next.out_dtype === undefined ? {} : { out_dtype: next.out_dtype }),
      base: side(base),
      new: side(next),
      speed,
      accuracy,
      regression,
    })),
    summaries: comparison.summaries,
    accuracy_regressions: accuracyRegressions.map(({ next, reason }) => ({
      problem: next.problem,
      op: next.op,
      ...side(next),
      reason,
    })),
    wrong: comparison.wrong.map(describeCase),
    only_base: onlyBase.map(describeCase),
    only_new: onlyNext.map(describeCase),
    replaced: comparison.replaced,
    not_compared: comparison.uncompared.map(({ side, record, reason }) => ({
      side: side === "base" ? "base" : "new",
      case: describeCase(record),
      reason,
    })),
  };
}

function side(record: ReadCase) {
  const { provider, algorithm, choice, kernel, layout, device, time_ms: time, verdict } = record;
  return {
    ...{ provider, algorithm },
    ...(choice === undefined ? {} : { choice }),
    ...{ kernel, layout, device, time_ms: time?.median ?? null, verdict },
  };
}

type Table = (columns: readonly Column[], rows: readonly (readonly string[])[]) => string;

function sections(
  comparison: Comparison,
  table: Table,
  weighted: boolean,
  item: (line: string) => string = (line) => line,
): string[] {
  const { cases, summaries } = comparison;
  if (cases.length === 0) return [];
  const list = (lines: readonly string[]) =>
    lines.map((line) => item(printableMessage(line))).join("\n");
  return [
    table(CASE_COLUMNS, cases.map(caseCells)),
    table(
      SUMMARY_COLUMNS.filter(({ title }) => weighted || title !== "total speed-up"),
      summaries.map(({ op, geomean, total, timed, verdicts }) => [
        op,
        String(timed),
        geomean === null ? "-" : geomean.toFixed(3),
        ...(weighted ? [total === null ? "-" : total.toFixed(3)] : []),
        ...[verdicts.SAME, verdicts.FASTER, verdicts.SLOWER, verdicts.AMBIGUOUS].map(String),
      ]),
    ),
    list(remarks(comparison)),
  ].filter((text) => text !== "");
}

function caseCells({ base, next, speed, accuracy, regression }: ComparedCase): string[] {
  const word = regression ? `${speed.verdict} (regression)` : speed.verdict;
  return [
    caseLabel(next),
    next.op,
    dtypeText(next),
    arrow(base.layout || "-", next.layout || "-"),
    arrow(seriesLabel(base), seriesLabel(next)),
    time(base),
    time(next),
    speed.speedup === null ? "-" : speed.speedup.toFixed(3),
    speed.reason === undefined ? word : `${word}: ${speed.reason}`,
    accuracy.verdict === "unknown"
      ? "-"
      : accuracy.reason === undefined
      ? accuracy.verdict
      : `${accuracy.verdict}: ${firstSentence(accuracy.reason)}`,
  ];
}

function arrow(a: string, b: string): string {
  return a === b ? a : `${a} -> ${b}`;
}

function time({ time_ms: time }: ReadCase): string {
  return time === null ? "-" : formatMilliseconds(time.median);
}

function firstSentence(text: string): string {
  return text.split("\n")[0]!;
}

/** What the tables leave unsaid: regressions by name, and what was not compared. */
function remarks(comparison: Comparison): string[] {
  const { cases, rule, accuracyRegressions, wrong, onlyBase, onlyNext, replaced } = comparison;
  const records = [...cases.map(({ base }) => base), ...cases.map(({ next }) => next)];
  const names = withOneSpelling(records).map(({ device }) => device);
  const slower = cases.filter(({ regression }) => regression);
  const devices = (of: readonly string[]) => distinct(of.filter((device) => device !== ""));
  const [left, right] = [devices(names.slice(0, cases.length)), devices(names.slice(cases.length))];
  const unlike = left.length > 0 && right.length > 0 && left.join() !== right.join();
  return [
    ...firstTen(
      accuracyRegressions.map(({ next, reason }) =>
        `accuracy regression: ${describeCase(next)}: ${firstSentence(reason)}`
      ),
    ),
    ...firstTen(
      wrong.map((record) =>
        `wrong result: ${describeCase(record)}: ${firstSentence(record.message ?? record.verdict)}`
      ),
    ),
    ...firstTen(
      [...slower].sort((a, b) => a.speed.speedup! - b.speed.speedup!).map(({ next, speed }) =>
        `speed regression: ${describeCase(next)}: takes ${percent(1 / speed.speedup! - 1)} ` +
        `longer, ${percent(rule.threshold)} allowed`
      ),
    ),
    ...(unlike ? [`the devices differ: ${left.join(", ")} and ${right.join(", ")}`] : []),
    ...measuredLines(cases),
    ...comparison.uncomparedLines,
    ...unmatched("base", onlyBase),
    ...unmatched("new run", onlyNext),
    ...(replaced === 1 ? ["1 record was replaced by a later one of the same case"] : []),
    ...(replaced > 1 ? [`${replaced} records were replaced by later ones of the same case`] : []),
  ];
}

/** How many cases ran another kernel because one side took what had been timed on its device. */
function measuredLines(cases: readonly ComparedCase[]): string[] {
  const count =
    cases.filter(({ base, next }) => base.kernel !== next.kernel && base.choice !== next.choice)
      .length;
  if (count === 0) return [];
  const ran = count === 1 ? "1 case ran another kernel" : `${count} cases ran other kernels`;
  return [`${ran}: one side took what was timed on its device (tune, --tune-budget)`];
}

/** The first of many lines, which begin with their kind. */
function firstTen(lines: readonly string[]): string[] {
  if (lines.length <= 10) return [...lines];
  return [...lines.slice(0, 10), `${lines[0]!.split(":")[0]}s: ${lines.length - 10} more`];
}

function unmatched(where: string, cases: readonly ReadCase[]): string[] {
  if (cases.length === 0) return [];
  const more = cases.length > 3 ? ` and ${cases.length - 3} more` : "";
  const few = cases.slice(0, 3).map(describeCase).join("; ");
  return [`only in the ${where}, not compared: ${few}${more}`];
}

/** A case in a line: enough to find it, and to run it again. */
function describeCase(record: ReadCase): string {
  const { op, problem, layout } = record;
  return [op, problem, dtypeText(record), layout, `(${seriesLabel(record)})`].filter((word) => word)
    .join(" ");
}

/** A fraction as a percentage. */
export function percent(fraction: number): string {
  return `${Number((fraction * 100).toPrecision(3))} %`;
}
