import { printable } from "../printable.ts";
import {
  CASE_COLUMNS,
  type CaseColumn,
  type CaseColumnName,
  recordCeilings,
  type ShownCase,
  whyNot,
} from "./case_columns.ts";
import { caseFigures } from "./case_figures.ts";
import { caseLabel, dtypeText } from "./case_key.ts";
import type { Ceilings } from "./charts/roofline.ts";
import { counted, formatGflops, formatMilliseconds } from "./format.ts";
import { isNetwork, timesOf, withoutImageGradients } from "./network.ts";
import type { ReadAccuracy, ReadCase, ReadTime } from "./record_schema.ts";
import { type LiveColumn, liveTable, type Paint } from "./table.ts";

export type TotalledCase =
  & Pick<ReadCase, "problem" | "op" | "layout" | "algorithm" | "requested" | "policy" | "tile">
  & Pick<ReadCase, "cache" | "flops" | "dtype" | "out_dtype">
  & Partial<Pick<ReadCase, "provider">>
  & { readonly time_ms: Pick<ReadTime, "median"> | null };

/**
 * Where names say how often a network has a layer (`res2a*3`): the whole network's time and rate, a line for each
 * way it was run, and below it a line a network where names are of several (`resnet18_conv2*4`). Backward-data of an image,
 * which nobody computes, is left out. None where no name says how often.
 */
export function networkTotals(records: readonly TotalledCase[]): string[] {
  const timed = withoutImageGradients(records).filter((record) =>
    record.time_ms !== null &&
    (record.op !== "gemm" || nameOf(record) !== undefined)
  );
  if (!isNetwork(timed)) return [];
  const ways = Map.groupBy(timed, (record) => {
    const { op, layout, requested, algorithm, policy = "", tile = "", cache = "" } = record;
    const provider = record.provider === "wgconv" ? "" : record.provider;
    // A product's layout is its transposes.
    const laid = op === "gemm" ? "" : layout;
    return [provider, op, dtypeText(record), laid, requested ?? algorithm, policy, tile, cache]
      .filter(Boolean)
      .join(" ");
  });
  return [...ways].flatMap(([way, cases]) => {
    const networks = Map.groupBy(cases, networkOf);
    const several = networks.size > 1 && !networks.has(undefined);
    return [
      `total ${way}: ${totalText(cases)}`,
      ...(several ? [...networks].map(([name, own]) => `  ${name}: ${totalText(own)}`) : []),
    ];
  });
}

function totalText(cases: readonly TotalledCase[]): string {
  const sum = (figure: (record: TotalledCase) => number) =>
    cases.reduce((total, record) => total + timesOf(record) * figure(record), 0);
  const ms = sum(({ time_ms }) => time_ms!.median);
  const rate = formatGflops(sum(({ flops }) => flops ?? 0) / ms / 1e6);
  const layers = sum(() => 1);
  return `${formatMilliseconds(ms)} for ${counted(layers, "layer")}, ${rate}`;
}

function nameOf({ problem }: TotalledCase): string | undefined {
  return /n"([^"]*)"$/.exec(problem)?.[1];
}

/** `resnet18` of `resnet18_conv2*4`. */
function networkOf(record: TotalledCase): string | undefined {
  return /^([^_]+)_./.exec(nameOf(record) ?? "")?.[1];
}

/** What is known of a table's cases before they run. */
export type ComingCase =
  & Pick<ReadCase, "problem" | "op" | "layout" | "cache" | "dtype" | "out_dtype" | "accumulate">
  & { readonly algorithm: string };

export interface CaseTableOptions {
  readonly columns?: readonly CaseColumnName[] | undefined;
  /** Whether all columns that suit the cases are shown whole, kernels' names among them, whatever room there is. */
  readonly wide?: boolean | undefined;
  readonly room?: number | undefined;
  /** Of the device that a record is of; those that are known of it by name where absent. */
  readonly ceilings?: ((record: ReadCase) => Ceilings) | undefined;
  readonly paint?: ((text: string) => string) | undefined;
  /** Whether a row says below itself why its case did not pass; it does where absent. */
  readonly reasons?: boolean | undefined;
}

/**
 * Cases as a plain text table that grows as they become known: gives the lines of the next case, and with them why it did not
 * pass.
 *
 * @param coming All of them, for the widths of columns.
 */
