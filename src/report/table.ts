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

/** Renders rows as a GitHub-flavoured Markdown table. */
export function markdownTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): string {
  const cells = rows.map((row) => row.map((cell) => printableCell(cell).replaceAll("|", "\\|")));
  const align = columns.map((column) => column.align === "right" ? "r" : null);
  return renderMarkdown([columns.map(({ title }) => title), ...cells], { align });
}
