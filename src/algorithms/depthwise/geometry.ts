import { elementsOf } from "../../elements/elements.ts";
import type { Axis, Direction } from "../../kernels/axes.ts";
import {
  depthwiseFilterBlocks,
  type DepthwiseFilterShape,
  depthwiseUnits,
} from "../../kernels/depthwise/gradient.ts";
import type { DepthwiseShape, DepthwiseStrides } from "../../kernels/depthwise/shape.ts";
import type { ConvProblem, ConvTensor } from "../../problem/conv_problem.ts";
import { deviceOf } from "../device/h200.ts";
import { groupOf, spatialAxes, stridesOf } from "../geometry.ts";
import { isSoftware, type PlanRequest } from "../request.ts";
import { operandBytes, partialBytes, tensorElements } from "../tensors.ts";

/** Results of a run: enough that a load is worth several products, few enough that all sums stay in registers. */
export const RUN = 8;
/** The same forward, where strides or long filters make a run of vectors reach far: more threads hide more. */
export const SHORT_RUN = { taps: 5, results: 4 };
/** The same where filters are so long that loads of their taps count, and values are single. */
const LONG_RUN = { taps: 7, results: 16 };
/** Taps of a run's axis, and its stride in backward-data, that a kernel's text takes. */
const MOST_TAPS = 64;
const MOST_STRIDE = 16;
/** Neighbouring channels that the threads of a workgroup take: as vectors, one by one, and where they share taps. */
const LANES = { vectors: 16, single: 32, sources: [8, 4, 2, 1] };
export const THREADS = 256;
/** Threads of a workgroup whose sums go through its memory. */
const SHARING_THREADS = 128;
/** Neighbouring threads that share a run: enough to read a line together. */
const SHARING = { least: 4, most: 8 };
/** Channels that a group has at most to be small. */
export const SMALL_GROUP = 32;

/** A spatial axis that a problem lacks. */
const UNIT: Axis = {
  places: 1,
  taps: 1,
  size: 1,
  stride: 1,
  padding: 0,
  dilation: 1,
  sourceStride: 0,
};

/** Pads the sizes of a problem's axes at the front to those of three. */
export function threeOf<T>(values: readonly T[], unit: T): T[] {
  return [...Array.from({ length: 3 - values.length }, () => unit), ...values];
}

/** How many elements of which kind a load takes. */
export function depthwiseVector(
  { problem, layout }: PlanRequest,
): { readonly vector: DepthwiseShape["vector"]; readonly width: 1 | 4 } {
  const { op, inChannels, outChannels, groups, batch } = problem;
  const single = inChannels === groups && outChannels === groups;
  if (layout === "nhwc" && single && inChannels % 4 === 0) {
    return { vector: "channels", width: 4 };
  }
  const sources = (op === "fwd" ? inChannels : outChannels) / groups;
  if (layout === "nhwc" && op !== "bwd-filter" && sources % 4 === 0) {
    return { vector: "sources", width: 4 };
  }
  if (layout === "chwn" && batch % 4 === 0) return { vector: "images", width: 4 };
  return { vector: "none", width: 1 };
}

/** Strides of input or output in vectors of `width`, of three axes. */
export function depthwiseStrides(
  request: PlanRequest,
  which: ConvTensor,
  width: 1 | 4,
): DepthwiseStrides {
  const strides = stridesOf(request, which);
  // What a vector lies along has stride 1 in both units.
  const [image, channel, ...axes] = strides.map((stride) => stride === 1 ? 1 : stride / width);
  return { image: image!, channel: channel!, axes: threeOf(axes, 0) };
}

/** The problem's axes, three of them, between its output and its input or the other way around. */
export function depthwiseAxes(
  problem: ConvProblem,
  source: DepthwiseStrides,
  direction: Direction = "forward",
): Axis[] {
  const strides = source.axes.slice(3 - problem.filterSize.length);
  return threeOf(spatialAxes(problem, direction, [0, 0, ...strides]), UNIT);
}

/** What kernels of all operations have in common. A kernel without runs has them along a fourth axis, of one place. */
export function depthwiseWalk(request: PlanRequest, three: readonly Axis[], run: number) {
  const none = run === 3;
  const axes = none ? [...three, UNIT] : three;
  return {
    axes,
    along: axes[run]!,
    /** Strides along these axes, of three. */
    widen: (strides: readonly number[]) => none ? [...strides, 0] : strides,
    walked: {
      axes,
      run,
      images: request.problem.batch,
      group: groupOf(request),
      order: [...(run === 2 ? [1, 2, 0] : [2, 1, 0]), ...(none ? [3] : [])],
      imagesFirst: request.layout === "chwn",
      elements: elementsOf(request),
    },
  };
}

