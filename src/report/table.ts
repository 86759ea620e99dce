import { stripVTControlCharacters } from "node:util";
import { markdownTable as renderMarkdown } from "markdown-table";
import renderText from "text-table";
import { printableCell } from "../printable.ts";

/** A column of a table: its heading, and where its cells stand. */
export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
}

/** What becomes of a cell after its width is known: colours, of which a table knows nothing else. */
export type Paint = (cell: string, column: number) => string;

/** Renders rows as aligned plain text, columns two spaces apart. */
export function textTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  paint: Paint = (cell) => cell,
): string {
  const shown = rows.map((row) => row.map((cell, i) => paint(printableCell(cell), i)));
  return renderText([columns.map(({ title }) => title), ...shown], {
    align: columns.map(({ align }) => align === "right" ? "r" : "l"),
    stringLength: (cell: string) => stripVTControlCharacters(cell).length,
  });
}

/** A column of a table that is printed row by row. */
export interface LiveColumn extends Column {
  /** Characters of its widest cell, as far as that is known before. */
  readonly width?: number;
}

/**
 * As {@linkcode textTable}, of rows that become known one by one: gives each one's line, with the headings before the
 * first. A cell that is wider than was known widens its column from there on.
 */
export function liveTable(
  columns: readonly LiveColumn[],
  paint?: Paint,
): (cells: readonly string[]) => string {
  let widths = columns.map(({ width = 0 }) => width);
  let begun = false;
  return (row) => {
    widths = row.map((cell, i) => Math.max(widths[i]!, printableCell(cell).length));
    // A row as wide as all that is known gives the others their widths, and is not shown.
    const widest = widths.map((width) => "-".repeat(width));
    const [heading, , line] = textTable(columns, [widest, row], paint).split("\n");
    const shown = begun ? line! : `${heading}\n${line}`;
    begun = true;
    return shown;
  };
}

/** What rows are sorted by: a column, and whether the largest comes first. */
export interface RowOrder<Column extends string> {
  readonly column: Column;
  readonly descending: boolean;
}

/** Rows sorted by a key, numbers as such; what has none comes last. */
export function sortRows<Row>(
  rows: readonly Row[],
  key: (row: Row) => string | number | null,
  descending: boolean,
): Row[] {
  const keyed = rows.map((row) => ({ row, key: key(row) }));
  const sign = descending ? -1 : 1;
  return keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return Number(a.key === null) - Number(b.key === null);
    const less = typeof a.key === "number" && typeof b.key === "number"
      ? a.key - b.key
      : String(a.key).localeCompare(String(b.key));
    return sign * less;
  }).map(({ row }) => row);
}

/** Renders rows as a GitHub-flavoured Markdown table. */
export function markdownTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): string {
  const cells = rows.map((row) => row.map((cell) => printableCell(cell).replaceAll("|", "\\|")));
  const align = columns.map((column) => column.align === "right" ? "r" : null);
  return renderMarkdown([columns.map(({ title }) => title), ...cells], { align });
}
