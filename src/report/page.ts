import { dtypeText } from "./case_key.ts";
import { caseLabel, seriesLabel } from "./case_label.ts";
import { accumulationCharts, errorHistograms } from "./charts/errors.ts";
import { throughputCharts, workspaceCharts } from "./charts/bars.ts";
import { chartPoints, distinct, type Point } from "./charts/points.ts";
import { renderCharts } from "./charts/render.ts";
import { rooflineCharts } from "./charts/roofline.ts";
import type { Ceilings } from "./charts/device_ceilings.ts";
import { speedupCharts, usualBaselines } from "./charts/speedup.ts";
import type { Chart } from "./charts/theme.ts";
import { PAGE_STYLE } from "./page_style.ts";
import type { RecordSet } from "./read_records.ts";
import type { ReadCase, ReadEnvironment } from "./record_schema.ts";
import { recordTable } from "./record_table.ts";
import type { Column } from "./table.ts";

/** What {@linkcode reportPage} may be told. */
export interface PageOptions {
  readonly title: string;
  /** Names of the files that the records are of. */
  readonly sources: readonly string[];
  /** Provider that speed-ups are over; the peers where absent. */
  readonly baseline?: string;
  readonly ceilings: Ceilings;
}

interface Section {
  readonly title: string;
  readonly charts: readonly Chart[];
  /** Said in place of charts that cannot be made. */
  readonly without?: string;
}

/** One self-contained HTML page: charts as inline SVG, no scripts, nothing loaded. */
export async function reportPage(records: RecordSet, options: PageOptions): Promise<string> {
  const { cases } = records;
  const points = chartPoints(cases);
  const sections = sectionsOf(points, options);
  const drawn = await renderCharts(sections.flatMap(({ charts }) => charts));
  let next = 0;
  const figures = sections.map(({ title, charts, without }) => {
    if (charts.length === 0) {
      return without === undefined
        ? ""
        : `<section><h2>${text(title)}</h2>\n<p>${text(without)}</p></section>`;
    }
    const shown = charts.map((chart) =>
      `<figure>\n<h3>${text(chart.title)}</h3>\n<div class="chart">${drawn[next++]}</div>\n` +
      `<figcaption>${text(chart.caption)}</figcaption>\n</figure>`
    );
    return `<section>\n<h2>${text(title)}</h2>\n<div class="figures">\n${
      shown.join("\n")
    }\n</div>\n</section>`;
  });
  const every = recordTable(cases);
  const body = [
    `<h1>${text(options.title)}</h1>`,
    summary(cases, options),
    environments(records.environments),
    failures(cases),
    ...figures,
    `<section>\n<h2>Every case</h2>\n<details>\n<summary>${cases.length} records</summary>\n${
      table(every.columns, every.rows)
    }\n</details>\n</section>`,
  ];
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${text(options.title)}</title>
<style>
${PAGE_STYLE}</style>
</head>
<body>
<main>
${body.filter((part) => part !== "").join("\n")}
</main>
</body>
</html>
`;
}

function sectionsOf(points: readonly Point[], options: PageOptions): Section[] {
  const series = distinct(points.map((point) => point.series));
  const baselines = options.baseline === undefined ? usualBaselines(points) : [options.baseline];
  return [
    {
      title: "Speed-up",
      charts: speedupCharts(points, baselines),
      without: baselines.length === 0
        ? "All records are of one provider: there is nothing to compare with."
        : `No case of another provider meets one of ${baselines.join(", ")}.`,
    },
    { title: "Throughput", charts: throughputCharts(points, series) },
    { title: "Roofline", charts: rooflineCharts(points, series, options.ceilings) },
    { title: "Workspace", charts: workspaceCharts(points, series) },
    {
      title: "Accuracy",
      charts: [...errorHistograms(points, series), ...accumulationCharts(points, series)],
    },
  ];
}

function summary(cases: readonly ReadCase[], { sources }: PageOptions): string {
  const verdicts = (["pass", "fail", "error", "none"] as const).flatMap((verdict) => {
    const count = cases.filter((record) => record.verdict === verdict).length;
    return count === 0 ? [] : [`${count} ${verdict === "none" ? "without a verdict" : verdict}`];
  });
  const providers = [...Map.groupBy(cases, ({ provider }) => provider)]
    .map(([provider, own]) => `${own.length} of ${provider}`);
  return `<p>${cases.length} records (${text(providers.join(", "))}): ${verdicts.join(", ")}. ` +
    `From ${sources.map((name) => `<code>${text(name)}</code>`).join(", ")}.</p>`;
}

function environments(all: readonly ReadEnvironment[]): string {
  if (all.length === 0) return "";
  const rows = distinct(all.map((one) =>
    JSON.stringify([
      `${one.program} ${one.version}`,
      one.adapter,
      one.driver,
      one.backend,
      `Deno ${one.deno}, ${one.os}`,
      one.date.replace("T", " ").replace(/\.\d+Z$/, " UTC"),
    ])
  )).map((row): string[] => JSON.parse(row));
  const titles = ["program", "adapter", "driver", "backend", "runtime", "date"];
  return table(titles.map((title) => ({ title })), rows);
}

function failures(cases: readonly ReadCase[]): string {
  const wrong = cases.filter(({ verdict }) => verdict === "fail" || verdict === "error");
  if (wrong.length === 0) return "";
  const rows = wrong.map((record) => [
    caseLabel(record),
    record.op,
    dtypeText(record),
    record.layout || "-",
    seriesLabel(record),
    record.verdict,
    record.message ?? "-",
    record.problem,
  ]);
  const titles = ["problem", "op", "dtype", "layout", "made by", "verdict", "why", "descriptor"];
  return `<section class="failures">\n<h2>Failures</h2>\n${
    table(titles.map((title) => ({ title })), rows)
  }\n</section>`;
}

function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const classOf = (column: number) => columns[column]!.align === "right" ? ' class="n"' : "";
  const line = (tag: string, cells: readonly string[]) =>
    `<tr>${cells.map((cell, i) => `<${tag}${classOf(i)}>${text(cell)}</${tag}>`).join("")}</tr>`;
  return `<div class="table"><table>\n<thead>${
    line("th", columns.map(({ title }) => title))
  }</thead>\n` +
    `<tbody>\n${rows.map((row) => line("td", row)).join("\n")}\n</tbody>\n</table></div>`;
}

/** Text as HTML, in elements and in attributes. */
function text(value: string): string {
  return value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;").replaceAll("'", "&#39;");
}
