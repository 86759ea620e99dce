import { type Chart, CONFIG } from "./theme.ts";

/** Draws charts as SVG texts, in order. Vega is loaded when this is first called. */
export async function renderCharts(charts: readonly Chart[]): Promise<string[]> {
  if (charts.length === 0) return [];
  const [vega, vegaLite] = await Promise.all([import("vega"), import("vega-lite")]);
  const drawn: string[] = [];
  for (const [index, { title, spec }] of charts.entries()) {
    const logger = vega.logger(vega.Error);
    const compiled = vegaLite.compile({ ...spec, config: CONFIG }, { logger });
    const view = new vega.View(vega.parse(compiled.spec), { renderer: "none", logger });
    const svg = await view.toSVG();
    view.finalize();
    drawn.push(labelled(uniqueIds(svg, `c${index}-`), title));
  }
  return drawn;
}

/**
 * Grounds and inks of a chart that is a file of its own. A page shows it as an image, which inherits nothing but whether
 * its reader prefers light or dark; with a ground of its own it is readable on any page.
 */
const FILE_STYLE = "<style>svg{color:#1d2126}.ground{fill:#ffffff}" +
  "@media(prefers-color-scheme:dark){svg{color:#e4e6ea}.ground{fill:#16181c}}</style>" +
  '<rect class="ground" width="100%" height="100%" rx="6" fill="#ffffff"/>';

/** Draws a chart as a file, for light and for dark pages. */
export async function renderFile(chart: Chart): Promise<string> {
  const [drawn = ""] = await renderCharts([chart]);
  return drawn.replace(/^<svg [^>]*>/, `$&${FILE_STYLE}`) + "\n";
}

/** Every chart's ids start anew, and they share a page. */
function uniqueIds(svg: string, prefix: string): string {
  return svg.replaceAll(/\bid="/g, `id="${prefix}`).replaceAll("url(#", `url(#${prefix}`);
}

/** Names the drawing for those who cannot see it. */
function labelled(svg: string, title: string): string {
  const label = title.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
  return svg.replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    .replace("<svg ", `<svg role="img" aria-label="${label}" `);
}
