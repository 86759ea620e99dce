import { axisNumber, fittingUnit, logDomain, RATE_UNITS, type Unit } from "./axes.ts";
import { type Ceilings, deviceCeilings } from "./device_ceilings.ts";
import { byFacetOf, distinct, type Point } from "./points.ts";
import { type Dot, dotLayer, type LogAxes, logAxes, logChart } from "./scatter.ts";
import type { Chart } from "./theme.ts";

/** What flops are counted of. */
type Counted = "direct" | "real";

/**
 * Arithmetic intensity against throughput, and the device's ceilings. Two charts a dtype, on the same axes: by the
 * direct algorithm's flops, and by two flops for every multiplication that kernels perform, of the records that say how
 * many they are.
 *
 * @param given Take the place of what is known of the device.
 */
export function rooflineCharts(
  points: readonly Point[],
  series: readonly string[],
  given: Ceilings,
): Chart[] {
  return byFacetOf(points, dtypeOf).flatMap(([dtype, all]) => {
    const direct = dotsOf(all, ({ flops }) => flops);
    const real = dotsOf(all, realFlops);
    if (direct.length === 0) return [];
    const devices = distinct(all.map(({ record }) => record.device).filter((name) => name !== ""));
    const known = devices.length === 1 ? deviceCeilings(devices[0]!, dtype) : {};
    const ceilings = { ...known, ...given };
    const unit = fittingUnit(direct.map(({ y }) => y), RATE_UNITS);
    const dots = [...direct, ...real];
    const roofs = roofPoints(dots, ceilings);
    const domain = (of: readonly { x: number; y: number }[], axis: "x" | "y") =>
      logDomain(of.map((dot) => dot[axis]), 10);
    const axes = (counted: Counted) =>
      logAxes(
        {
          title: `${counted} flop per byte of inputs and output`,
          domain: domain([...dots, ...roofs], "x"),
        },
        { title: unit.name, domain: scaled(domain([...dots, ...roofs], "y"), unit) },
      );
    const chart = (counted: Counted, own: readonly Dot[], caption: string): Chart => ({
      title: `Roofline by ${
        counted === "direct" ? "direct flops" : "real multiplications"
      }, ${dtype}`,
      caption,
      spec: roofline(own.map((dot) => ({ ...dot, y: dot.y / unit.scale })), series, axes(counted), [
        ...roofs.map((point) => ({ ...point, y: point.y / unit.scale })),
      ]),
    });
    const beyond = ceilings.peak !== undefined && direct.some(({ y }) => y > ceilings.peak!);
    const first = chart(
      "direct",
      direct,
      ceilingCaption(ceilings) +
        (beyond
          ? " Above them: algorithms that need fewer flops than they are credited with, or matrix units."
          : ""),
    );
    return real.length === 0 ? [first] : [first, chart("real", real, realCaption(all))];
  });
}

function dtypeOf({ record }: Point): string {
  return record.dtype;
}

/** Two flops a multiplication; `null` where the record does not say. */
function realFlops({ record }: Point): number | null {
  return record.multiplications === null ? null : 2 * record.multiplications;
}

/** Right points by some count of flops: flops a byte, and GFLOP/s. */
function dotsOf(points: readonly Point[], count: (point: Point) => number | null): Dot[] {
  return points.flatMap((point) => {
    const { right, flops, bytes, gflops, series, record: { op } } = point;
    const own = count(point);
    return right && flops && bytes && gflops && own
      ? [{ x: own / bytes, y: gflops * own / flops, series, op }]
      : [];
  });
}

interface RoofPoint {
  readonly roof: string;
  readonly x: number;
  readonly y: number;
  readonly text: string;
}

function roofline(
  dots: readonly Dot[],
  series: readonly string[],
  xy: LogAxes,
  roofs: readonly RoofPoint[],
): Chart["spec"] {
  return logChart(xy, [
    {
      data: { values: roofs },
      mark: { type: "line", color: "currentColor", strokeDash: [5, 3], opacity: 0.7 },
      encoding: { ...xy.encoding, detail: { field: "roof", type: "nominal" } },
    },
    {
      data: { values: roofs.filter(({ text }) => text !== "") },
      mark: { type: "text", color: "currentColor", align: "left", dx: 10, dy: -7, fontSize: 11 },
      encoding: { ...xy.encoding, text: { field: "text" } },
    },
    dotLayer(dots, series, xy),
  ]);
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

function realCaption(points: readonly Point[]): string {
  const silent = distinct(
    points.filter((point) => point.right && realFlops(point) === null)
      .map(({ record }) => record.provider),
  );
  return "Two flops for each multiplication that the kernels perform." +
    (silent.length === 0 ? "" : ` Not told by ${silent.join(", ")}.`);
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

function scaled([low, high]: readonly [number, number], { scale }: Unit): [number, number] {
  return [low / scale, high / scale];
}
