import { dtypeText } from "./case_key.ts";
import { printable } from "../printable.ts";
import { caseFigures } from "./case_figures.ts";
import { seriesLabel } from "./case_label.ts";
import { formatBytes, formatError, formatMilliseconds, significant } from "./format.ts";
import type { ReadAccuracy, ReadCase } from "./record_schema.ts";
import type { Column } from "./table.ts";

/** Columns of {@linkcode recordRow}. */
export const RECORD_COLUMNS: readonly Column[] = [
  { title: "problem" },
  { title: "op" },
  { title: "dtype" },
  { title: "layout" },
  { title: "made by" },
  { title: "kernel" },
  { title: "time", align: "right" },
  { title: "GFLOP/s", align: "right" },
  { title: "workspace", align: "right" },
  { title: "MARE", align: "right" },
  { title: "relative L2", align: "right" },
  { title: "bound", align: "right" },
  { title: "verdict" },
];

/** A case as people read it. */
export function recordRow(record: ReadCase): string[] {
  const { time_ms: time, workspace_bytes: workspace, accuracy, verdict, message } = record;
  const { label, gflops } = caseFigures(record);
  const bound = accuracy?.max_bound_ratio ?? null;
  return [
    label,
    record.op,
    dtypeText(record) + (record.accumulate === undefined ? "" : ` in ${record.accumulate}`),
    record.layout || "-",
    seriesLabel(record),
    record.kernel ?? "-",
    time ? formatMilliseconds(time.median) : "-",
    gflops === null ? "-" : gflops.toFixed(gflops < 100 ? 2 : 0),
    workspace === null ? "-" : formatBytes(workspace),
    formatError(accuracy?.mare ?? null),
    formatError(accuracy?.rel_l2 ?? null),
    bound === null ? "-" : significant(bound),
    verdict === "none" ? "-" : message === undefined ? verdict : `${verdict}: ${message}`,
  ];
}

type Cell = string | number | null | undefined;

const ACCURACY_FIELDS: readonly (keyof ReadAccuracy)[] = [
  "mare",
  "median_rel",
  "p99_rel",
  "max_rel",
  "rel_l2",
  "rel_l2_limit",
  "max_bound_ratio",
  "bound_limit",
  "group_rms",
  "group_rms_limit",
  "checked",
  "total",
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

/**
 * Cases as values separated by commas (RFC 4180) or tabs, a line each and a heading. In tab-separated lines a
 * value's own tabs and line breaks become spaces.
 */
export function delimitedTable(cases: readonly ReadCase[], separator: "," | "\t"): string {
  const print = (cell: Cell): string => {
    const whole = cell === null || cell === undefined ? "" : String(cell);
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
