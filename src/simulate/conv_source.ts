import {
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  tensorShape,
} from "../problem/conv_problem.ts";
import {
  type AxisTile,
  type PlanArithmetic,
  tileCount,
  type TileShare,
  tileStart,
} from "../problem/plan_arithmetic.ts";
import {
  canonicalStrides,
  type Geometry,
  geometryOf,
  type HostArray,
  type Triple,
} from "../reference/geometry.ts";
import type { ReferenceInputs } from "../reference/reference.ts";
import { stridesInLayout } from "../tensor/layout.ts";
import { tileTransform } from "../winograd/transform.ts";
import type { SumSource } from "./sum_source.ts";
import { tileTransforms } from "./transforms.ts";
import { lastExponent } from "./unit_sums.ts";

/**
 * Outputs of one group that share operands: every left one with every right one. A left one is a place: forward and
 * backward-data an image and a tile of it, backward-filter an input channel and a tile of the filter's taps. A right one
 * is a channel of the group: K, of backward-data C.
 */
interface ConvBlock {
  readonly group: number;
  /** Outer index (image, or channel of the group), then the tile along each of three axes. */
  readonly lefts: readonly (readonly [outer: number, ...tile: Triple])[];
  readonly rights: readonly number[];
}

/** A problem's operands and how they lie, for sources of its blocks. */
export interface ConvOperands {
  readonly problem: ConvProblem;
  readonly geometry: Geometry;
  readonly first: HostArray;
  readonly second: HostArray;
  /** The place that is read for one beyond an axis of the input, if that is inside; zeros are where absent. */
  readonly beyond?: (at: number, size: number) => number;
}

/** @throws {TypeError} where an operand is missing. */
export function convOperands(problem: ConvProblem, inputs: ReferenceInputs): ConvOperands {
  const strides = { ...canonicalStrides(problem) };
  const [first, second] = operandTensors(problem.op).map((which) => {
    const operand = inputs[which];
    if (operand === undefined) throw new TypeError(`Cannot simulate: ${which} is missing`);
    strides[which] = stridesInLayout(tensorShape(problem, which), operand.layout);
    return operand.data;
  }) as [HostArray, HostArray];
  return { problem, geometry: geometryOf(problem, strides), first, second };
}

/** Tiles along three axes; axes that a problem lacks have none. */
export function threeTiles(share: TileShare | undefined): [AxisTile, AxisTile, AxisTile] {
  const given = share?.axes ?? [];
  const [a, b, c] = [...Array.from({ length: 3 - given.length }, () => ({ n: 1, r: 1 })), ...given];
  return [a!, b!, c!];
}

/** Sizes of the result along three axes: places, or taps of a filter's gradient. */
export function resultSizes({ op, inputSize, filterSize, outputSize }: Geometry): Triple {
  return op === "fwd" ? outputSize : op === "bwd-data" ? inputSize : filterSize;
}

const largestValues = new WeakMap<ConvOperands, readonly [Float64Array, Float64Array]>();

const lastBits = new WeakMap<ConvOperands, Float64Array>();

/** The exponents of the last bits by which it is found whether low halves are made for the left ones of a block. */
function lastBitsOf(operands: ConvOperands, { group, lefts }: ConvBlock): Float64Array {
  const { geometry: { op, batch, groups, inChannels }, first } = operands;
  const byChannel = op === "bwd-filter";
  const known = lastBits.get(operands) ?? reduceKeys(
    operands,
    first,
    operandTensors(op)[0],
    byChannel ? groups * inChannels : batch,
    byChannel ? (_, channel) => channel : (image) => image,
    Infinity,
    (least, value) => Math.min(least, lastExponent(value)),
  );
  lastBits.set(operands, known);
  return Float64Array.from(
    lefts,
    ([outer]) => known[byChannel ? group * inChannels + outer : outer]!,
  );
}

