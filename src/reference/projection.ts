/**
 * Random projections of whole results (Freivalds): Σ_k s_k·y_k over the channels k of a result equals one convolution
 * with the one filter Σ_k s_k·w_k, which costs a K-th of the whole.
 */
import {
  accumulationLength,
  type ConvProblem,
  type ConvTensor,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { stridesInLayout } from "../tensor/layout.ts";
import { elementCount } from "../tensor/tensor.ts";
import { gemmPlans } from "./gemm_plan.ts";
import { canonicalStrides, checkedOperand, geometryOf } from "./geometry.ts";
import { projectedWork } from "./jobs.ts";
import { mostWorkers, runAssignment, workerCount } from "./pool.ts";
import {
  type ChannelSums,
  type ChannelView,
  projectChannels,
  type ProjectedArray,
} from "./project_channels.ts";
import { type HostOperand, referenceConv, type ReferenceInputs } from "./reference.ts";
import { randomStream } from "./sample.ts";

/** Elements of a channel that its size is taken from, about. */
const ELEMENTS = 1024;
/** Weights stay within 2^±480, so that sums of their squares are finite. */
const LARGEST_EXPONENT = 480;

/** Root mean square of each channel, of some of its finite elements, spread over all of it. */
function channelRms(
  data: ProjectedArray,
  { outer, channels, places, offset, outerStride, channelStride, placeStride }: ChannelView,
): Float64Array {
  const total = outer * places;
  // An odd number of steps does not fall in with rows of a power of two.
  const step = Math.max(1, Math.floor(total / ELEMENTS)) | 1;
  const result = new Float64Array(channels);
  const values = new Float64Array(Math.ceil(total / step));
  for (let channel = 0; channel < channels; channel++) {
    const base = offset + channel * channelStride;
    for (let i = 0, at = 0; at < total; i++, at += step) {
      const place = at % places;
      values[i] = data[base + (at - place) / places * outerStride + place * placeStride]!;
    }
    result[channel] = rootMeanSquare(values);
  }
  return result;
}

/** Root mean square of what is finite, without overflow; 0 where nothing is. */
function rootMeanSquare(values: Float64Array): number {
  let most = 0;
  for (const value of values) {
    if (Number.isFinite(value)) most = Math.max(most, Math.abs(value));
  }
  if (most === 0) return 0;
  let squares = 0, count = 0;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    squares += (value / most) ** 2;
    count++;
  }
  return most * Math.sqrt(squares / count);
}

/**
 * Seeded weights of random signs, with magnitudes in [1, 2) over the power of two nearest to the channel's size: so
 * channels of unlike size count alike. A channel of zeros counts as the median one.
 */
function randomWeights(sizes: Float64Array, seed: number): Float64Array {
  const random = randomStream(seed);
  const nonzero = sizes.filter((size) => size > 0).sort();
  const median = nonzero[nonzero.length >> 1] ?? 1;
  return sizes.map((size) => {
    const sign = random() < 0.5 ? -1 : 1;
    return sign * (1 + random()) * powerOfTwo(1 / (size > 0 ? size : median));
  });
}

/** The power of two nearest to a number > 0. */
function powerOfTwo(value: number): number {
  const exponent = Math.round(Math.log2(value));
  return 2 ** Math.max(-LARGEST_EXPONENT, Math.min(LARGEST_EXPONENT, exponent));
}

/** Sums of `values` in groups of equally many. */
function groupSums(values: Float64Array, groups: number): Float64Array {
  const sums = new Float64Array(groups);
  const each = values.length / groups;
  values.forEach((value, i) => sums[Math.floor(i / each)]! += value);
  return sums;
}

/** What the projection of a right result is, and how its rounding errors are spread. */
export interface Projection {
  /** Sizes of the arrays below: [what is outside, groups, places...]. */
  readonly shape: readonly number[];
  /** Results that are added up in a place. */
  readonly members: number;
  /** Σ s·y of the reference. */
  readonly expected: Float64Array;
  /** Σ s²·Σ a²·b²: the variance of a place's rounding errors is in proportion. */
  readonly variances: Float64Array;
  /** Σ s²·(bias² + (β·C)² + residual²), where anything is added to the sums. */
  readonly additions?: Float64Array;
  /** Σ s² of the members of a place, in each group, or outside and group where these differ. */
  readonly weightSquares: Float64Array;
  /** The weights s of the channels, where a place is made of channels only. */
  readonly weights?: Float64Array;
  /** The same projection of a result, as it lies in memory. */
  project(result: ProjectedArray): ChannelSums;
  /** Canonical flat indices of the results that a place is made of. */
  indicesOf(place: number): Float64Array;
}

export interface ProjectionOptions {
  readonly seed: number;
  /** Most Workers to start, 0 for none; as many as cores where absent. */
  readonly workers?: number;
  /** Factor of the sums, before a bias is added; 1 where absent. */
  readonly factor?: number;
  /** Called with the done fraction, 0 to 1, now and then. */
  readonly onProgress?: (fraction: number) => void;
}

