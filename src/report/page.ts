import { type CaseColumnName, noiseOf, recordCeilings } from "./case_columns.ts";
import { caseLabel, dtypeText, seriesLabel } from "./case_key.ts";
import { errorHistograms } from "./charts/errors.ts";
import { networkChart, OPERATION_COLOURS } from "./charts/network.ts";
import { chartPoints, distinct, type Point, seriesOf } from "./charts/points.ts";
import { type Ceilings, rooflineCharts } from "./charts/roofline.ts";
import { CHANGE_COLOURS, speedupChart } from "./charts/speedup.ts";
import { type Chart, colourScale, renderCharts, shapeSign } from "./charts/theme.ts";
import { formatError, formatGflops, formatShare } from "./format.ts";
import { figure, folded, heading, headline, htmlPage, SHOWN_ROWS, table, text } from "./html.ts";
import { isNetwork, type Network, networkLines, networksOf, networkTable } from "./network.ts";
import { precisionNote, type Precisions, precisionsOf, type SpeedAndError } from "./precisions.ts";
import type { RecordSet } from "./read_records.ts";
import type { ReadCase, ReadEnvironment } from "./record_schema.ts";
import { recordTable } from "./case_table.ts";
import { NOISE_MADS, USUAL_MARGIN } from "./speed_change.ts";
import { pairedText, type Speedups, speedupsOf, speedupText, usualBaselines } from "./speedups.ts";
import { median } from "./stats.ts";

interface PageOptions {
  readonly title: string;
  readonly sources: readonly string[];
  readonly baseline?: string;
  readonly ceilings: Ceilings;
}

interface Section {
  readonly title: string;
  readonly charts: readonly Chart[];
  readonly key: string;
  /** What is true of all its charts. */
  readonly note?: string;
}

/** Columns of the table of all cases: what a reader looks for first, names of kernels last. */
const PAGE_COLUMNS: readonly CaseColumnName[] = [
  ...["problem", "verdict", "op", "dtype", "layout", "series", "time", "noise", "gflops"] as const,
  ...["gbs", "workspace", "mare", "l2", "bound", "kernel"] as const,
];
const NOISE = "Lines show the noise: the median of the samples plus and minus " +
  `${NOISE_MADS} median absolute deviations.`;
/** More networks than this have tables alone. */
const MOST_BARS = 8;

/** One self-contained HTML page: charts as inline SVG, no scripts, nothing loaded. */
export async function reportPage(records: RecordSet, options: PageOptions): Promise<string> {
  const { cases } = records;
  const points = chartPoints(cases);
  const baselines = options.baseline === undefined ? usualBaselines(points) : [options.baseline];
  const speedups = speedupsOf(points, baselines);
  const networks = isNetwork(cases)
    ? networksOf(cases, (record) => ({ ...recordCeilings(record), ...options.ceilings }))
    : [];
  const sections = sectionsOf(points, speedups, networks, options.ceilings)
    .filter(({ charts }) => charts.length > 0);
  const drawn = await renderCharts(sections.flatMap(({ charts }) => charts));
  const body = [
    `<h1>${text(options.title)}</h1>`,
    ...headlines(points, speedups).map(({ large, small }) => headline(large, small)),
    summary(cases, options),
    failures(cases),
    ...baselines.length > 0 && speedups.length === 0
      ? [`<p>No case of another provider matches one of ${text(baselines.join(", "))}.</p>`]
      : [],
    ...sections.map((section) => figures(section, drawn)),
    ...networks.map(networkSection),
    precisionTables(precisionsOf(points)),
    measured(cases, records.environments),
    everyCase(cases),
  ];
  return htmlPage(options.title, body);
}