/** The largest values by which the left and right ones of a block are scaled where they are split into halves. */
function largestOf(
  operands: ConvOperands,
  { group, lefts, rights }: ConvBlock,
  scaled: PlanArithmetic["scaled"],
) {
  const { geometry: g } = operands;
  const known = largestValues.get(operands) ?? findLargest(operands);
  largestValues.set(operands, known);
  const of = (values: Float64Array, places: readonly number[], perGroup = 0) =>
    Float64Array.from(places, (place) => values[group * perGroup + place]!);
  const outers = lefts.map(([outer]) => outer);
  return g.op === "bwd-filter"
    ? { lefts: of(known[0], outers, g.inChannels), rights: of(known[1], rights, g.outChannels) }
    : {
      ...(scaled === "tiles" ? {} : { lefts: of(known[0], outers) }),
      rights: of(known[1], rights, g.op === "fwd" ? g.outChannels : g.inChannels),
    };
}

/** The largest value of each image, or channel, of the first operand, and of each channel of the result of the second. */
function findLargest(operands: ConvOperands) {
  const { geometry: g, first, second, problem } = operands;
  const [left, right] = operandTensors(problem.op);
  const over = (
    data: HostArray,
    which: ConvTensor,
    count: number,
    keyOf: (a: number, b: number) => number,
  ) =>
    reduceKeys(
      operands,
      data,
      which,
      count,
      keyOf,
      0,
      (most, value) => value > most ? value : value === value ? most : Infinity,
    );
  const { batch, groups, inChannels, outChannels } = g;
  if (problem.op === "bwd-filter") {
    const byChannel = (_: number, channel: number) => channel;
    return [
      over(first, left, groups * inChannels, byChannel),
      over(second, right, groups * outChannels, byChannel),
    ] as const;
  }
  return [
    over(first, left, batch, (image) => image),
    problem.op === "fwd" ? over(second, right, groups * outChannels, (k) => k) : over(
      second,
      right,
      groups * inChannels,
      (k, c) => Math.floor(k / outChannels) * inChannels + c,
    ),
  ] as const;
}

/** Reduces the sizes of a tensor's values by keys, so many, of its first two axes. */
function reduceKeys(
  { geometry: g, problem }: ConvOperands,
  data: HostArray,
  which: ConvTensor,
  count: number,
  keyOf: (a: number, b: number) => number,
  initial: number,
  reduce: (so: number, size: number) => number,
): Float64Array {
  const stridesOf = { input: g.inputStrides, filter: g.filterStrides, output: g.outputStrides };
  const sizesOf = { input: g.inputSize, filter: g.filterSize, output: g.outputSize };
  const reduced = new Float64Array(count).fill(initial);
  const [sa, sb, s0, s1, s2] = stridesOf[which] as [number, number, number, number, number];
  const [n0, n1, n2] = sizesOf[which];
  const [na, nb] = tensorShape(problem, which) as [number, number];
  for (let a = 0; a < na; a++) {
    for (let b = 0; b < nb; b++) {
      const key = keyOf(a, b);
      let so = reduced[key]!;
      for (let i = 0; i < n0; i++) {
        for (let j = 0; j < n1; j++) {
          const row = a * sa + b * sb + i * s0 + j * s1;
          for (let k = 0; k < n2; k++) so = reduce(so, Math.abs(data[row + k * s2]!));
        }
      }
      reduced[key] = so;
    }
  }
  return reduced;
}

