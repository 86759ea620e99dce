/**
 * The chart of README.md, from the records in bench/results/: how often as fast as NVIDIA's libraries.
 *   deno run -A bench/speed_chart.ts docs/speed.svg
 * Needs no GPU.
 */
import { renderFile } from "../src/report/charts/theme.ts";
import { mean, pairsOf, readCases } from "./tables/read.ts";

const BARS = [
  ["convolutions, f32", "layers.f32", "layers.cudnn", "cuDNN"],
  ["convolutions, f16", "layers.f16", "layers.f16.cudnn", "cuDNN"],
  ["matrix products, f32", "gemm", "gemm.cublas", "cuBLAS"],
] as const;

const values = BARS.map(([what, ours, peer, library]) => {
  const pairs = pairsOf(readCases(`h200/${ours}.jsonl`), readCases(`h200/${peer}.jsonl`));
  const speed = mean(pairs.map(({ ratio }) => ratio));
  const text = `${speed.toFixed(2)} × ${library}`;
  // Behind the line at 1, where a bar ends before it.
  return { what: `${what} (${pairs.length})`, speed, text, end: Math.max(speed, 1) };
});

const svg = await renderFile({
  title: "Speed of wgconv over cuDNN's and cuBLAS's on an NVIDIA H200: " +
    values.map(({ what, text }) => `${what} ${text}`).join("; "),
  caption: "",
  spec: {
    width: 380,
    height: 96,
    data: { values },
    encoding: {
      y: { field: "what", type: "nominal", sort: null, title: null, axis: { labelLimit: 250 } },
      x: {
        field: "speed",
        type: "quantitative",
        title: "speed over NVIDIA's library on an H200, geometric mean (cases)",
        scale: { domain: [0, 2.6] },
        axis: { tickCount: 5 },
      },
    },
    layer: [
      { mark: { type: "bar", height: 20, color: "#4477aa" } },
      {
        mark: { type: "rule", color: "currentColor", strokeDash: [3, 3] },
        encoding: { x: { datum: 1 }, y: { value: 0 }, y2: { value: "height" } },
      },
      {
        mark: { type: "text", align: "left", dx: 6, fontSize: 12, color: "currentColor" },
        encoding: { text: { field: "text" }, x: { field: "end", type: "quantitative" } },
      },
    ],
  },
});
const [path] = Deno.args;
if (path === undefined) console.log(svg);
else await Deno.writeTextFile(path, svg);