/** How many threads of a workgroup take neighbouring channels: what leaves the fewest idle. */
function channelLanes(vectors: number, most: number): number {
  if (vectors <= most) return Math.max(1, vectors);
  let best = most;
  const padded = (lanes: number) => Math.ceil(vectors / lanes) * lanes;
  for (let lanes = most; lanes >= most / 2; lanes--) {
    if (padded(lanes) < padded(best)) best = lanes;
  }
  return best;
}

/** Lanes of a request's channels; 0 where channels do not lie innermost. */
export function lanesOf(request: PlanRequest, channels: number): number {
  if (request.layout !== "nhwc") return 0;
  const { vector, width } = depthwiseVector(request);
  if (vector === "sources") return LANES.sources.find((lanes) => channels % lanes === 0)!;
  return channelLanes(channels / width, width === 4 ? LANES.vectors : LANES.single);
}

/** Threads of a workgroup with so many lanes, of whose threads so many share a run. */
export function threadsOf(lanes: number, sharing: number): number {
  if (lanes === 0) return THREADS;
  const together = lanes * sharing;
  return together * Math.max(1, Math.floor((sharing > 1 ? SHARING_THREADS : THREADS) / together));
}

/**
 * Neighbouring threads that share a run's sources, where a load brings four of them: so they read whole lines, which alone they would
 * read a place each. As many as leave the fewest idle in their last round. A CPU, which runs the threads of a workgroup one after the
 * other, has no lines to share; a filter that is to be packed wants its workspace.
 */
export function sharingOf(request: PlanRequest): number {
  const { problem, maxWorkspaceBytes = Infinity } = request;
  if (isSoftware(request) || depthwiseVector(request).vector !== "sources") return 1;
  const { inputs, outputs } = groupOf(request);
  const vectors = (problem.op === "fwd" ? inputs : outputs) / 4;
  if (vectors < SHARING.least) return 1;
  if (!loadsFours(request) && filterBytes(request) > maxWorkspaceBytes) return 1;
  const taken = (threads: number) => Math.ceil(vectors / threads) * threads;
  let best = SHARING.most;
  for (let threads = best - 1; threads >= SHARING.least; threads--) {
    if (taken(threads) < taken(best)) best = threads;
  }
  return best;
}

/** Whether four sources of a filter's tap lie together. */
export function loadsFours(request: PlanRequest): boolean {
  const [channel, input] = stridesOf(request, "filter");
  return (request.problem.op === "fwd" ? input : channel) === 1;
}

/** Bytes of a filter as it lies, and as it is packed. */
export function filterBytes(request: PlanRequest): number {
  return operandBytes(request) * tensorElements(request.problem, "filter");
}

/** A run of about `most` results, a multiple of `unit`, so that runs fill `places` well. */
export function runLength(places: number, most: number, unit: number): number {
  const whole = Math.max(unit, Math.floor(most / unit) * unit);
  const runs = Math.max(1, Math.ceil(places / whole));
  return unit * Math.max(1, Math.ceil(Math.ceil(places / runs) / unit));
}

/** The axis along which a thread makes several results; 3 for none. */
export function runAxis(request: PlanRequest, axes: readonly Axis[]): number {
  const { layout, problem } = request;
  const [, rows, columns] = axes as [Axis, Axis, Axis];
  // Backward-filter takes long filters in pieces.
  const long = ({ taps, stride }: Axis) =>
    (problem.op !== "bwd-filter" && taps > MOST_TAPS) ||
    (problem.op === "bwd-data" && stride > MOST_STRIDE);
  const fitting = (d: number) => long(axes[d]!) ? 3 : d;
  const across = layout === "nchw" || depthwiseVector(request).vector === "sources";
  if (!across) return fitting(columns.taps === 1 && rows.taps > 1 ? 1 : 2);
  // Neighbouring threads take neighbouring columns; where there is one row they would lie apart.
  if (rows.places > 1) return fitting(1);
  return columns.taps > 4 || columns.stride > 1 ? fitting(2) : 3;
}

/** Results that a run may have, or places that backward-filter takes at once. */
export function mostResults(request: PlanRequest, { taps, stride }: Axis, run: number): number {
  const { vector, width: loaded } = depthwiseVector(request);
  const width = vector === "sources" ? 1 : loaded;
  const far = stride > 1 || width === 4 && taps >= SHORT_RUN.taps && taps < LONG_RUN.taps;
  if (request.problem.op === "fwd" && far && !isSoftware(request)) return SHORT_RUN.results;
  const long = width === 1 && taps >= LONG_RUN.taps && request.problem.op !== "bwd-filter";
  // Neighbouring threads' runs lie apart where they go along the innermost axis.
  return request.layout === "nchw" && run === 2 ? RUN / 2 : long ? LONG_RUN.results : RUN;
}

