import { colourScale, logDomain, logEncoding, renderFile } from "../../src/report/charts/theme.ts";

/** A point of a run's curve. */
export interface LossPoint {
  readonly run: string;
  readonly seed: number;
  readonly epoch: number;
  /** Mean of an epoch's pictures. */
  readonly loss: number;
}

/** Loss curves as an SVG: a colour a run, a line a seed; later runs are thinner, so that those beneath show. */
export async function lossChart(
  points: readonly LossPoint[],
  runs: readonly string[],
): Promise<string> {
  const x = {
    field: "epoch",
    type: "quantitative" as const,
    axis: { title: "epoch", tickMinStep: 1 },
    scale: { nice: false, zero: false },
  };
  const losses = points.map(({ loss }) => loss);
  const { param, encoding: y } = logEncoding("loss", {
    title: "loss",
    domain: logDomain(losses, 10),
  });
  const color = {
    field: "run",
    type: "nominal" as const,
    scale: colourScale(runs),
    legend: { title: null, symbolStrokeWidth: 3 },
  };
  const layer = runs.map((run, i) => ({
    data: { values: points.filter((point) => point.run === run) },
    mark: { type: "line" as const, strokeWidth: 2 + 2 * (runs.length - 1 - i) },
    encoding: { x, y, color, detail: { field: "seed", type: "nominal" as const } },
  }));
  return await renderFile({
    title: "Loss of a small network on handwritten digits, by arithmetic of its convolutions",
    caption: "",
    spec: { width: 520, height: 300, params: [param], layer },
  });
}
