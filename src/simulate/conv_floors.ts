import type { Floors } from "../accuracy/yardstick.ts";
import type { ConvProblem } from "../problem/conv_problem.ts";
import { type PlanArithmetic, tileStart } from "../problem/plan_arithmetic.ts";
import type { HostArray, Triple } from "../reference/geometry.ts";
import type { ReferenceInputs } from "../reference/reference.ts";
import { type ConvOperands, convOperands } from "./conv_source.ts";
import { blockOf, type Grid, gridOf } from "./conv_yardstick.ts";

/** What floors are found from. */
interface ConvFloorsRequest {
  readonly problem: ConvProblem;
  readonly inputs: ReferenceInputs;
  readonly arithmetic: PlanArithmetic;
}

/**
 * The floors of a convolution: by Cauchy and Schwarz Σ|a||b| ≤ √(Σa²)·√(Σb²) of what transforms mix, added up over the rest.
 * Forward and backward-data mix the places of a tile's window, channel by channel; Σa² is the mean over all windows that the
 * tile's transform has. A filter's gradient mixes the places of a line of an image. Undefined where sums are plain.
 *
 * @throws {TypeError} where an operand is missing.
 */
export function convFloors({ problem, inputs, arithmetic }: ConvFloorsRequest): Floors | undefined {
  const operands = convOperands(problem, inputs);
  const grid = gridOf(operands, arithmetic);
  if (!grid.tiled) return undefined;
  return operands.geometry.op === "bwd-filter"
    ? gradientFloors(operands, grid)
    : windowFloors(operands, grid);
}

/** 0 of what is not finite: outputs that meet it have no errors to be measured. */
function square(data: HostArray, at: number): number {
  const value = data[at]!;
  return Number.isFinite(value) ? value * value : 0;
}

/** Σ of squares over the places of each line of a tensor; an axis has as many lines as places, or one. */
function lineSquares(
  data: HostArray,
  [n0, n1]: readonly [number, number],
  sizes: Triple,
  strides: readonly number[],
  lines: Triple,
): Float64Array {
  const [s0, s1, ...steps] = strides as [number, number, number, number, number];
  const [m0, m1, m2] = lines.map((count) => count === 1 ? 0 : 1) as Triple;
  const squares = new Float64Array(n0 * n1 * lines[0] * lines[1] * lines[2]);
  for (let i = 0, base = 0; i < n0; i++) {
    for (let j = 0; j < n1; j++, base += lines[0] * lines[1] * lines[2]) {
      for (let a = 0; a < sizes[0]; a++) {
        for (let b = 0; b < sizes[1]; b++) {
          const line = base + (m0 * a * lines[1] + m1 * b) * lines[2];
          const from = i * s0 + j * s1 + a * steps[0] + b * steps[1];
          for (let c = 0; c < sizes[2]; c++) {
            squares[line + m2 * c]! += square(data, from + c * steps[2]);
          }
        }
      }
    }
  }
  return squares;
}

/** Lines of an image and of a gradient that meet at a tap, a pair each. */
interface MetLines {
  readonly image: Uint32Array;
  readonly gradient: Uint32Array;
}

