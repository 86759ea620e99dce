import { type Ceilings, deviceCeilings } from "./device_ceilings.ts";
import { byFacetOf, distinct, type Point } from "./points.ts";
import { type Chart, colourScale, SHAPE_LEGEND } from "./theme.ts";

/**
 * Arithmetic intensity against throughput, and the device's ceilings: a chart a dtype.
 *
 * @param given Take the place of what is known of the device.
 */
export function rooflineCharts(
  points: readonly Point[],
  series: readonly string[],
  given: Ceilings,
): Chart[] {
  return byFacetOf(points, dtypeOf).flatMap(([dtype, all]) => {
    const rows = all.flatMap(({ right, flops, bytes, gflops, series, record, label }) =>
      right && flops && bytes && gflops
        ? [{ intensity: flops / bytes, gflops, series, op: record.op, label }]
        : []
    );
    if (rows.length === 0) return [];
    const devices = distinct(all.map(({ record }) => record.device));
    const known = devices.length === 1 ? deviceCeilings(devices[0]!, dtype) : {};
    return [roofline(dtype, rows, series, { ...known, ...given })];
  });
}

function dtypeOf({ record }: Point): string {
  return record.dtype;
}

interface Row {
  readonly intensity: number;
  readonly gflops: number;
  readonly series: string;
  readonly op: string;
}

function roofline(
  dtype: string,
  rows: readonly Row[],
  all: readonly string[],
  ceilings: Ceilings,
): Chart {
  const shown = all.filter((name) => rows.some(({ series }) => series === name));
  const colours = colourScale(all);
  const range = shown.map((name) => colours.range[all.indexOf(name)]!);
  const lines = roofLines(rows, ceilings);
  const xs = [
    ...rows.map(({ intensity }) => intensity),
    ...lines.map(({ intensity }) => intensity),
  ];
  const ys = [...rows.map(({ gflops }) => gflops), ...lines.map(({ gflops }) => gflops)];
  const x = {
    field: "intensity",
    type: "quantitative" as const,
    title: "direct flop per byte of inputs and output",
    scale: { type: "log" as const, domain: around(xs), nice: false },
    axis: { format: "~s", tickCount: 6 },
  };
  const y = {
    field: "gflops",
    type: "quantitative" as const,
    title: "GFLOP/s",
    scale: { type: "log" as const, domain: around(ys), nice: false },
    axis: { format: "~s", tickCount: 6 },
  };
  const spec: Chart["spec"] = {
    width: 640,
    height: 340,
    layer: [
      {
        data: { values: lines },
        mark: { type: "line", color: "currentColor", strokeDash: [5, 3], opacity: 0.7 },
        encoding: { x, y, detail: { field: "roof", type: "nominal" } },
      },
      {
        data: { values: lines.filter(({ text }) => text !== "") },
        mark: { type: "text", color: "currentColor", align: "left", dx: 12, dy: -7, fontSize: 11 },
        encoding: { x, y, text: { field: "text" } },
      },
      {
        data: { values: rows },
        mark: { type: "point", filled: true, size: 46, opacity: 0.8 },
        encoding: {
          x,
          y,
          color: {
            field: "series",
            type: "nominal",
            scale: { domain: shown, range },
            legend: { columns: 4 },
          },
          shape: {
            field: "op",
            type: "nominal",
            scale: { domain: distinct(rows.map(({ op }) => op)) },
            legend: SHAPE_LEGEND,
          },
        },
      },
    ],
  };
  const beyond = ceilings.peak !== undefined && rows.some(({ gflops }) => gflops > ceilings.peak!);
  return {
    title: `Roofline, ${dtype}`,
    caption: ceilingCaption(ceilings) +
      (beyond ? " Winograd and FFT need fewer flops than they are credited with." : ""),
    spec,
  };
}

function ceilingCaption({ peak, bandwidth }: Ceilings): string {
  const known = [
    ...(peak === undefined ? [] : [`${peak / 1000} TFLOP/s`]),
    ...(bandwidth === undefined ? [] : [`${bandwidth} GB/s`]),
  ];
  return known.length === 0
    ? "Every tensor moved once. The device's ceilings are not known (--peak-tflops, --bandwidth)."
    : `Every tensor moved once. Dashed: the device's ceilings, ${known.join(" and ")}.`;
}

/** Points of the ceilings over the rows' reach, and a text at the left end of each, where points are few. */
function roofLines(rows: readonly Row[], { peak, bandwidth }: Ceilings) {
  const intensities = rows.map(({ intensity }) => intensity);
  const ridge = peak !== undefined && bandwidth !== undefined ? peak / bandwidth : undefined;
  const low = Math.min(...intensities, (ridge ?? Infinity) / 4) / 1.3;
  const high = Math.max(...intensities, (ridge ?? 0) * 4) * 1.3;
  const point = (roof: string, intensity: number, gflops: number, text = "") => ({
    roof,
    intensity,
    gflops,
    text,
  });
  const slope = bandwidth === undefined ? [] : [
    point("bandwidth", low, low * bandwidth, `${bandwidth} GB/s`),
    point("bandwidth", ridge ?? high, (ridge ?? high) * bandwidth),
  ];
  const flat = peak === undefined ? [] : [
    point("peak", ridge ?? low, peak, `${peak / 1000} TFLOP/s`),
    point("peak", high, peak),
  ];
  return [...slope, ...flat];
}

/** A logarithmic domain that leaves air around the values. */
function around(values: readonly number[]): [number, number] {
  return [Math.min(...values) / 1.4, Math.max(...values) * 1.4];
}
