import { logDomain, tickedAxis } from "../src/report/charts/axes.ts";
import { renderFile } from "../src/report/charts/render.ts";
import { logEncoding } from "../src/report/charts/scatter.ts";
import { colourScale } from "../src/report/charts/theme.ts";

/** The error of one kernel at one length of its sums. */
export interface WinrsError {
  readonly kernel: string;
  readonly length: number;
  /** Products of a part; 0 is one accumulator for all. */
  readonly flush: number;
  readonly mare: number;
}

/** Errors against lengths: a colour a kernel, dashed where sums are stored in parts. An SVG text. */
export async function winrsErrorChart(
  points: readonly WinrsError[],
  kernels: readonly string[],
): Promise<string> {
  const values = points.map(({ flush, ...point }) => ({
    ...point,
    sums: flush === 0 ? "one accumulator" : `parts of ${flush}`,
  }));
  const lengths = [...new Set(points.map(({ length }) => length))].sort((a, b) => a - b);
  const x = tickedAxis(
    "lengths",
    lengths.map((length) => ({ value: length, label: `2^${Math.log2(length)}` })),
  );
  const y = logEncoding("mare", {
    title: "MARE",
    domain: logDomain(points.map(({ mare }) => mare), 10),
  });
  return await renderFile({
    title: "Error of WinRS against accumulation length",
    caption: "",
    spec: {
      params: [x.param, y.param],
      data: { values },
      width: 520,
      height: 300,
      encoding: {
        x: {
          field: "length",
          type: "quantitative",
          title: "length of the sums, N · O_H · O_W",
          scale: { type: "log", base: 2, nice: false, domain: [lengths[0]!, lengths.at(-1)!] },
          axis: x.axis,
        },
        y: y.encoding,
        color: {
          field: "kernel",
          type: "nominal",
          scale: colourScale(kernels),
          legend: { symbolType: "stroke", symbolStrokeWidth: 3, symbolOpacity: 1 },
        },
        strokeDash: {
          field: "sums",
          type: "nominal",
          legend: {
            symbolType: "stroke",
            symbolStrokeWidth: 2,
            symbolStrokeColor: "currentColor",
            symbolSize: 300,
            symbolOpacity: 1,
          },
        },
      },
      layer: [
        { mark: "line" },
        {
          mark: { type: "point", filled: true, size: 18 },
          encoding: { strokeDash: { value: [1, 0] } },
        },
      ],
    },
  });
}