function sectionsOf(
  points: readonly Point[],
  speedups: readonly Speedups[],
  networks: readonly Network[],
  ceilings: Ceilings,
): Section[] {
  const series = seriesOf(points);
  const key = seriesKey(series);
  const meanings: Readonly<Record<string, string>> = {
    same: `same: within ${100 * USUAL_MARGIN} % or the noise`,
    ambiguous: "ambiguous: too noisy to tell",
  };
  const changes = Object.entries(CHANGE_COLOURS)
    .map(([change, colour]) => keyItem(meanings[change] ?? change, colour));
  return [
    {
      title: "Network",
      charts: networks.length > MOST_BARS ? [] : networks.map(networkChart),
      key: distinct(networks.flatMap(({ layers }) => layers.map(({ record }) => record.op)))
        .map((op) => keyItem(op, OPERATION_COLOURS[op] ?? "#808080")).join(""),
    },
    {
      title: "Speed-up",
      charts: speedups.map(speedupChart),
      key: changes.join(""),
      note: `Throughput ${pairedText(speedups)}. ${NOISE}`,
    },
    {
      title: "Roofline",
      charts: rooflineCharts(points, series, ceilings),
      key: key + shapeKey(points),
    },
    {
      title: "Accuracy",
      charts: errorHistograms(points, series),
      key,
    },
  ];
}

function seriesKey(series: readonly string[]): string {
  const { range } = colourScale(series);
  return series.map((name, i) => keyItem(name, range[i]!)).join("");
}

function shapeKey(points: readonly Point[]): string {
  const ops = distinct(points.map(({ record }) => record.op));
  return ops.length < 2 ? "" : ops.map((op) => `<li>${shapeSign(op)} ${text(op)}</li>`).join("");
}

function keyItem(name: string, colour: string): string {
  return `<li><i style="background:${colour}"></i>${text(name)}</li>`;
}

/** A section; takes its drawings from the front. */
function figures({ title, charts, key, note }: Section, drawn: string[]): string {
  const shown = drawn.splice(0, charts.length).map((drawing, i) => figure(charts[i]!, drawing));
  return `<section>\n${heading(title)}\n${
    note === undefined ? "" : `<p class="note">${text(note)}</p>\n`
  }` +
    (key === "" ? "" : `<ul class="key">${key}</ul>\n`) +
    `<div class="figures">\n${shown.join("\n")}\n</div>\n</section>`;
}

/** Throughput and error of every series, side by side: in a row what is usual, and a row a case. */
function precisionTables(all: readonly Precisions[]): string {
  if (all.length === 0) return "";
  return `<section>\n${heading("Speed against error")}\n${
    all.map(precisionTable).join("\n")
  }\n</section>`;
}

function precisionTable(precisions: Precisions): string {
  const { facet, labels, series } = precisions;
  const cell = (figures?: SpeedAndError) =>
    figures === undefined ? "-" : `${formatGflops(figures.gflops)}, ${formatError(figures.error)}`;
  const columns = [
    { title: "" },
    ...series.map(({ name }) => ({ title: name, align: "right" as const })),
  ];
  const rows = [...labels].map(([key, label]) => [
    label,
    ...series.map(({ cases }) => cell(cases.get(key))),
  ]);
  const usual = ["geometric mean, median", ...series.map(({ usual }) => cell(usual))];
  return folded(
    `Throughput and relative L2 error, ${facet}`,
    rows.length,
    `<p class="note">${text(precisionNote(precisions))}</p>\n${table(columns, [usual, ...rows])}`,
  );
}

/** A network's layers, and its sums. */
function networkSection(network: Network): string {
  const { columns, rows } = networkTable(network);
  const [total, ...lines] = networkLines(network);
  const key = lines.map((line) => `<li>${text(line.trim())}</li>`).join("");
  const content = `<ul class="key">${key}</ul>\n${table(columns, rows)}`;
  return `<section>\n${folded(total!, rows.length, content)}\n</section>`;
}

function summary(cases: readonly ReadCase[], { sources }: PageOptions): string {
  const providers = [...Map.groupBy(cases, ({ provider }) => provider)]
    .map(([provider, own]) => `${own.length} of ${provider}`);
  const records = cases.length === 1 ? "1 record" : `${cases.length} records`;
  return `<p>${records} (${text(providers.join(", "))}): ${verdictLine(cases)}. ` +
    `From ${sources.map((name) => `<code>${text(name)}</code>`).join(", ")}.</p>`;
}

