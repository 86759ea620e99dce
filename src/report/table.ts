import { stripVTControlCharacters } from "node:util";
import { markdownTable as renderMarkdown } from "markdown-table";
import renderText from "text-table";
import { printableCell, shorten } from "../printable.ts";

/** A column of a table: its heading, and where its cells stand. */
export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
  /** Whether it goes where not all fit; the one with the largest number first. */
  readonly spare?: number | undefined;
  /** Whether its words are never cut. */
  readonly whole?: boolean;
}

/** What becomes of a cell after its width is known: colours, of which a table knows nothing else. */
export type Paint = (cell: string, column: number) => string;

/** Characters between columns. */
const GAP = 2;
/** Columns are not cut to fewer characters. */
const LEAST = 10;

function isWhole({ align, whole = align === "right" }: Column): boolean {
  return whole;
}

/** Places of the columns that are left where as many spare ones go as do not fit, words cut as far as they may be. */
export function keptColumns(
  columns: readonly Column[],
  widths: readonly number[],
  room: number | undefined,
): number[] {
  const least = columns.map((column, i) =>
    isWhole(column) ? widths[i]! : Math.min(widths[i]!, LEAST)
  );
  let kept = columns.map((_, i) => i);
  const spared = kept.filter((i) => columns[i]!.spare !== undefined)
    .sort((a, b) => columns[b]!.spare! - columns[a]!.spare!);
  const narrowest = () => kept.reduce((sum, i) => sum + least[i]! + GAP, -GAP);
  for (const one of spared) {
    if (room === undefined || narrowest() <= room) break;
    kept = kept.filter((i) => i !== one);
  }
  return kept;
}

/** Widths with which columns fit into `room` characters: the widest of those of words give way, whole ones and those of figures never. */
export function fittedWidths(
  columns: readonly Column[],
  widths: readonly number[],
  room: number | undefined,
): number[] {
  const fitted = [...widths];
  if (room === undefined) return fitted;
  const whole = widths.reduce((sum, width) => sum + width, GAP * (widths.length - 1));
  for (let excess = whole - room; excess > 0; excess--) {
    const wide = fitted.map((width, i) => isWhole(columns[i]!) ? 0 : width);
    const widest = Math.max(...wide);
    if (widest <= LEAST) break;
    fitted[wide.indexOf(widest)]!--;
  }
  return fitted;
}

/**
 * Renders rows as aligned plain text, columns two spaces apart.
 *
 * @param room Characters that there are in a line: where not all fits spare columns go, and cells of words lose their middle.
 */
export function textTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  paint: Paint = (cell) => cell,
  room?: number,
): string {
  const cells = rows.map((row) => row.map(printableCell));
  const widths = columns.map(({ title }, i) =>
    cells.reduce((width, row) => Math.max(width, row[i]!.length), title.length)
  );
  const kept = keptColumns(columns, widths, room);
  const left = kept.map((i) => columns[i]!);
  const fitted = fittedWidths(left, kept.map((i) => widths[i]!), room);
  const shown = cells.map((row) =>
    kept.map((i, place) => paint(shorten(row[i]!, fitted[place]!), i))
  );
  return renderText([left.map(({ title }) => title), ...shown], {
    align: left.map(({ align }) => align === "right" ? "r" : "l"),
    stringLength: (cell: string) => stripVTControlCharacters(cell).length,
  });
}

/** A column of a table that is printed row by row. */
export interface LiveColumn extends Column {
  readonly width?: number;
}

/**
 * As {@linkcode textTable}, of rows that become known one by one: gives each one's line, with the headings before the
 * first. A cell that is wider than was known widens its column from there on, as far as there is `room`.
 */
export function liveTable(
  columns: readonly LiveColumn[],
  paint?: Paint,
  room?: number,
): (cells: readonly string[]) => string {
  let widths = columns.map(({ title, width = 0 }) => Math.max(title.length, width));
  let kept: number[] | undefined;
  return (row) => {
    widths = row.map((cell, i) => Math.max(widths[i]!, printableCell(cell).length));
    const begun = kept !== undefined;
    const places = kept ??= keptColumns(columns, widths, room);
    const left = places.map((i) => columns[i]!);
    const fitted = fittedWidths(left, places.map((i) => widths[i]!), room);
    // A row as wide as all that is known gives the others their widths, and is not shown.
    const widest = fitted.map((width) => "-".repeat(width));
    const cells = places.map((i, place) => shorten(printableCell(row[i]!), fitted[place]!));
    const painted: Paint | undefined = paint && ((cell, place) => paint(cell, places[place]!));
    const [heading, , line] = textTable(left, [widest, cells], painted).split("\n");
    return begun ? line! : `${heading}\n${line}`;
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

/**
 * Text as Markdown shows it: what records hold is no element, entity, link, picture, code or emphasis. A `_` within a word, as in
 * names of kernels, is none of these.
 */
export function markdownText(text: string): string {
  return text.replace(/[\\`*[\]~|]/g, "\\$&").replaceAll("&", "&amp;").replaceAll("<", "&lt;")
    .replace(/(?<![\p{L}\p{N}_])_+|_+(?![\p{L}\p{N}_])/gu, (edge) => edge.replaceAll("_", "\\_"));
}

/** Renders rows as a GitHub-flavoured Markdown table. */
export function markdownTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): string {
  const cells = rows.map((row) => row.map((cell) => markdownText(printableCell(cell))));
  const align = columns.map((column) => column.align === "right" ? "r" : null);
  return renderMarkdown([columns.map(({ title }) => title), ...cells], { align });
}