/** What is projected, and the layout of its result in memory. */
export interface ProjectionInputs extends ReferenceInputs {
  readonly result: HostOperand["layout"];
}

/**
 * Projects the reference of a convolution or gradient: over the output channels forward, the input channels in
 * backward-data, both in backward-filter; each group by itself. A bias is added where there is one, an activation is
 * not applied.
 *
 * @throws {TypeError} if an operand is missing or of another size.
 */
export async function projectConv(
  problem: ConvProblem,
  inputs: ProjectionInputs,
  options: ProjectionOptions,
): Promise<Projection> {
  return problem.op === "bwd-filter"
    ? await projectFilterGradient(problem, inputs, options)
    : await projectActivations(problem, inputs, options);
}

/** A tensor in memory as channels (those of `channelAxis`) and places. */
function channelView(
  shape: readonly number[],
  layout: HostOperand["layout"],
  channelAxis: 0 | 1 = 1,
): ChannelView {
  const strides = stridesInLayout(shape, layout);
  return {
    outer: shape[1 - channelAxis]!,
    channels: shape[channelAxis]!,
    places: elementCount(shape.slice(2)),
    offset: 0,
    outerStride: strides[1 - channelAxis]!,
    channelStride: strides[channelAxis]!,
    placeStride: strides.at(-1)!,
  };
}

/** What of a view lies outside in one group. */
function outerGroup(view: ChannelView, group: number, groups: number): ChannelView {
  const outer = view.outer / groups;
  return { ...view, outer, offset: view.offset + group * outer * view.outerStride };
}

function operandView(problem: ConvProblem, which: ConvTensor, operand: HostOperand): ChannelView {
  return channelView(tensorShape(problem, which), operand.layout);
}

async function projectActivations(
  problem: ConvProblem,
  inputs: ProjectionInputs,
  options: ProjectionOptions,
): Promise<Projection> {
  const { groups } = problem;
  const forward = problem.op === "fwd";
  const [which, over] = forward
    ? ["input", "outChannels"] as const
    : ["output", "inChannels"] as const;
  const data = checkedOperand(problem, which, inputs[which]);
  checkedOperand(problem, "filter", inputs.filter);
  const operand = inputs[which]!;
  const size = rootMeanSquare(channelRms(data, operandView(problem, which, operand))) *
    Math.sqrt(accumulationLength(problem));
  const filter = projectFilter(problem, inputs, size, options);

  // One output channel a group, of the filter that is left.
  const one = { ...problem, [over]: groups };
  const memory = canonicalStrides(one);
  const result = resultTensor(problem.op);
  const geometry = geometryOf(one, {
    ...memory,
    filter: stridesInLayout(tensorShape(one, "filter"), forward ? "krsc" : "crsk"),
    [which]: stridesInLayout(tensorShape(one, which), operand.layout),
  });
  const plans = gemmPlans(geometry, geometryOf(one, memory)[`${result}Strides`]);
  const shape = tensorShape(one, result);
  const count = elementCount(shape);
  const work = projectedWork(geometry, plans, count);
  const { values, magnitudes } = await runAssignment({
    geometry,
    plans,
    work,
    first: data,
    second: filter.dense,
    values: new Float64Array(count),
    magnitudes: new Float64Array(count),
  }, {
    workers: workerCount(work, options.workers ?? mostWorkers()),
    onProgress: options.onProgress,
  });
  const { weights } = filter;
  const area = elementCount(shape.slice(2));
  const each = problem[over] / groups;
  const bias = forward ? inputs.bias : undefined;
  const additions = bias === undefined ? undefined : addBias(bias, weights, groups, area, values);
  const view = channelView(tensorShape(problem, result), inputs.result);
  return {
    shape,
    members: each,
    expected: values,
    variances: magnitudes,
    ...(additions === undefined ? {} : { additions }),
    weightSquares: groupSums(weights.map((s) => s * s), groups),
    weights,
    project: (data) => projectChannels(data, view, weights, groups),
    indicesOf: (place) => {
      const at = place % area;
      const row = (place - at) / area;
      return Float64Array.from({ length: each }, (_, k) => (row * each + k) * area + at);
    },
  };
}

/** One value a group at each of its places; groups follow each other in turn. */
function everywhere(ofGroups: Float64Array, area: number, count: number): Float64Array {
  const result = new Float64Array(count);
  for (let start = 0, row = 0; start < count; start += area, row++) {
    result.fill(ofGroups[row % ofGroups.length]!, start, start + area);
  }
  return result;
}

/** Adds the projected bias; its squares come back, one a place. */
function addBias(
  bias: ArrayLike<number>,
  weights: Float64Array,
  groups: number,
  area: number,
  values: Float64Array,
): Float64Array {
  const own = weights.map((weight, channel) => weight * bias[channel]!);
  const sums = groupSums(own, groups);
  for (let start = 0, row = 0; start < values.length; start += area, row++) {
    const shift = sums[row % groups]!;
    for (let i = start; i < start + area; i++) values[i]! += shift;
  }
  return everywhere(groupSums(own.map((value) => value * value), groups), area, values.length);
}

