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
  const line = (cells: readonly string[]) =>
    cells.map((cell, i) => pad(cell, widths[i]!, columns[i]!)).join("  ").trimEnd();
  return [line(columns.map(({ title }) => title)), ...shown.map(line)].join("\n");
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
