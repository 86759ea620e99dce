import {
  CASE_COLUMNS,
  type CaseColumn,
  type CaseColumnName,
  recordCeilings,
  type ShownCase,
  whyNot,
} from "./case_columns.ts";
import { dtypeText } from "./case_key.ts";
import { caseLabel } from "./case_label.ts";
import type { Ceilings } from "./charts/device_ceilings.ts";
import type { ReadCase } from "./record_schema.ts";
import { liveTable } from "./table.ts";

/** What is known of a table's cases before they run. */
export type ComingCase =
  & Pick<ReadCase, "problem" | "op" | "layout" | "cache" | "dtype" | "out_dtype" | "accumulate">
  & { readonly algorithm: string };

/** How a table of cases looks. */
export interface CaseTableOptions {
  /** What suits the cases where absent. */
  readonly columns?: readonly CaseColumnName[] | undefined;
  /** Of the device that a record is of; those that are known of it by name where absent. */
  readonly ceilings?: ((record: ReadCase) => Ceilings) | undefined;
  /** What becomes of words that say how a case came out. */
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
  { columns: asked, ceilings = recordCeilings, paint = (text) => text, reasons = true }:
    CaseTableOptions = {},
): (record: ShownCase) => string {
  let names: readonly CaseColumnName[] = [];
  let row: ReturnType<typeof liveTable> | undefined;
  return (record) => {
    const known = ceilings(record);
    if (row === undefined) {
      names = asked ?? usualColumns(coming, known);
      const columns = names.map((name) => ({ ...CASE_COLUMNS[name], ...widthOf(name, coming) }));
      row = liveTable(columns, (cell, column) => names[column] === "verdict" ? paint(cell) : cell);
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