/**
 * The weights, and Σ s·w followed by √Σ (s·w)², with the channels that are left as neighbours: [group][tap][C/g]
 * forward, [tap][K] in backward-data.
 *
 * @param size Of the other operand's values, times √L.
 * @param options Their factor is the filter's, too.
 */
function projectFilter(
  problem: ConvProblem,
  { filter, bias }: ReferenceInputs,
  size: number,
  { seed, factor = 1 }: ProjectionOptions,
): { weights: Float64Array; dense: Float64Array } {
  const { groups, op } = problem;
  const { data, layout } = filter!;
  const shape = tensorShape(problem, "filter");
  const forward = op === "fwd";
  const view = channelView(shape, layout, forward ? 0 : 1);
  const parts = forward
    ? [view]
    : Array.from({ length: groups }, (_, group) => outerGroup(view, group, groups));
  const sizes = Float64Array.from(parts.flatMap((part) => [...channelRms(data, part)]));
  // A large bias rounds as a sum of that size does.
  const scaled = size * Math.abs(factor);
  const shares = forward && bias !== undefined && scaled > 0
    ? sizes.map((own, channel) => Math.max(own, Math.abs(bias[channel]!) / (4 * scaled)))
    : sizes;
  const relative = randomWeights(shares, seed);
  const scale = powerOfTwo(1 / (scaled > 0 ? scaled : 1));
  const taps = view.places;
  const left = forward ? shape[1]! : shape[0]!;
  const half = groups * taps * (forward ? left : left / groups);
  const dense = new Float64Array(2 * half);
  parts.forEach((part, index) => {
    const own = relative.subarray(index * part.channels, (index + 1) * part.channels);
    const { sums, squares } = projectChannels(data, part, own, forward ? groups : 1);
    for (let i = 0; i < sums.length; i++) {
      const tap = i % taps;
      const row = (i - tap) / taps;
      const to = forward
        // [C/g][group][tap] to [group][tap][C/g]
        ? (row % groups * taps + tap) * left + Math.floor(row / groups)
        // [K/g][tap] to [tap][K]
        : tap * left + index * part.outer + row;
      dense[to] = sums[i]! * scale * factor;
      dense[half + to] = Math.sqrt(squares[i]!) * scale * Math.abs(factor);
    }
  });
  return { weights: relative.map((weight) => weight * scale), dense };
}

/** Projects the gradient over K and C: a filter gradient with one channel of each in a group. */
async function projectFilterGradient(
  problem: ConvProblem,
  inputs: ProjectionInputs,
  options: ProjectionOptions,
): Promise<Projection> {
  const { groups, inChannels, outChannels } = problem;
  const project = (which: "input" | "output", seed: number) => {
    const data = checkedOperand(problem, which, inputs[which]);
    const view = operandView(problem, which, inputs[which]!);
    const weights = randomWeights(channelRms(data, view), seed);
    return { weights, ...projectChannels(data, view, weights, groups) };
  };
  const x = project("input", options.seed);
  const dy = project("output", options.seed + 1);
  const one = { ...problem, inChannels: groups, outChannels: groups };
  const gradient = async (input: Float64Array, output: Float64Array) => {
    const layout = "nchw";
    const { values } = await referenceConv(one, {
      input: { data: input, layout },
      output: { data: output, layout },
    }, options.workers === undefined ? {} : { workers: options.workers });
    return values;
  };
  const expected = await gradient(x.sums, dy.sums);
  options.onProgress?.(0.5);
  const variances = await gradient(x.squares, dy.squares);
  options.onProgress?.(1);
  const taps = elementCount(problem.filterSize);
  const [C, K] = [inChannels / groups, outChannels / groups];
  const [t2, s2] = [x.weights, dy.weights]
    .map((weights) => groupSums(weights.map((s) => s * s), groups)) as [Float64Array, Float64Array];
  const view = channelView(tensorShape(problem, "filter"), inputs.result, 0);
  return {
    shape: [1, groups, ...problem.filterSize],
    members: C * K,
    expected,
    variances,
    weightSquares: t2.map((t, group) => t * s2[group]!),
    project: (data) => {
      // [C/g][group][tap], each row weighted and added up.
      const rows = projectChannels(data, view, dy.weights, groups);
      const sums = new Float64Array(groups * taps);
      const squares = new Float64Array(groups * taps);
      for (let i = 0; i < rows.sums.length; i++) {
        const to = i % sums.length;
        const t = x.weights[Math.floor(to / taps) * C + Math.floor(i / sums.length)]!;
        sums[to]! += t * rows.sums[i]!;
        squares[to]! += t * t * rows.squares[i]!;
      }
      return { sums, squares };
    },
    indicesOf: (place) => {
      const tap = place % taps;
      const group = (place - tap) / taps;
      return Float64Array.from(
        { length: C * K },
        (_, i) => (group * K * C + i) * taps + tap,
      );
    },
  };
}
