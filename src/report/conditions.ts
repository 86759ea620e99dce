/** How records were measured, as far as they say: what a reader needs before they believe a speed-up. */
import { noiseOf } from "./case_columns.ts";
import { dtypeText } from "./case_key.ts";
import { formatShare } from "./format.ts";
import type { ReadCase, ReadEnvironment } from "./record_schema.ts";
import { median } from "./stats.ts";

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