function measured(cases: readonly ReadCase[], environments: readonly ReadEnvironment[]): string {
  const { providers, rows } = conditionRows(cases);
  const lines = environmentLines(environments);
  return [
    '<section class="measured">',
    heading("How it was measured"),
    ...(lines.length === 0
      ? []
      : [`<ul>${lines.map((line) => `<li>${text(line)}</li>`).join("")}</ul>`]),
    table([{ title: "" }, ...providers.map((title) => ({ title }))], rows),
    "</section>",
  ].join("\n");
}

function failures(cases: readonly ReadCase[]): string {
  const wrong = cases.filter(({ verdict }) => verdict === "fail" || verdict === "error");
  if (wrong.length === 0) return "";
  const rows = wrong.map((record) => [
    caseLabel(record),
    record.op,
    seriesLabel(record),
    record.verdict,
    record.message ?? "-",
    dtypeText(record),
    record.layout || "-",
    record.problem,
  ]);
  const titles = ["problem", "op", "made by", "verdict", "why", "dtype", "layout", "descriptor"];
  return `<section class="failures">\n${heading("Failures")}\n${
    table(titles.map((title) => ({ title })), rows)
  }\n</section>`;
}

function everyCase(cases: readonly ReadCase[]): string {
  const { columns, rows } = recordTable(cases, PAGE_COLUMNS);
  const all = table(columns, rows);
  const shown = cases.length <= SHOWN_ROWS
    ? all
    : folded(`${cases.length} records`, cases.length, all);
  return `<section>\n${heading("Every case")}\n${shown}\n</section>`;
}

/** A few words in large, and beside them what they are made of. */
interface Headline {
  readonly large: string;
  readonly small: readonly string[];
}

/** A headline a provider and baseline, or else one of the rates; none where nothing was timed. */
export function headlines(points: readonly Point[], speedups: readonly Speedups[]): Headline[] {
  const pairs = Map.groupBy(
    speedups,
    ({ provider, baseline }) => JSON.stringify([provider, baseline]),
  );
  if (pairs.size > 0) {
    return [...pairs.values()].map((own) => {
      const { provider, baseline } = own[0]!;
      const facets = own.map(({ facet, cases }) => `${facet}: ${speedupText(cases)}`);
      return {
        large: speedupText(own.flatMap(({ cases }) => cases)),
        small: [
          `${provider}'s speed over ${baseline}'s, geometric mean ${pairedText(own)}`,
          ...(own.length > 1 ? facets : []),
        ],
      };
    });
  }
  const rates = points.flatMap(({ right, gflops }) => right && gflops !== null ? [gflops] : []);
  if (rates.length === 0) return [];
  if (rates.length === 1) return [{ large: formatGflops(rates[0]!), small: ["in one case"] }];
  const [least, most] = [Math.min(...rates), Math.max(...rates)].map(formatGflops);
  return [{
    large: formatGflops(median(rates)),
    small: [`in the median of ${rates.length} cases`, `${least} to ${most}`],
  }];
}

/** How many results are right: `150 of 150 checked results pass`. */
export function verdictLine(cases: readonly ReadCase[]): string {
  const count = (verdict: ReadCase["verdict"]) =>
    cases.filter((record) => record.verdict === verdict).length;
  const [pass, fail, error, none] = [count("pass"), count("fail"), count("error"), count("none")];
  return [
    ...(pass + fail === 0 ? [] : [`${pass} of ${pass + fail} checked results pass`]),
    ...(fail === 0 ? [] : [`${fail} fail`]),
    ...(error === 0 ? [] : [`${error} did not run`]),
    ...(none === 0 ? [] : [`${none} without a verdict`]),
  ].join(", ");
}

