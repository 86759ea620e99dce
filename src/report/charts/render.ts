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

/** Draws a chart as a file: shown as an image it inherits no colour, so text is of a grey that does on light and on dark. */
export async function renderFile(chart: Chart): Promise<string> {
  const [drawn = ""] = await renderCharts([chart]);
  return drawn.replaceAll("currentColor", "#808080") + "\n";
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
