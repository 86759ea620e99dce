import type { AxisTile, TileShare } from "../problem/plan_arithmetic.ts";
import type { Geometry, Triple } from "../reference/geometry.ts";

/** Where one axis of a patch lies: element offsets by unit and by place in the patch, -1 where it reads a zero. */
export interface AxisOffsets {
  readonly left: readonly Int32Array[];
  readonly right: Int32Array;
}

/** Units along an axis: taps, in pieces of r; of backward-filter places, in pieces of r. */
export function unitCounts(
  g: Geometry,
  tiles: readonly AxisTile[],
  share: TileShare | undefined,
): Triple {
  const sizes = g.op === "bwd-filter" ? g.outputSize : g.filterSize;
  return [0, 1, 2].map((d) => {
    const taken = columnsOf(share, d);
    return Math.ceil((taken?.count ?? sizes[d]!) / tiles[d]!.r);
  }) as Triple;
}

/** The places of the output gradient that a kernel takes along axis `d` of three; undefined where all. */
function columnsOf(share: TileShare | undefined, d: number) {
  const taken = share?.columns;
  return taken !== undefined && taken.axis + 3 - share!.axes.length === d ? taken : undefined;
}

export function axisOffsets(
  g: Geometry,
  d: number,
  { n, r }: AxisTile,
  units: number,
  share: TileShare | undefined,
  tiles: readonly number[],
): AxisOffsets {
  const { first: firstColumn, count: columns } = columnsOf(share, d) ??
    { first: 0, count: g.outputSize[d]! };
  const alpha = n + r - 1;
  const [stride, dilation, padding] = [g.stride[d]!, g.dilation[d]!, g.padding[d]!];
  const inside = (at: number, size: number, step: number) => at >= 0 && at < size ? at * step : -1;
  const table = (width: number, at: (unit: number, place: number) => number) => {
    const offsets = new Int32Array(units * width);
    for (let unit = 0; unit < units; unit++) {
      for (let place = 0; place < width; place++) offsets[unit * width + place] = at(unit, place);
    }
    return offsets;
  };
  const input = (at: number) => inside(at, g.inputSize[d]!, g.inputStrides[d + 2]!);
  const tap = (at: number) => inside(at, g.filterSize[d]!, g.filterStrides[d + 2]!);
  const place = (at: number) => inside(at, g.outputSize[d]!, g.outputStrides[d + 2]!);
  if (g.op === "fwd") {
    return {
      left: tiles.map((t) =>
        table(alpha, (unit, j) => input(t * n * stride + tapStart(g, d, unit * r) + j))
      ),
      right: table(r, (unit, i) => tap(unit * r + i)),
    };
  }
  if (g.op === "bwd-filter") {
    return {
      left: tiles.map((t) =>
        table(
          alpha,
          (unit, j) => input((firstColumn + unit * r) * stride + t * n * dilation - padding + j),
        )
      ),
      right: table(r, (unit, i) => {
        const at = unit * r + i;
        return at < columns ? place(firstColumn + at) : -1;
      }),
    };
  }
  const taps = g.filterSize[d]!;
  return {
    left: tiles.map((t) =>
      table(alpha, (unit, j) => {
        const at = t * n + tapStart(g, d, unit * r) + j;
        return at % stride === 0 ? place(at / stride) : -1;
      })
    ),
    right: table(r, (unit, i) => tap(taps - 1 - (unit * r + i))),
  };
}

/** Where a tap meets the image of the first place: forward, or of backward-data, whose taps run backwards, of stride 1. */
function tapStart(g: Geometry, d: number, tap: number): number {
  const [dilation, padding] = [g.dilation[d]!, g.padding[d]!];
  return tap * dilation + (g.op === "fwd" ? -padding : padding - (g.filterSize[d]! - 1) * dilation);
}