/** A condition of records, and what a provider's say of it. */
const CONDITIONS:
  readonly (readonly [title: string, of: (cases: readonly ReadCase[]) => string])[] = [
    ["records", ({ length }) => String(length)],
    ["device", (cases) => listed(cases, ({ device }) => device)],
    ["dtypes", (cases) => listed(cases, dtypeText)],
    ["layouts", (cases) => counted(cases, ({ layout }) => layout)],
    ["algorithms", (cases) => listed(cases, ({ requested, algorithm }) => requested ?? algorithm)],
    ["cache", (cases) => listed(cases, ({ cache }) => cache ?? "")],
    ["clock", (cases) => listed(cases, clockOf)],
    ["samples", samplesOf],
    ["noise", noiseText],
    ["data", (cases) => listed(cases, ({ fill }) => fill ?? "")],
    ["checked", checkText],
  ];

const UNSAID = "not said";

/** A row a condition, a column a provider; the conditions that none speaks of are left out. */
export function conditionRows(
  cases: readonly ReadCase[],
): { readonly providers: string[]; readonly rows: string[][] } {
  const groups = [...Map.groupBy(cases, ({ provider }) => provider)];
  const rows = CONDITIONS.map(([title, of]) => [title, ...groups.map(([, own]) => of(own))]);
  return {
    providers: groups.map(([provider]) => provider),
    rows: rows.filter(([, ...cells]) => cells.some((cell) => cell !== UNSAID)),
  };
}

function listed(cases: readonly ReadCase[], of: (record: ReadCase) => string): string {
  const all = [...new Set(cases.map(of))].filter((one) => one !== "");
  if (all.length === 0) return UNSAID;
  const more = all.length > 5 ? ` and ${all.length - 5} more` : "";
  return all.slice(0, 5).join(", ") + more;
}

function counted(cases: readonly ReadCase[], of: (record: ReadCase) => string): string {
  const all = [...Map.groupBy(cases, of)].filter(([one]) => one !== "");
  if (all.length === 0) return UNSAID;
  return all.length === 1
    ? all[0]![0]
    : all.map(([one, { length }]) => `${length} ${one}`).join(", ");
}

function clockOf({ time_ms: time, cuda_graph }: ReadCase): string {
  const clock = time?.clock ?? "";
  if (cuda_graph === undefined) return clock;
  return [clock, cuda_graph ? "CUDA graph" : "calls, no CUDA graph"].filter(Boolean).join(", ");
}

function samplesOf(cases: readonly ReadCase[]): string {
  const counts = cases.flatMap(({ time_ms: time }) => time?.samples.length || []);
  if (counts.length === 0) return UNSAID;
  const repeats = cases.flatMap(({ time_ms: time }) => time?.repeats ?? []);
  const of = repeats.length === 0 ? "" : ` of ${span(repeats)} calls`;
  return `${span(counts)} a case${of}`;
}

function span(values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low === high ? String(low) : `${low} to ${high}`;
}

function noiseText(cases: readonly ReadCase[]): string {
  const all = cases.flatMap((record) => noiseOf(record) ?? []);
  if (all.length === 0) return UNSAID;
  return `${formatShare(median(all))} in the median case, ${formatShare(Math.max(...all))} at most`;
}

function checkText(cases: readonly ReadCase[]): string {
  const checked = cases.filter(({ verdict }) => verdict !== "none");
  return checked.length === 0 ? "no verdict" : `${checked.length} of ${cases.length}`;
}

/** Programs, devices and runtimes of runs: a line each, and when. */
export function environmentLines(all: readonly ReadEnvironment[]): string[] {
  const groups = Map.groupBy(all, ({ program, version, adapter, driver, backend, deno, os }) => {
    const how = [driver, backend].filter(Boolean).join(", ");
    const runtime = [deno && `Deno ${deno}`, os].filter(Boolean).join(", ");
    const device = adapter && ` on ${adapter}${how && ` (${how})`}`;
    return `${program} ${version}`.trim() + device + (runtime && `, ${runtime}`);
  });
  return [...groups].map(([line, runs]) => {
    const dates = runs.map(({ date }) => date).filter((date) => date !== "").sort();
    if (dates.length === 0) return line;
    const minute = (date: string) => date.slice(0, 16).replace("T", " ");
    const [first, last] = [minute(dates[0]!), minute(dates.at(-1)!)];
    const when = first === last ? first : `${dates.length} runs, ${first} to ${last}`;
    return `${line}, ${when} UTC`;
  });
}
