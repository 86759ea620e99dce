import { dtypeText } from "./case_key.ts";
import { printable } from "../printable.ts";
import { caseFigures } from "./case_figures.ts";
import {
  CASE_COLUMNS,
  type CaseColumn,
  type CaseColumnName,
  recordCeilings,
} from "./case_columns.ts";
import type { ReadAccuracy, ReadCase } from "./record_schema.ts";

/** Columns of a report's table where none are asked for; messages follow where there are any. */
const RECORD_COLUMNS: readonly CaseColumnName[] = [
  ...["problem", "op", "dtype", "layout", "series", "kernel", "time", "gflops"] as const,
  ...["workspace", "mare", "l2", "bound", "verdict"] as const,
];

/** Those that go where not all fit, the last of these first. */
const SPARE: readonly CaseColumnName[] = [
  ...["dtype", "layout", "mare", "gflops", "l2", "bound", "workspace", "kernel"] as const,
];

/** Cases as a table's columns and rows; none of the columns that are asked for is spare. */
export function recordTable(
  cases: readonly ReadCase[],
  asked?: readonly CaseColumnName[],
): { readonly columns: CaseColumn[]; readonly rows: string[][] } {
  const names = asked ?? usualColumns(cases);
  const columns: CaseColumn[] = names.map((name) => {
    const spare = asked === undefined && SPARE.includes(name) ? SPARE.indexOf(name) : undefined;
    return { ...CASE_COLUMNS[name], spare };
  });
  const rows = cases.map((record) => {
    const ceilings = recordCeilings(record);
    return columns.map(({ cell }) => cell(record, ceilings));
  });
  return { columns, rows };
}

function usualColumns(cases: readonly ReadCase[]): readonly CaseColumnName[] {
  const said = cases.some(({ message }) => message !== undefined);
  return said ? [...RECORD_COLUMNS, "message"] : RECORD_COLUMNS;
}

type Cell = string | number | null | undefined;

const ACCURACY_FIELDS: readonly (keyof ReadAccuracy)[] = [
  ...["mare", "median_rel", "p99_rel", "max_rel", "rel_l2", "rel_l2_limit"] as const,
  ...[
    "max_bound_ratio",
    "bound_limit",
    "group_rms",
    "group_rms_limit",
    "checked",
    "total",
  ] as const,
];

/** A case's fields, by column, for other programs: full precision, plain units. */
function cells(record: ReadCase): Record<string, Cell> {
  const { time_ms: time, accuracy } = record;
  const figures = caseFigures(record);
  const { flops, bytes } = figures;
  return {
    provider: record.provider,
    device: record.device,
    name: figures.label,
    problem: record.problem,
    op: record.op,
    dtype: dtypeText(record),
    accumulate: record.accumulate,
    math: record.math,
    layout: record.layout,
    epilogue: record.epilogue,
    algorithm: record.algorithm,
    kernel: record.kernel,
    cache: record.cache,
    batch: figures.batch,
    median_ms: time?.median,
    min_ms: time?.min,
    mad_ms: time?.mad,
    samples: time?.samples.length,
    gflops: figures.gflops,
    flops,
    multiplications: record.multiplications,
    workspace_bytes: record.workspace_bytes,
    flop_per_byte: flops !== null && bytes ? flops / bytes : null,
    accumulation_length: figures.accumulation,
    ...Object.fromEntries(ACCURACY_FIELDS.map((field) => [field, accuracy?.[field]])),
    verdict: record.verdict,
    message: record.message,
  };
}

/** A text that spreadsheets would take for a formula, behind an apostrophe, by which they take it for text. */
function plainCell(text: string): string {
  return /^\s*[=+@-]/.test(text) ? `'${text}` : text;
}

/**
 * Cases as values separated by commas (RFC 4180) or tabs, a line each and a heading. In tab-separated lines a
 * value's own tabs and line breaks become spaces.
 */
export function delimitedTable(cases: readonly ReadCase[], separator: "," | "\t"): string {
  const print = (cell: Cell): string => {
    const whole = typeof cell === "string" ? plainCell(cell) : String(cell ?? "");
    if (separator === "\t") return printable(whole.replaceAll(/[\t\r\n]+/g, " "));
    const text = printable(whole);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const rows = cases.map(cells);
  const heading = Object.keys(rows[0] ?? {});
  return [heading, ...rows.map((row) => Object.values(row))]
    .map((row) => row.map(print).join(separator))
    .join(separator === "," ? "\r\n" : "\n");
}
