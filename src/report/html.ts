/** Pieces of HTML pages. */
import type { Column } from "./table.ts";

/** Text as HTML, in elements and in attributes. */
export function text(value: string): string {
  return value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;").replaceAll("'", "&#39;");
}

/** A table; the first column stays in sight where the others do not all fit. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const classOf = (column: number) => columns[column]!.align === "right" ? ' class="n"' : "";
  const line = (tag: string, cells: readonly string[]) =>
    `<tr>${cells.map((cell, i) => `<${tag}${classOf(i)}>${text(cell)}</${tag}>`).join("")}</tr>`;
  return `<div class="table"><table>\n<thead>${
    line("th", columns.map(({ title }) => title))
  }</thead>\n` +
    `<tbody>\n${rows.map((row) => line("td", row)).join("\n")}\n</tbody>\n</table></div>`;
}
