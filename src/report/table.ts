import { printableCell } from "../printable.ts";

/** A column of a table: its heading, and where its cells stand. */
export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
}

/** Renders rows as aligned plain text, columns two spaces apart. */
export function textTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): string {
  const shown = rows.map((row) => row.map(printableCell));
  const widths = columnWidths(columns, shown);
  return [columns.map(({ title }) => title), ...shown]
    .map((row) => tableLine(columns, row, widths)).join("\n");
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
export function liveTable(columns: readonly LiveColumn[]): (cells: readonly string[]) => string {
  const widths = columns.map(({ title, width = 0 }) => Math.max(title.length, width));
  let begun = false;
  return (row) => {
    const cells = row.map(printableCell);
    const rows = begun ? [cells] : [columns.map(({ title }) => title), cells];
    begun = true;
    cells.forEach((cell, i) => widths[i] = Math.max(widths[i]!, cell.length));
    return rows.map((row) => tableLine(columns, row, widths)).join("\n");
  };
}

function tableLine(
  columns: readonly Column[],
  cells: readonly string[],
  widths: readonly number[],
): string {
  return cells.map((cell, i) => pad(cell, widths[i]!, columns[i]!)).join("  ").trimEnd();
}

/** Renders rows as a GitHub-flavoured Markdown table. */
export function markdownTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): string {
  const escaped = rows.map((row) => row.map((cell) => printableCell(cell).replaceAll("|", "\\|")));
  const widths = columnWidths(columns, escaped).map((width) => Math.max(width, 3));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, i) => pad(cell, widths[i]!, columns[i]!)).join(" | ")} |`;
  const rule = columns.map(({ align }, i) =>
    align === "right" ? `${"-".repeat(widths[i]! - 1)}:` : "-".repeat(widths[i]!)
  );
  return [line(columns.map(({ title }) => title)), line(rule), ...escaped.map(line)].join("\n");
}

function columnWidths(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): number[] {
  return columns.map(({ title }, i) =>
    rows.reduce((width, row) => Math.max(width, row[i]!.length), title.length)
  );
}

function pad(cell: string, width: number, { align }: Column): string {
  return align === "right" ? cell.padStart(width) : cell.padEnd(width);
}
