/** Memory of im2win and im2col by their definitions, and a chart of it. */
import { type ConvProblem, tensorBytes } from "../src/problem/conv_problem.ts";
import { renderFile } from "../src/report/charts/render.ts";
import { colourScale } from "../src/report/charts/theme.ts";
import { elementCount } from "../src/tensor/tensor.ts";

/** Bytes that the definitions give: the tensors with the whole batch in window order, and as matrices. */
export function memoryFormulas(problem: ConvProblem): { windows: number; matrix: number } {
  const { batch, inChannels, outputSize, filterSize, inputSize } = problem;
  const outer = elementCount(outputSize.slice(0, -1)) * elementCount(filterSize.slice(0, -1));
  const tensors = tensorBytes(problem, 4);
  return {
    windows: tensors + 4 * batch * inChannels * outer * inputSize.at(-1)!,
    matrix: tensors + 4 * batch * inChannels * elementCount(outputSize) * elementCount(filterSize),
  };
}

/** Peak memory of im2win and im2col, unchunked, as grouped bars: an SVG text. */
export async function memoryChart(problems: readonly ConvProblem[]): Promise<string> {
  const layers = problems.map(({ name = "" }) => name);
  const values = problems.flatMap((problem) => {
    const { name: layer } = problem;
    const { windows, matrix } = memoryFormulas(problem);
    return [["im2win", windows], ["im2col", matrix]].map(([series, bytes]) => ({
      layer,
      series,
      GiB: Number(bytes) / 2 ** 30,
    }));
  });
  const ways = ["im2win", "im2col"];
  return await renderFile({
    title: "Memory of im2win and im2col by layer",
    caption: "",
    spec: {
      data: { values },
      width: 560,
      height: 220,
      mark: "bar",
      encoding: {
        x: { field: "layer", type: "nominal", sort: layers, title: null, axis: { labelAngle: 0 } },
        xOffset: { field: "series", sort: ways },
        y: {
          field: "GiB",
          type: "quantitative",
          title: "GiB, tensors and what is transformed",
          scale: { type: "symlog" },
          axis: { values: [0, 1, 2, 5, 10, 20], labelOverlap: false },
        },
        color: { field: "series", type: "nominal", scale: colourScale(ways), title: null },
      },
    },
  });
}