/** The source of a block's sums, as one of the plan's kernels makes them. */
export function convSource(
  operands: ConvOperands,
  block: ConvBlock,
  share: TileShare | undefined,
  { inner = "channels", transformed, math, scaled, highs }: PlanArithmetic,
): SumSource {
  const { geometry: g, first, second, beyond } = operands;
  // Halves are of transforms that enlarge nothing, as f16 is.
  const kept = transformed === "f16" || math === "f16x3" ? "f16" : "f32";
  const tiles = threeTiles(share);
  const counts = unitCounts(g, tiles, share);
  const axes = [0, 1, 2].map((d) =>
    axisOffsets(
      g,
      d,
      tiles[d]!,
      counts[d]!,
      share,
      block.lefts.map((left) => left[d + 1]!),
      beyond,
    )
  ) as [AxisOffsets, AxisOffsets, AxisOffsets];
  const leftAxes = axes.map(({ left }) => left);
  const alphas = tiles.map(({ n, r }) => n + r - 1) as Triple;
  const taps = tiles.map(({ r }) => r) as Triple;
  const { lefts, rights } = starts(g, block);
  const [outerCount, leftOuter, rightOuter] = outerLoop(g);
  const spots = counts[0] * counts[1] * counts[2];
  const channelsInside = inner === "channels" && g.op !== "bwd-filter";
  const tiled = tiles.filter(({ n, r }) => n > 1 || r > 1);
  return {
    units: spots * outerCount,
    lefts: lefts.length,
    rights: rights.length,
    ...(math === "fft" ? { tiles } : tiled.length === 0 ? {} : {
      transforms: tileTransforms(tiled.map(({ n, r }) => tileTransform(n, r, kept))),
      tiles: tiled,
    }),
    ...(math === "f16x3"
      ? {
        largest: largestOf(operands, block, scaled),
        ...(highs === "away" && tiled.length === 0
          ? { lastBits: lastBitsOf(operands, block) }
          : {}),
        met: lefts.map((_, left) =>
          leftAxes.reduce(
            (met, axis) => met * axis[left]!.reduce((all, at) => all + (at < 0 ? 0 : 1), 0),
            outerCount,
          )
        ),
      }
      : {}),
    load(unit, leftPatches, rightPatches) {
      const outer = channelsInside ? unit % outerCount : Math.floor(unit / spots);
      const spot = channelsInside ? Math.floor(unit / outerCount) : unit % spots;
      const u2 = spot % counts[2];
      const rest = (spot - u2) / counts[2];
      const u1 = rest % counts[1];
      const u0 = (rest - u1) / counts[1];
      let at = 0;
      for (let left = 0; left < lefts.length; left++) {
        const [o0, o1, o2] = [leftAxes[0]![left]!, leftAxes[1]![left]!, leftAxes[2]![left]!];
        const base = lefts[left]! + outer * leftOuter;
        at = gather(first, base, leftPatches, at, alphas, o0, o1, o2, u0, u1, u2);
      }
      at = 0;
      for (let right = 0; right < rights.length; right++) {
        const base = rights[right]! + outer * rightOuter;
        const [o0, o1, o2] = [axes[0].right, axes[1].right, axes[2].right];
        at = gather(second, base, rightPatches, at, taps, o0, o1, o2, u0, u1, u2);
      }
    },
  };
}

function gather(
  from: HostArray,
  base: number,
  to: Float64Array,
  at: number,
  [n0, n1, n2]: Triple,
  o0: Int32Array,
  o1: Int32Array,
  o2: Int32Array,
  u0: number,
  u1: number,
  u2: number,
): number {
  for (let i = 0; i < n0; i++) {
    const a = o0[u0 * n0 + i]!;
    for (let j = 0; j < n1; j++) {
      const b = o1[u1 * n1 + j]!;
      for (let k = 0; k < n2; k++) {
        const c = o2[u2 * n2 + k]!;
        to[at++] = a < 0 || b < 0 || c < 0 ? 0 : from[base + a + b + c]!;
      }
    }
  }
  return at;
}

/** The loop that no spatial axis is, and its steps in the two operands. */
function outerLoop(g: Geometry): [count: number, left: number, right: number] {
  return g.op === "fwd"
    ? [g.inChannels, g.inputStrides[1]!, g.filterStrides[1]!]
    : g.op === "bwd-data"
    ? [g.outChannels, g.outputStrides[1]!, g.filterStrides[0]!]
    : [g.batch, g.inputStrides[0]!, g.outputStrides[0]!];
}

