/** Pieces of HTML pages. */
import type { Chart } from "./charts/theme.ts";
import type { Column } from "./table.ts";

/** Text as HTML, in elements and in attributes. */
export function text(value: string): string {
  return value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;").replaceAll("'", "&#39;");
}

/** What is HTML already. */
export interface Html {
  readonly html: string;
}

/**
 * A page that is complete by itself: nothing is loaded, and no script runs.
 *
 * @param body Its parts; empty ones are left out.
 */
export function htmlPage(title: string, body: readonly string[]): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${text(title)}</title>
<style>
${PAGE_STYLE}</style>
</head>
<body>
<main>
${body.filter((part) => part !== "").join("\n")}
</main>
</body>
</html>
`;
}

/** A section's heading, which links can lead to. */
export function heading(title: string): string {
  return `<h2 id="${title.toLowerCase().replaceAll(" ", "-")}">${text(title)}</h2>`;
}

/** A few words in large, and beside them what they are made of. */
export function headline(large: string, small: readonly string[]): string {
  return `<p class="headline"><strong>${text(large)}</strong> ${
    small.map((part) => `<span>${text(part)}</span>`).join(" ")
  }</p>`;
}

/** A drawing with its title and caption. */
export function figure({ title, caption }: Chart, drawing: string): string {
  const said = caption === "" ? "" : `<figcaption>${text(caption)}</figcaption>\n`;
  return `<figure>\n<h3>${text(title)}</h3>\n${drawing}\n${said}</figure>`;
}

/** What is folded away until it is asked for, where it has many rows. */
export function folded(title: string, rows: number, content: string): string {
  const open = rows <= SHOWN_ROWS ? " open" : "";
  return `<details${open}>\n<summary>${text(title)}</summary>\n${content}\n</details>`;
}

/** Rows of a table that is shown unasked. */
export const SHOWN_ROWS = 30;

/** A table; the first column stays in sight where the others do not all fit. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly (string | Html)[])[],
): string {
  const classOf = (column: number) => columns[column]!.align === "right" ? ' class="n"' : "";
  const inner = (cell: string | Html) => typeof cell === "string" ? text(cell) : cell.html;
  const line = (tag: string, cells: readonly (string | Html)[]) =>
    `<tr>${cells.map((cell, i) => `<${tag}${classOf(i)}>${inner(cell)}</${tag}>`).join("")}</tr>`;
  return `<div class="table" tabindex="0"><table>\n<thead>${
    line("th", columns.map(({ title }) => title))
  }</thead>\n` +
    `<tbody>\n${rows.map((row) => line("td", row)).join("\n")}\n</tbody>\n</table></div>`;
}

/** The style sheet. */
const PAGE_STYLE = `:root {
  color-scheme: light dark;
  --ground: light-dark(#ffffff, #16181c);
  --ink: light-dark(#1d2126, #e4e6ea);
  --soft: light-dark(#5b6470, #9aa3af);
  --rule: light-dark(#d9dde3, #343a43);
  --wrong: light-dark(#b3261e, #ff8a80);
}
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1300px; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; padding-bottom: .2rem; border-bottom: 1px solid var(--rule); }
h3 { font-size: .95rem; margin: 0 0 .3rem; }
h1, h2, h3, p, li, code { overflow-wrap:anywhere; }
.headline { margin: 0 0 .5rem; }
.headline strong { font-size: 1.5rem; margin-right: .6rem; }
@media (min-width: 600px) { .headline strong { white-space: nowrap; } }
.headline span { display: inline-block; margin-right: 1.2rem; }
.headline span, .note, figcaption { color: var(--soft); }
.note { margin: 0 0 .6rem; font-size: .82rem; max-width: 90ch; }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; margin: 0 0 1rem; padding: 0; list-style: none; font-size: .82rem; }
.key i { display: inline-block; width: .8em; height: .8em; margin-right: .45em; border-radius: 2px; }
.figures { display: flex; flex-wrap: wrap; gap: 1.6rem 1.5rem; align-items: flex-start; }
figure { margin: 0; max-width: 100%; }
figure svg { display: block; max-width: 100%; height: auto; }
figure svg text { paint-order: stroke; stroke: var(--ground); stroke-width: 3px; stroke-linejoin: round; }
figcaption { font-size: .82rem; width: 0; min-width: 100%; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: .82rem; margin: .6rem 0; }
th, td { text-align: left; padding: .15rem .8rem .15rem 0; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--ground); min-width: 5.5rem; max-width: 40vw; overflow-wrap:anywhere; white-space: normal; padding-right: 1rem; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
.measured ul { margin: 0 0 .6rem; padding-left: 1.1rem; font-size: .82rem; }
.measured td, .failures td { white-space: normal; vertical-align: top; }
.measured td:first-child { color: var(--soft); }
.failures h2 { color: var(--wrong); border-color: var(--wrong); }
.failures td:nth-child(5) { min-width: 18rem; }
summary { cursor: pointer; }
a { color: inherit; }
:focus-visible { outline: 2px solid light-dark(#4477aa, #7fb0e0); outline-offset: 2px; }
tr:has(:target) td { background: light-dark(#fff3d6, #3a3420); }
td svg { display: block; }
`;