/** By output and input channel, and by tap along the axes that have no tiles. */
function gradientFloors(operands: ConvOperands, grid: Grid): Floors {
  const { geometry: g, first, second } = operands;
  const { mixed } = grid;
  const linesOf = (sizes: Triple) => sizes.map((size, d) => mixed[d] ? 1 : size) as Triple;
  const ins = g.groups * g.inChannels, outs = g.groups * g.outChannels;
  const [inLines, outLines] = [linesOf(g.inputSize), linesOf(g.outputSize)];
  const x = lineSquares(first, [g.batch, ins], g.inputSize, g.inputStrides, inLines);
  const dy = lineSquares(second, [g.batch, outs], g.outputSize, g.outputStrides, outLines);
  const perImage = (lines: Triple) => lines[0] * lines[1] * lines[2];
  const [inCount, outCount] = [perImage(inLines), perImage(outLines)];
  /** Products of a line. */
  const length = Math.max(1, perImage(g.outputSize) / Math.max(1, outCount));
  const known = new Map<string, MetLines>();
  const metAt = (taps: readonly number[]): MetLines => {
    const key = `${taps.map((tap, d) => mixed[d] ? 0 : tap)}`;
    const met = known.get(key) ?? metLines(operands, grid, taps, inLines, outLines);
    known.set(key, met);
    return met;
  };
  const sum = (index: number, of: (x: number, dy: number) => number) => {
    const { group, place: [c, ...taps], channel: k } = blockOf(operands, grid, index);
    const { image, gradient } = metAt(taps);
    let all = 0;
    for (let n = 0; n < g.batch; n++) {
      const from = (n * ins + group * g.inChannels + c) * inCount;
      const by = (n * outs + group * g.outChannels + k) * outCount;
      for (let i = 0; i < image.length; i++) {
        all += of(x[from + image[i]!]!, dy[by + gradient[i]!]!);
      }
    }
    return all;
  };
  return {
    size: (index) => sum(index, (a, b) => Math.sqrt(a * b)),
    square: (index) => sum(index, (a, b) => a * b) / length,
    meanSquare(index) {
      const { group, place: [, ...taps] } = blockOf(operands, grid, index);
      const { image, gradient } = metAt(taps);
      const mean = (
        squares: Float64Array,
        first: number,
        channels: number,
        count: number,
        line: number,
      ) => {
        let all = 0;
        for (let c = 0; c < channels; c++) all += squares[(first + c) * count + line]!;
        return all / channels;
      };
      let all = 0;
      for (let n = 0; n < g.batch; n++) {
        const from = n * ins + group * g.inChannels, by = n * outs + group * g.outChannels;
        for (let i = 0; i < image.length; i++) {
          all += mean(x, from, g.inChannels, inCount, image[i]!) *
            mean(dy, by, g.outChannels, outCount, gradient[i]!);
        }
      }
      return all / length;
    },
  };
}

/** The lines that meet at taps; along a mixed axis all do. */
function metLines(
  { geometry: g }: ConvOperands,
  { mixed }: Grid,
  taps: readonly number[],
  [, i1, i2]: Triple,
  [o0, o1, o2]: Triple,
): MetLines {
  const image: number[] = [], gradient: number[] = [];
  const lineOf = (d: number, at: number) => {
    if (mixed[d]) return 0;
    const line = at * g.stride[d]! + taps[d]! * g.dilation[d]! - g.padding[d]!;
    return line < g.inputSize[d]! ? line : -1;
  };
  for (let line = 0; line < o0 * o1 * o2; line++) {
    const c = line % o2, rest = (line - c) / o2;
    const b = rest % o1, a = (rest - b) / o1;
    const [p, q, r] = [lineOf(0, a), lineOf(1, b), lineOf(2, c)];
    if (p < 0 || q < 0 || r < 0) continue;
    image.push((p * i1 + q) * i2 + r);
    gradient.push(line);
  }
  return { image: Uint32Array.from(image), gradient: Uint32Array.from(gradient) };
}

/** Values of windows that are kept, 32 MiB: each channel of a result asks for the same tiles. */
const KEPT_VALUES = 2 ** 22;

