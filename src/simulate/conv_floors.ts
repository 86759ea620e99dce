import type { Floors } from "../accuracy/yardstick.ts";
import type { ConvProblem } from "../problem/conv_problem.ts";
import { type PlanArithmetic, tileStart } from "../problem/plan_arithmetic.ts";
import type { Geometry, HostArray, Triple } from "../reference/geometry.ts";
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
 * The floors of a convolution: by Cauchy and Schwarz Σ|a||b| ≤ √(Σa²)·√(Σb²), with the mean of Σa² over all windows that a tile's
 * transform has. Of a filter's gradient a tile is most of a channel's taps, and both sums are of whole channels. Undefined where sums are
 * plain.
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

/** Σ of squares of a tensor over all its places, added up by the kind that its first two axes' indices are of. */
function energies(
  data: HostArray,
  counts: readonly [number, number],
  sizes: Triple,
  strides: readonly number[],
  kind: (first: number, second: number) => number,
  kinds: number,
): Float64Array {
  const sums = new Float64Array(kinds);
  for (let i = 0; i < counts[0]; i++) {
    for (let j = 0; j < counts[1]; j++) {
      let sum = 0;
      eachPlace(sizes, strides, i * strides[0]! + j * strides[1]!, (at) => sum += square(data, at));
      sums[kind(i, j)]! += sum;
    }
  }
  return sums;
}

function eachPlace(
  [n0, n1, n2]: Triple,
  strides: readonly number[],
  base: number,
  visit: (at: number, place: number) => void,
): void {
  let place = 0;
  for (let a = 0; a < n0; a++) {
    for (let b = 0; b < n1; b++) {
      let at = base + a * strides[2]! + b * strides[3]!;
      for (let c = 0; c < n2; c++, at += strides[4]!) visit(at, place++);
    }
  }
}

/** By output and input channel. */
function gradientFloors(operands: ConvOperands, grid: Grid): Floors {
  const { geometry: g, first, second } = operands;
  const ins = g.groups * g.inChannels, outs = g.groups * g.outChannels;
  const channel = (_: number, c: number) => c;
  const x = energies(first, [g.batch, ins], g.inputSize, g.inputStrides, channel, ins);
  const dy = energies(second, [g.batch, outs], g.outputSize, g.outputStrides, channel, outs);
  return (index) => {
    const { group, place: [c], channel: k } = blockOf(operands, grid, index);
    return Math.sqrt(x[group * g.inChannels + c]! * dy[group * g.outChannels + k]!);
  };
}

/** Forward and backward-data, by tile and channel. */
function windowFloors(operands: ConvOperands, grid: Grid): Floors {
  const { geometry: g, first, second } = operands;
  const forward = g.op === "fwd";
  const [size, strides] = forward ? [g.inputSize, g.inputStrides] : [g.outputSize, g.outputStrides];
  const summed = forward ? g.inChannels : g.outChannels;
  const tiles = grid.tiles[0] * grid.tiles[1] * grid.tiles[2];
  const windows = new Float64Array(g.batch * g.groups * tiles);
  for (let image = 0; image < g.batch; image++) {
    for (let group = 0; group < g.groups; group++) {
      const squares = new Float64Array(size[0] * size[1] * size[2]);
      for (let c = group * summed; c < (group + 1) * summed; c++) {
        const base = image * strides[0]! + c * strides[1]!;
        eachPlace(size, strides, base, (at, place) => squares[place]! += square(first, at));
      }
      windows.set(tileWindows(g, grid, size, squares), (image * g.groups + group) * tiles);
    }
  }
  // Of a result's channel: K, or of backward-data C of each group.
  const filter = energies(
    second,
    [g.groups * g.outChannels, g.inChannels],
    g.filterSize,
    g.filterStrides,
    forward ? (k) => k : (k, c) => Math.floor(k / g.outChannels) * g.inChannels + c,
    g.groups * grid.channels,
  );
  return (index) => {
    const { group, place: [image, a, b, c], channel } = blockOf(operands, grid, index);
    const tile = (a * grid.tiles[1] + b) * grid.tiles[2] + c;
    const window = (image * g.groups + group) * tiles + tile;
    return Math.sqrt(windows[window]! * filter[group * grid.channels + channel]!);
  };
}

/** Of each tile the sum over its window, times the share that one output's taps are of it. */
function tileWindows(
  g: Geometry,
  { tile, tiles, apart }: Grid,
  size: Triple,
  squares: Float64Array,
): Float64Array {
  let values = squares;
  const sizes = [...size] as Triple;
  for (let d = 0; d < 3; d++) {
    const taps = (g.filterSize[d]! - 1) * g.dilation[d]! + 1;
    const [stride, padding] = [g.stride[d]!, g.padding[d]!];
    const step = apart[d]!;
    const start = (t: number) => tileStart(t, tile[d]!, step);
    const last = (t: number) => start(t) + (tile[d]! - 1) * step;
    // Of backward-data taps run backwards.
    const begin = (t: number) =>
      g.op === "fwd"
        ? start(t) * stride - padding
        : Math.ceil((start(t) + padding - (taps - 1)) / stride);
    const end = (t: number) =>
      g.op === "fwd"
        ? last(t) * stride - padding + taps
        : Math.floor((last(t) + padding) / stride) + 1;
    const inner = sizes.slice(d + 1).reduce((all, one) => all * one, 1);
    const [count, length] = [tiles[d]!, sizes[d]!];
    const outer = sizes.slice(0, d).reduce((all, one) => all * one, 1);
    const made = new Float64Array(outer * count * inner);
    for (let o = 0; o < outer; o++) {
      for (let t = 0; t < count; t++) {
        const from = begin(t) + step * Math.ceil(Math.max(0, -begin(t)) / step);
        const until = Math.min(length, end(t));
        const share = Math.min(1, g.filterSize[d]! / Math.max(1, (end(t) - begin(t)) / step));
        const to = (o * count + t) * inner;
        for (let p = from; p < until; p += step) {
          const at = (o * length + p) * inner;
          for (let i = 0; i < inner; i++) made[to + i]! += share * values[at + i]!;
        }
      }
    }
    values = made;
    sizes[d] = count;
  }
  return values;
}
