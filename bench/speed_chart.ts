/**
 * The charts of README.md and docs/performance.md, from the records in bench/results/: how often as fast as NVIDIA's libraries, and as
 * other WebGPU libraries.
 *   deno run -A bench/speed_chart.ts docs/speed.svg docs/webgpu_libraries.svg
 * Needs no GPU.
 */
import { renderFile } from "../src/report/charts/theme.ts";
import { peers } from "./tables/peers.ts";
import { mean, type Pair, pairsOf, readCases } from "./tables/read.ts";

interface Bar {
  readonly what: string;
  readonly library: string;
  readonly pairs: readonly Pair[];
}

const NVIDIA = [
  ["convolutions, f32", "layers.f32", "layers.f32.cudnn", "cuDNN"],
  ["convolutions, f16", "layers.f16", "layers.f16.cudnn", "cuDNN"],
  ["matrix products, f32", "gemm", "gemm.cublas", "cuBLAS"],
].map(([what, ours, peer, library]): Bar => {
  const pairs = pairsOf(readCases(`h200/${ours}.jsonl`), readCases(`h200/${peer}.jsonl`));
  return { what: what!, library: library!, pairs };
});
/** Cases below which a mean says little. */
const FEWEST = 3;
const WEBGPU = peers().filter(({ dtype }) => dtype === "f32").flatMap(({ title, pairs }) =>
  [["convolutions", false], ["matrix products", true]].map(([what, products]): Bar => ({
    what: `${title}, ${what}`,
    library: "",
    pairs: pairs.filter(({ op }) => (op === "gemm") === products),
  }))
).filter(({ pairs }) => pairs.length >= FEWEST);

/** Bars of geometric means. */
async function chart(all: readonly Bar[], title: string, axis: string, most: number) {
  const values = all.map(({ what, library, pairs }) => {
    const speed = mean(pairs.map(({ ratio }) => ratio));
    const text = `${speed.toFixed(2)} × ${library}`;
    // Behind the line at 1, where a bar ends before it.
    return { what: `${what} (${pairs.length})`, speed, text, end: Math.max(speed, 1) };
  });
  return await renderFile({
    title: `${title}: ${values.map(({ what, text }) => `${what} ${text}`).join("; ")}`,
    caption: "",
    spec: {
      width: 380,
      height: 32 * values.length,
      data: { values },
      encoding: {
        y: { field: "what", type: "nominal", sort: null, title: null, axis: { labelLimit: 400 } },
        x: {
          field: "speed",
          type: "quantitative",
          title: axis,
          scale: { domain: [0, most] },
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
}

const svgs = [
  await chart(
    NVIDIA,
    "Speed of wgconv over cuDNN's and cuBLAS's on an NVIDIA H200",
    "speed over NVIDIA's library on an H200, geometric mean (cases)",
    2.6,
  ),
  await chart(
    WEBGPU,
    "Speed of wgconv over other WebGPU libraries on an NVIDIA H200",
    "speed over the library in f32 on an H200, geometric mean (cases)",
    20,
  ),
];
for (const [at, svg] of svgs.entries()) {
  const path = Deno.args[at];
  if (path === undefined) console.log(svg);
  else await Deno.writeTextFile(path, svg);
}
