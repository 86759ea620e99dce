import {
  axisNumber,
  type Chart,
  colourScale,
  FIT,
  fittingUnit,
  logDomain,
  logEncoding,
  RATE_UNITS,
  shapeScale,
} from "./theme.ts";
import { byFacetOf, distinct, type Point } from "./points.ts";

/**
 * Arithmetic intensity against throughput by the direct algorithm's flops, and the device's ceilings: a chart a dtype.
 *
 * @param given Take the place of what is known of the device.
 */
export function rooflineCharts(
  points: readonly Point[],
  series: readonly string[],
  given: Ceilings,
): Chart[] {
  return byFacetOf(points, ({ record }) => record.dtype).flatMap(([dtype, all]) => {
    const dots = all.flatMap(({ right, flops, bytes, gflops, series, record: { op } }) =>
      right && flops && bytes && gflops ? [{ x: flops / bytes, y: gflops, series, op }] : []
    );
    if (dots.length === 0) return [];
    const devices = distinct(all.map(({ record }) => record.device).filter((name) => name !== ""));
    const known = devices.length === 1 ? deviceCeilings(devices[0]!, dtype) : {};
    const ceilings = { ...known, ...given };
    const beyond = dots.some(({ y }) => y > (ceilings.peak ?? Infinity));
    return [{
      title: `Roofline, ${dtype}`,
      caption: ceilingCaption(ceilings) +
        (beyond
          ? " Above them: Winograd, which needs fewer flops than the direct algorithm, or matrix units."
          : ""),
      spec: roofline(dots, series, roofPoints(dots, ceilings)),
    }];
  });
}

interface Dot {
  readonly x: number;
  readonly y: number;
  readonly series: string;
  readonly op: string;
}

interface RoofPoint {
  readonly roof: string;
  readonly x: number;
  readonly y: number;
  readonly text: string;
}

function roofline(
  dots: readonly Dot[],
  all: readonly string[],
  roofs: readonly RoofPoint[],
): Chart["spec"] {
  const unit = fittingUnit(dots.map(({ y }) => y), RATE_UNITS);
  const inUnit = <P extends { readonly y: number }>(points: readonly P[]) =>
    points.map((point) => ({ ...point, y: point.y / unit.scale }));
  const shown = all.filter((name) => dots.some(({ series }) => series === name));
  const colours = colourScale(all);
  const reach = inUnit([...dots, ...roofs]);
  const across = logEncoding("x", {
    title: "direct flop per byte of inputs and output",
    domain: logDomain(reach.map(({ x }) => x), 10),
  });
  const up = logEncoding("y", {
    title: unit.name,
    domain: logDomain(reach.map(({ y }) => y), 10),
  });
  const layer = [
    {
      data: { values: inUnit(roofs) },
      mark: { type: "line", color: "currentColor", strokeDash: [5, 3], opacity: 0.7 },
      encoding: { detail: { field: "roof", type: "nominal" } },
    },
    {
      data: { values: inUnit(roofs.filter(({ text }) => text !== "")) },
      mark: { type: "text", color: "currentColor", align: "left", dx: 10, dy: -7, fontSize: 11 },
      encoding: { text: { field: "text" } },
    },
    {
      data: { values: inUnit(dots) },
      mark: { type: "point", filled: true, size: 40, opacity: 0.8 },
      encoding: {
        color: {
          field: "series",
          type: "nominal",
          scale: { domain: shown, range: shown.map((name) => colours.range[all.indexOf(name)]!) },
          legend: null,
        },
        shape: {
          field: "op",
          type: "nominal",
          scale: shapeScale(distinct(dots.map(({ op }) => op))),
          legend: null,
        },
      },
    },
  ];
  return {
    ...FIT,
    height: 280,
    params: [across.param, up.param],
    encoding: { x: across.encoding, y: up.encoding },
    layer,
  } as Chart["spec"];
}

function ceilingCaption({ peak, bandwidth }: Ceilings): string {
  const known = [
    ...(peak === undefined ? [] : [`${axisNumber(peak / 1000)} TFLOP/s`]),
    ...(bandwidth === undefined ? [] : [`${bandwidth} GB/s`]),
  ];
  return known.length === 0
    ? "Every tensor moved once. The device's ceilings are not known (--peak-tflops, --bandwidth)."
    : `Every tensor moved once. Dashed: the device's ceilings, ${known.join(" and ")}.`;
}

/** Points of the ceilings over the dots' reach, and a text at the left end of each, where dots are few. */
function roofPoints(dots: readonly Dot[], { peak, bandwidth }: Ceilings): RoofPoint[] {
  const intensities = dots.map(({ x }) => x);
  const ridge = peak !== undefined && bandwidth !== undefined ? peak / bandwidth : undefined;
  const low = Math.min(...intensities, (ridge ?? Infinity) / 4) / 1.3;
  const high = Math.max(...intensities, (ridge ?? 0) * 4) * 1.3;
  const point = (roof: string, x: number, y: number, text = "") => ({ roof, x, y, text });
  const slope = bandwidth === undefined ? [] : [
    point("bandwidth", low, low * bandwidth, `${bandwidth} GB/s`),
    point("bandwidth", ridge ?? high, (ridge ?? high) * bandwidth),
  ];
  const flat = peak === undefined ? [] : [
    point("peak", ridge ?? low, peak, `${axisNumber(peak / 1000)} TFLOP/s`),
    point("peak", high, peak),
  ];
  return [...slope, ...flat];
}

/** What the device reaches at most, where that is known. */
export interface Ceilings {
  /** GFLOP/s */
  readonly peak?: number;
  /** GB/s */
  readonly bandwidth?: number;
}

/** What was measured: GFLOP/s of multiply-adds from registers alone by dtype, of f16 and i8 on matrix units, and GB/s of a copy. */
const DEVICES: ReadonlyMap<string, { bandwidth: number; peak: ReadonlyMap<string, number> }> =
  new Map([
    ["NVIDIA H200", {
      bandwidth: 4300,
      peak: new Map([["f64", 29_300], ["f32", 65_100], ["f16", 640_000], ["i8", 1_281_000]]),
    }],
  ]);

/** What a device reaches at most with values of a dtype, where it is known. */
export function deviceCeilings(device: string, dtype: string): Ceilings {
  const known = DEVICES.get(device);
  if (known === undefined) return {};
  const { bandwidth } = known;
  const peak = known.peak.get(dtype);
  return { bandwidth, ...(peak === undefined ? {} : { peak }) };
}