/** Where the operands of each left and right one begin. */
function starts(g: Geometry, { group, lefts, rights }: ConvBlock) {
  const ins = group * g.inChannels, outs = group * g.outChannels;
  if (g.op === "fwd") {
    return {
      lefts: lefts.map(([image]) => image * g.inputStrides[0]! + ins * g.inputStrides[1]!),
      rights: rights.map((k) => (outs + k) * g.filterStrides[0]!),
    };
  }
  if (g.op === "bwd-data") {
    return {
      lefts: lefts.map(([image]) => image * g.outputStrides[0]! + outs * g.outputStrides[1]!),
      rights: rights.map((c) => outs * g.filterStrides[0]! + c * g.filterStrides[1]!),
    };
  }
  return {
    lefts: lefts.map(([c]) => (ins + c) * g.inputStrides[1]!),
    rights: rights.map((k) => (outs + k) * g.outputStrides[1]!),
  };
}

/** Where one axis of a patch lies: element offsets by unit and by place in the patch, -1 where it reads a zero. */
interface AxisOffsets {
  readonly left: readonly Int32Array[];
  readonly right: Int32Array;
}

/** Units along an axis: taps, in pieces of r; of backward-filter places, in pieces of r. */
export function unitCounts(
  g: Geometry,
  tiles: readonly AxisTile[],
  share: TileShare | undefined,
): Triple {
  const backward = g.op === "bwd-filter";
  const sizes = backward ? g.outputSize : g.filterSize;
  return [0, 1, 2].map((d) => {
    const taken = columnsOf(share, d);
    return tileCount(taken?.count ?? sizes[d]!, tiles[d]!.r, backward ? g.dilation[d]! : 1);
  }) as Triple;
}

/** The places of the output gradient that a kernel takes along axis `d` of three; undefined where all. */
function columnsOf(share: TileShare | undefined, d: number) {
  const taken = share?.columns;
  return taken !== undefined && taken.axis + 3 - share!.axes.length === d ? taken : undefined;
}

function axisOffsets(
  g: Geometry,
  d: number,
  { n, r }: AxisTile,
  units: number,
  share: TileShare | undefined,
  tiles: readonly number[],
  beyond: ConvOperands["beyond"],
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
  const size = g.inputSize[d]!;
  const input = (at: number) =>
    inside(
      beyond === undefined || (at >= 0 && at < size) ? at : beyond(at, size),
      size,
      g.inputStrides[d + 2]!,
    );
  const tap = (at: number) => inside(at, g.filterSize[d]!, g.filterStrides[d + 2]!);
  const place = (at: number) => inside(at, g.outputSize[d]!, g.outputStrides[d + 2]!);
  if (g.op === "fwd") {
    return {
      left: tiles.map((t) =>
        table(
          alpha,
          (unit, j) =>
            input(tileStart(t, n, dilation) * stride + tapStart(g, d, unit * r) + j * dilation),
        )
      ),
      right: table(r, (unit, i) => tap(unit * r + i)),
    };
  }
  if (g.op === "bwd-filter") {
    const apart = r === 1 ? 1 : dilation;
    return {
      left: tiles.map((t) =>
        table(
          alpha,
          (unit, j) =>
            input(
              (firstColumn + tileStart(unit, r, apart)) * stride + (t * n + j) * dilation - padding,
            ),
        )
      ),
      right: table(r, (unit, i) => {
        const at = tileStart(unit, r, apart) + i * apart;
        return at < columns ? place(firstColumn + at) : -1;
      }),
    };
  }
  const taps = g.filterSize[d]!;
  return {
    left: tiles.map((t) =>
      table(alpha, (unit, j) => {
        const at = tileStart(t, n, dilation) + tapStart(g, d, unit * r) + j * dilation;
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