export function caseTable(
  coming: readonly ComingCase[],
  options: CaseTableOptions = {},
): (record: ShownCase) => string {
  const { columns: asked, wide = false, ceilings = recordCeilings } = options;
  const { paint = (text) => text, reasons = true } = options;
  const room = asked === undefined && !wide ? options.room ?? USUAL_ROOM : options.room;
  let names: readonly CaseColumnName[] = [];
  let row: ReturnType<typeof liveTable> | undefined;
  return (record) => {
    const known = ceilings(record);
    if (row === undefined) {
      const usual = usualColumns(coming, known);
      names = asked ?? (wide ? usual : fittingColumns(usual, coming, room!));
      const columns = names.map((name) => columnOf(name, coming));
      const painted: Paint = (cell, column) => names[column] === "verdict" ? paint(cell) : cell;
      row = liveTable(columns, painted, wide ? undefined : room);
    }
    const columns: CaseColumn[] = names.map((name) => CASE_COLUMNS[name]);
    const lines = row(columns.map(({ cell }) => cell(record, known)));
    const why = reasons ? whyNot(record) : undefined;
    return why === undefined ? lines : `${lines}\n${paint(why)}`;
  };
}

/** What tells the cases apart, and their figures. Kernels, whose widths nobody knows before, come last. */
function usualColumns(coming: readonly ComingCase[], ceilings: Ceilings): CaseColumnName[] {
  const several = (text: (one: ComingCase) => string | undefined) =>
    new Set(coming.map(text)).size > 1;
  return [
    "problem",
    "op",
    ...(several(dtypeText) ? ["dtype" as const] : []),
    "layout",
    ...(several(({ cache }) => cache) ? ["cache" as const] : []),
    "algorithm",
    "time",
    "noise",
    "gflops",
    "gbs",
    ...(ceilings.peak === undefined ? [] : ["peak" as const]),
    ...(ceilings.bandwidth === undefined ? [] : ["bandwidth" as const]),
    "workspace",
    "mare",
    "bound",
    "verdict",
    "kernel",
  ];
}

const USUAL_ROOM = 100;
/** What `auto` may take beyond the width that its column begins with. */
const AUTO_TAKES = 8;
/** A name that is longer loses its middle before a figure goes. */
const NAME_ROOM = 36;
const SPARED = ["workspace", "bound", "gbs", "bandwidth", "layout", "noise", "peak"] as const;
const SPARED_LAST = ["mare", "gflops"] as const;

function fittingColumns(
  usual: readonly CaseColumnName[],
  coming: readonly ComingCase[],
  room: number,
): CaseColumnName[] {
  let names = usual.filter((name) => name !== "kernel");
  const spare = (spared: readonly CaseColumnName[], room: number) => {
    for (const one of spared) {
      const widths = names.map((name) => {
        const { title, width = 0 } = columnOf(name, coming);
        const wanted = name === "problem" ? Math.min(width, NAME_ROOM) : width;
        return Math.max(title.length, wanted) + 2;
      });
      if (widths.reduce((sum, width) => sum + width, -2) <= room) return;
      names = names.filter((name) => name !== one);
    }
  };
  const layouts = new Set(coming.map(({ layout }) => layout)).size;
  const spared = SPARED.filter((name) => name !== "layout" || layouts === 1);
  spare(spared, room - (coming.some(({ algorithm }) => algorithm === "auto") ? AUTO_TAKES : 0));
  spare(SPARED_LAST, room);
  return names;
}

function columnOf(name: CaseColumnName, coming: readonly ComingCase[]): LiveColumn {
  return { ...CASE_COLUMNS[name], ...widthOf(name, coming) };
}

/** The width of a column that is known before its cells are; none of others. */
function widthOf(name: CaseColumnName, coming: readonly ComingCase[]): { width?: number } {
  const texts: { readonly [name in CaseColumnName]?: (one: ComingCase) => string } = {
    problem: caseLabel,
    op: ({ op }) => op,
    layout: ({ layout }) => layout,
    dtype: dtypeText,
    // What it chooses is not known; this is what it most often is.
    algorithm: ({ algorithm }) => algorithm === "auto" ? "auto: implicit-gemm" : algorithm,
  };
  const text = texts[name];
  if (text === undefined) return {};
  return { width: coming.reduce((width, one) => Math.max(width, text(one).length), 0) };
}

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
  const names = asked ?? usualRecordColumns(cases);
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

function usualRecordColumns(cases: readonly ReadCase[]): readonly CaseColumnName[] {
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