/** Sums that a thread of backward-filter holds: of vectors, of single elements, and of software devices. */
const SUMS = { vectors: 28, single: 64, software: 8 };
/** Workgroups that a multiprocessor of backward-filter should have: of vectors, whose sums fill its registers, and of single elements. */
const WORKGROUPS = { vectors: 2, single: 4 };
/** Registers of a thread of it beside its sums: loaded values and places. */
const OTHER_REGISTERS = 50;
/** Least share of whole waves that its workgroups should fill. */
const FILLED = 0.85;
/** Runs of places that a thread of it should have at least. */
const LEAST_UNITS = 2;
/** Runs of places that a thread has at most: a software device stops long loops. */
const MOST_UNITS = 50_000;
/** Segments that one pass sums; of more, two do. */
const SUMMED = 32;
/** Channels of all filters. */
function filterChannels(request: PlanRequest): number {
  return request.problem.outChannels * groupOf(request).inputs;
}

/** Which threads of a workgroup share a channel of so many runs of places, and which take neighbouring channels. */
function filterThreads(request: PlanRequest, vectors: number, units: number) {
  const lanes = request.layout === "nhwc"
    ? lanesOf(request, vectors * depthwiseVector(request).width)
    : 0;
  if (lanes > 0) return { lanes, walkers: Math.floor(THREADS / lanes), lanesInner: true };
  let walkers = 32;
  while (walkers < THREADS && units >= 2 * LEAST_UNITS * walkers) walkers *= 2;
  return {
    lanes: Math.max(1, Math.min(vectors, THREADS / walkers)),
    walkers,
    lanesInner: false,
  };
}

/** The taps that a thread sums, in pieces that are alike. */
function filterTaps(runTaps: number, otherTaps: number, most: number) {
  const piece = (taps: number, most: number) => Math.ceil(taps / Math.ceil(taps / most));
  const run = piece(runTaps, most);
  return { run, others: piece(otherTaps, Math.max(1, Math.floor(most / run))) };
}

/** Of backward-filter: what a thread sums. */
interface FilterSums {
  readonly taps: DepthwiseFilterShape["taps"];
  readonly own: DepthwiseFilterShape["own"];
}

/**
 * How much longer than its products backward-filter takes, by the loads of a thread that sums so much.
 *
 * @param apart Parts of a warp that read places of their own, and with them lines.
 */
export function gradientSlowness(
  request: PlanRequest,
  { stride, dilation }: Axis,
  places: number,
  { taps: { run, others }, own: { filters, inputs } }: FilterSums,
  apart = 1,
): number {
  const products = places * run * others * filters * inputs;
  const met = (places - 1) * stride + (run - 1) * dilation + 1;
  // Neighbouring threads' places lie a stride apart, but for lanes.
  const lines = request.layout === "nhwc" ? 1 : Math.min(stride, 8);
  const loads = filters * places + inputs * others * Math.min(met, places * run) * lines;
  const far = 1 / (run * others * inputs) + 1 / (run * others * filters);
  const { gradientLoad, gradientFar } = deviceOf(request).shares;
  return Math.max(1 + gradientLoad * loads * apart / products, gradientFar * far);
}

/**
 * The taps that a thread sums, and the channels whose places it loads once for all of them: what takes the fewest loads a
 * product.
 */
function filterSums(
  request: PlanRequest,
  along: Axis,
  otherTaps: number,
  most: number,
): FilterSums {
  const { inputs, outputs } = groupOf(request);
  const single = { taps: filterTaps(along.taps, otherTaps, most), own: { filters: 1, inputs: 1 } };
  if (inputs * outputs === 1) return single;
  const divisors = (whole: number) =>
    Array.from({ length: Math.min(whole, most) }, (_, i) => i + 1).filter((d) => whole % d === 0);
  const choices = divisors(outputs).flatMap((filters) =>
    divisors(inputs).flatMap((perFilter) => {
      const room = Math.floor(most / (filters * perFilter));
      if (room < 1) return [];
      const taps = filterTaps(along.taps, otherTaps, room);
      const own = { filters, inputs: perFilter };
      return [taps.others, 1].map((others) => ({ taps: { run: taps.run, others }, own }));
    })
  );
  // Where channels lie innermost a warp's lanes should be neighbours among them.
  const enough = Math.min(LANES.single, filterChannels(request));
  const wide = ({ own }: FilterSums) =>
    request.layout !== "nhwc" || filterChannels(request) / (own.filters * own.inputs) >= enough;
  const slowness = (sums: FilterSums) => gradientSlowness(request, along, RUN, sums);
  return choices.filter(wide).reduce((a, b) => slowness(b) < slowness(a) ? b : a, single);
}