/** Forward and backward-data, by tile and channel. */
function windowFloors(operands: ConvOperands, grid: Grid): Floors {
  const { geometry: g, first, second } = operands;
  const forward = g.op === "fwd";
  const strides = forward ? g.inputStrides : g.outputStrides;
  const summed = forward ? g.inChannels : g.outChannels;
  const taps = g.filterSize[0] * g.filterSize[1] * g.filterSize[2];
  const filterChannels = [g.groups * g.outChannels, g.inChannels] as const;
  const filter = lineSquares(second, filterChannels, g.filterSize, g.filterStrides, [1, 1, 1]);
  /** Of a group's result channel and channel that is summed. */
  const filterOf = (group: number, channel: number, c: number) =>
    forward
      ? filter[(group * g.outChannels + channel) * g.inChannels + c]!
      : filter[(group * g.outChannels + c) * g.inChannels + channel]!;
  const filterMeans = Float64Array.from({ length: g.groups * summed }, (_, i) => {
    let all = 0;
    for (let k = 0; k < grid.channels; k++) all += filterOf(Math.floor(i / summed), k, i % summed);
    return all / grid.channels;
  });
  const axes = [0, 1, 2].map((d) => windowAxis(operands, grid, d));
  const known = new Map<number, Float64Array>();
  /** Of each channel that is summed. */
  const windowOf = (group: number, [image, ...at]: readonly [number, ...Triple]): Float64Array => {
    const key = at.reduce((so, one, d) => so * grid.tiles[d]! + one, image * g.groups + group);
    const kept = known.get(key);
    if (kept !== undefined) return kept;
    const [a, b, c] = at.map((tile, d) => axes[d]!.placesOf(tile)) as [
      number[],
      number[],
      number[],
    ];
    const share = axes.reduce((all, axis) => all * axis.share, 1);
    const made = Float64Array.from({ length: summed }, (_, channel) => {
      const base = image * strides[0]! + (group * summed + channel) * strides[1]!;
      let all = 0;
      for (const i of a) {
        for (const j of b) for (const l of c) all += square(first, base + i + j + l);
      }
      return share * all;
    });
    if (known.size * summed >= KEPT_VALUES) known.clear();
    known.set(key, made);
    return made;
  };
  const sum = (index: number, of: (window: number, filter: number) => number) => {
    const { group, place, channel } = blockOf(operands, grid, index);
    const window = windowOf(group, place);
    let all = 0;
    for (let c = 0; c < summed; c++) all += of(window[c]!, filterOf(group, channel, c));
    return all;
  };
  return {
    size: (index) => sum(index, (a, b) => Math.sqrt(a * b)),
    square: (index) => sum(index, (a, b) => a * b) / taps,
    meanSquare(index) {
      const { group, place } = blockOf(operands, grid, index);
      const window = windowOf(group, place);
      return window.reduce((all, one, c) => all + one * filterMeans[group * summed + c]!, 0) / taps;
    },
  };
}

/** The places of a tile's window along an axis, and the share that one output's taps are of it. */
function windowAxis({ geometry: g }: ConvOperands, { tile, apart }: Grid, d: number) {
  const forward = g.op === "fwd";
  const [size, stride] = forward
    ? [g.inputSize[d]!, g.inputStrides[d + 2]!]
    : [g.outputSize[d]!, g.outputStrides[d + 2]!];
  const reach = (g.filterSize[d]! - 1) * g.dilation[d]!;
  const by = g.stride[d]!, padding = g.padding[d]!;
  // Taps of one output stand as far apart as outputs of a tile do.
  const step = forward || by === 1 ? g.dilation[d]! : 1;
  const span = (tile[d]! - 1) * apart[d]!;
  /** Of backward-data taps run backwards. */
  const ends = (tileNumber: number): [number, number] => {
    const start = tileStart(tileNumber, tile[d]!, apart[d]!);
    return forward
      ? [start * by - padding, (start + span) * by - padding + reach]
      : [Math.ceil((start + padding - reach) / by), Math.floor((start + span + padding) / by)];
  };
  const count = ((forward ? span * by : span / by) + reach / (forward ? 1 : by)) / step + 1;
  return {
    share: Math.min(1, g.filterSize[d]! / count),
    placesOf(tileNumber: number): number[] {
      const [begin, end] = ends(tileNumber);
      const places: number[] = [];
      for (let at = begin; at <= end; at += step) {
        if (at >= 0 && at < size) places.push(at * stride);
      }
      return places;
    },
  };
}