/** Backward-filter as one kernel does it, and how its segments are summed: at once, or in groups of `grouped` first. */
export function depthwiseFilterShape(
  request: PlanRequest,
): { readonly shape: DepthwiseFilterShape; readonly grouped: number } {
  const { problem } = request;
  const { vector, width } = depthwiseVector(request);
  const input = depthwiseStrides(request, "input", width);
  const output = depthwiseStrides(request, "output", width);
  const three = depthwiseAxes(problem, input);
  const run = runAxis(request, three);
  const { axes, along, widen, walked: walk } = depthwiseWalk(request, three, run);
  const otherTaps = axes.reduce((all, { taps }, d) => d === run ? all : all * taps, 1);
  const [channel, inputStride, ...strides] = stridesOf(request, "filter");
  const wanted = isSoftware(request) ? SUMS.software : width === 4 ? SUMS.vectors : SUMS.single;
  const most = Math.min(wanted, Math.floor(deviceOf(request).threadResults / width));
  const { taps, own } = filterSums(request, along, otherTaps, most);
  const perPlace = { ...along, taps: taps.run * taps.others };
  const places = runLength(along.places, mostResults(request, perPlace, run), 1);
  const walked = { ...walk, places, vector };
  const units = depthwiseUnits(walked);
  const channels = filterChannels(request);
  const vectors = channels / (vector === "channels" ? 4 : 1) / (own.filters * own.inputs);
  const threads = filterThreads(request, vectors, units);
  const shape = {
    ...walked,
    ...threads,
    channels,
    taps,
    own,
    input: { ...input, axes: widen(input.axes) },
    output: { ...output, axes: widen(output.axes) },
    filter: { channel: channel!, input: inputStride!, axes: widen(threeOf(strides, 0)) },
  };
  const segments = request.schedule?.splits ??
    segmentsFor(
      request,
      along,
      units / threads.walkers,
      depthwiseFilterBlocks(shape),
      width * taps.run * taps.others * own.filters * own.inputs,
    );
  const inTurn = segments > SUMMED ? Math.floor(Math.sqrt(segments)) : 1;
  const grouped = Math.floor(segments / inTurn);
  return {
    shape: { ...shape, segments: inTurn * grouped },
    grouped: inTurn === 1 ? 1 : grouped,
  };
}

/**
 * Segments that fill the device with workgroups of so many sums a thread. Of f32, and of strided runs, which wait for more loads, as many
 * workgroups whatever these are.
 */
function wantedSegments(
  request: PlanRequest,
  { stride }: Axis,
  blocks: number,
  sums: number,
): number {
  const { multiprocessors, registers } = deviceOf(request);
  const most = WORKGROUPS[depthwiseVector(request).width === 4 ? "vectors" : "single"];
  if (operandBytes(request) === 4 || stride > 1) return Math.floor(most * multiprocessors / blocks);
  const resident = Math.floor(registers / (THREADS * (sums + OTHER_REGISTERS)));
  const slots = Math.max(1, Math.min(most, resident)) * multiprocessors;
  const fillings = [1, 2].map((waves) => {
    const segments = Math.floor(waves * slots / blocks);
    return { segments, share: segments * blocks / (waves * slots) };
  });
  const [one, two] = fillings as [typeof fillings[0], typeof fillings[0]];
  return one.share >= FILLED || one.share >= two.share ? one.segments : two.segments;
}

/** Segments that give every multiprocessor enough workgroups, and every thread enough to do. */
function segmentsFor(
  request: PlanRequest,
  along: Axis,
  units: number,
  blocks: number,
  sums: number,
): number {
  const { multiprocessors } = deviceOf(request);
  // Whole waves: a few workgroups more would wait for all others.
  const wanted = wantedSegments(request, along, Math.max(1, blocks), sums);
  // Threads with little to do are better than idle multiprocessors.
  const needed = Math.ceil(multiprocessors / Math.max(1, blocks));
  const worth = Math.floor(units / LEAST_UNITS);
  const most = Math.max(1, Math.floor(units));
  const least = Math.max(1, Math.ceil(units / MOST_UNITS));
  const { problem, maxWorkspaceBytes = Infinity } = request;
  const elements = Math.max(1, tensorElements(problem, "filter"));
  const room = Math.floor(maxWorkspaceBytes / (partialBytes(request) * elements));
  // Of many segments a sixth is for the sums of groups of them.
  const fitting = room <= SUMMED ? room : Math.floor(room * 5 / 6);
  const useful = Math.min(wanted, most, Math.max(needed, worth), fitting);
  const segments = Math.max(least, 1, useful);
  // A second pass that sums them costs more than a few segments bring.
  return segments <= 2 * SUMMED ? Math.max(least, Math.min(segments, SUMMED)) : segments;
}
