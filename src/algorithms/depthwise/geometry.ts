import { elementsOf } from "../../elements/elements.ts";
import type { Axis } from "../../kernels/axes.ts";
import { stagedBytes } from "../../kernels/depthwise/convolve.ts";
import {
  type DepthwiseGroup,
  type DepthwiseLoop,
  type DepthwiseShape,
  type DepthwiseStrides,
  resultWidth,
  sourceWidth,
} from "../../kernels/depthwise/shape.ts";
import { depthwiseRounds, loopTurns } from "../../kernels/depthwise/taps.ts";
import {
  depthwiseFilterBlocks,
  type DepthwiseFilterShape,
  depthwiseUnits,
} from "../../kernels/depthwise/gradient.ts";
import type { SizeMode } from "../../kernels/module.ts";
import {
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../../problem/conv_problem.ts";
import { stridesInLayout } from "../../tensor/layout.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { deviceOf } from "../device/h200.ts";
import { isSoftware, type PlanRequest } from "../request.ts";
import { operandBytes, partialBytes, resultElements } from "../tensors.ts";

/** Results of a run: enough that a load is worth several products, few enough that all sums stay in registers. */
const RUN = 8;
/** The same forward, where strides or long filters make a run of vectors reach far: more threads hide more. */
const SHORT_RUN = { taps: 5, results: 4 };
/** The same where filters are so long that loads of their taps count, and values are single. */
const LONG_RUN = { taps: 7, results: 16 };
/** Taps of a run's axis, and its stride in backward-data, that a kernel's text takes. */
const MOST_TAPS = 64;
const MOST_STRIDE = 16;
/**
 * Multiply-adds that stand in a kernel's text one after the other, and those of a loop's turn over the channels that a result
 * sums; of software devices, whose compilers are slow.
 */
const UNROLLED = { device: 256, software: 64 };
const TURN = { device: 512, software: 64 };
/** The same of a round: single taps of other axes, and one source channel or vector of them. */
const ROUND = { device: 1024, software: 64 };
/** Rounds, each with indices of its own, that stand in a text: SwiftShader takes gigabytes for more. */
const ROUNDS = { device: Infinity, software: 12 };
/** Source channels of a turn at most: their loads are on their way together. */
const MOST_TOGETHER = 4;
/** Turns that each segment of few places should have, segments at most, and threads that a multiprocessor should have. */
const LEAST_TURNS = 4;
const MOST_SEGMENTS = 16;
const THREADS_WANTED = { single: 1024, sources: 256 };
/** Of the source's bytes what partial results may have. */
const PARTIAL_SHARE = 0.25;
/** Neighbouring channels that the threads of a workgroup take: as vectors, one by one, and where they share taps. */
const LANES = { vectors: 16, single: 32, sources: [8, 4, 2, 1] };
const THREADS = 256;
/** Sums that a thread of backward-filter holds: of vectors, of single elements, and of software devices. */
const SUMS = { vectors: 28, single: 64, software: 8 };
/** Channels that a thread takes together at most, and sums that it then holds. */
const MOST_OWN = 4;
const SUMS_OWN = 64;
/** Workgroups that a multiprocessor of backward-filter should have: of vectors, whose sums fill its registers, and of single elements. */
const WORKGROUPS = { vectors: 2, single: 4 };
/** Runs of places that a thread of it should have at least. */
const LEAST_UNITS = 2;
/** Runs of places that a thread has at most: a software device stops long loops. */
const MOST_UNITS = 50_000;
/** Segments that one pass sums; of more, two do. */
const SUMMED = 32;
/** Channels that a group has at most to be small. */
export const SMALL_GROUP = 32;
/** Bytes of workgroup memory for filters, so that several workgroups have room. */
const STAGED_BYTES = 16_384;

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
function threeOf<T>(values: readonly T[], unit: T): T[] {
  return [...Array.from({ length: 3 - values.length }, () => unit), ...values];
}

/** Channels of a group. */
export function groupOf({ problem }: Pick<PlanRequest, "problem">): DepthwiseGroup {
  const { inChannels, outChannels, groups } = problem;
  return { inputs: inChannels / groups, outputs: outChannels / groups };
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
  { problem, layout }: PlanRequest,
  which: ConvTensor,
  width: 1 | 4,
): DepthwiseStrides {
  const strides = stridesInLayout(tensorShape(problem, which), layout);
  // What a vector lies along has stride 1 in both units.
  const [image, channel, ...axes] = strides.map((stride) => stride === 1 ? 1 : stride / width);
  return { image: image!, channel: channel!, axes: threeOf(axes, 0) };
}

/** The problem's axes, three of them, between its output and its input or the other way around. */
export function depthwiseAxes(
  problem: ConvProblem,
  source: DepthwiseStrides,
  back = false,
): Axis[] {
  const rank = problem.filterSize.length;
  const places = back ? problem.inputSize : problem.outputSize;
  const sizes = back ? problem.outputSize : problem.inputSize;
  const own = problem.filterSize.map((taps, d): Axis => ({
    places: places[d]!,
    taps,
    size: sizes[d]!,
    stride: problem.stride[d]!,
    padding: problem.paddingBegin[d]!,
    dilation: problem.dilation[d]!,
    sourceStride: source.axes[3 - rank + d]!,
  }));
  return threeOf(own, UNIT);
}

/** How many threads of a workgroup take neighbouring channels: what leaves the fewest idle. */
export function channelLanes(vectors: number, most: number): number {
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

/** Threads of a workgroup with so many lanes. */
export function threadsOf(lanes: number): number {
  return lanes === 0 ? THREADS : lanes * Math.floor(THREADS / lanes);
}

/** A run of about `most` results, a multiple of `unit`, so that runs fill `places` well. */
function runLength(places: number, most: number, unit: number): number {
  const whole = Math.max(unit, Math.floor(most / unit) * unit);
  const runs = Math.max(1, Math.ceil(places / whole));
  return unit * Math.max(1, Math.ceil(Math.ceil(places / runs) / unit));
}

/** The axis along which a thread makes several results; 3 for none. */
function runAxis(request: PlanRequest, axes: readonly Axis[]): number {
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
function mostResults(request: PlanRequest, { taps, stride }: Axis, run: number): number {
  const { vector, width: loaded } = depthwiseVector(request);
  const width = vector === "sources" ? 1 : loaded;
  const far = stride > 1 || width === 4 && taps >= SHORT_RUN.taps && taps < LONG_RUN.taps;
  if (request.problem.op === "fwd" && far && !isSoftware(request)) return SHORT_RUN.results;
  const long = width === 1 && taps >= LONG_RUN.taps && request.problem.op !== "bwd-filter";
  // Neighbouring threads' runs lie apart where they go along the innermost axis.
  const most = request.layout === "nchw" && run === 2 ? RUN / 2 : long ? LONG_RUN.results : RUN;
  return most;
}

/** Channels of a group that a thread takes together, so that it loads places once for all of them. */
function ownChannels(results: number, vector: DepthwiseShape["vector"], staged: boolean): number {
  if (vector === "channels" || staged) return 1;
  for (let own = MOST_OWN; own > 1; own--) if (results % own === 0) return own;
  return 1;
}

/** Forward or backward-data as one kernel does it. */
export function depthwiseShape(request: PlanRequest, mode: SizeMode): DepthwiseShape {
  const { problem, layout } = request;
  const op = problem.op === "fwd" ? "fwd" : "bwd-data";
  const { vector, width } = depthwiseVector(request);
  const source = depthwiseStrides(request, operandTensors(op)[0], width);
  const three = depthwiseAxes(problem, source, op === "bwd-data");
  const run = runAxis(request, three);
  // A kernel without runs has them along an axis of one place.
  const axes = run === 3 ? [...three, UNIT] : three;
  const along = axes[run]!;
  const unit = op === "bwd-data" ? along.stride : 1;
  const channels = op === "fwd" ? problem.outChannels : problem.inChannels;
  const group = groupOf(request);
  const lanes = lanesOf(request, channels);
  const filter = filterAccess(request, lanes, width);
  const own = ownChannels(op === "fwd" ? group.outputs : group.inputs, vector, filter.staged);
  const sums = width / sourceWidth({ vector });
  const result = depthwiseStrides(request, resultTensor(op), resultWidth({ vector, own }));
  const kind = isSoftware(request) ? "software" : "device";
  const products = along.taps * own * sourceWidth({ vector });
  const most = Math.max(
    1,
    Math.min(
      mostResults(request, along, run),
      Math.floor(SUMS_OWN / (own * sums)),
      Math.ceil(ROUND[kind] / products),
    ),
  );
  const { multiprocessors } = deviceOf(request);
  const threadsWith = (results: number) =>
    Math.ceil(along.places / results) * problem.batch * channels / sums / own *
    axes.reduce((all, { places }, d) => d === run ? all : all * places, 1);
  let results = runLength(along.places, most, unit);
  // A filter that is ordered first has one channel.
  const cut = cutsSources(request) && !packsFilter(request);
  // Of small problems more threads, so that every scheduler of a multiprocessor has a warp.
  while (
    results > Math.max(unit, cut ? SHORT_RUN.results : 1) &&
    threadsWith(results) < multiprocessors * THREADS / 2
  ) {
    results = unit * Math.ceil(results / unit / 2);
  }
  const shape = {
    op,
    axes,
    images: problem.batch,
    channels,
    group,
    vector,
    lanes: lanes === 0 ? 0 : lanesOf(request, channels / own),
    threads: threadsOf(lanes === 0 ? 0 : lanesOf(request, channels / own)),
    run,
    results,
    own,
    order: [...(run === 2 ? [1, 2, 0] : [2, 1, 0]), ...(run === 3 ? [3] : [])],
    imagesFirst: layout === "chwn",
    source,
    result: run === 3 ? { ...result, axes: [...result.axes, 0] } : result,
    filter: run === 3 ? { ...filter, axes: [...filter.axes, 0] } : filter,
    mode,
    elements: elementsOf(request),
  } as const;
  const loop = loopOf(shape, kind);
  const looped = { ...shape, loop };
  const segments = cut ? segmentsOf(request, loopTurns(looped), threadsWith(results)) : 1;
  return { ...looped, segments };
}

/** What stands in a kernel's text, and what its loop runs over. */
function loopOf(
  shape: Omit<DepthwiseShape, "loop" | "segments">,
  kind: "device" | "software",
): DepthwiseLoop {
  const { sources, hits, products } = depthwiseRounds(shape);
  const each = hits * products;
  const rounds = ROUNDS[kind];
  if (sources * each <= UNROLLED[kind] && sources * hits <= rounds) return { over: "nothing" };
  if (sources === 1 || each > TURN[kind] || hits > rounds) return { over: "rounds" };
  let together = 1;
  while (
    sources % (2 * together) === 0 && 2 * together <= MOST_TOGETHER &&
    2 * together * each <= UNROLLED[kind] && 2 * together * hits <= rounds
  ) together *= 2;
  return { over: "sources", together };
}

/** Whether the channels that a result sums are cut into segments: as asked, or where there are more than a small group has. */
function cutsSources({ problem, splits }: PlanRequest): boolean {
  const { inputs, outputs } = groupOf({ problem });
  const sources = problem.op === "fwd" ? inputs : outputs;
  return resultElements(problem) > 0 && (splits !== undefined || sources > SMALL_GROUP);
}

/** Segments of a kernel's loop: where places are few, enough that all multiprocessors have work. */
function segmentsOf(request: PlanRequest, turns: number, threads: number): number {
  const { problem, maxWorkspaceBytes = Infinity } = request;
  // Where places of a warp lie a pixel apart, more warps would drive each other's lines out of the cache.
  const each = THREADS_WANTED[depthwiseVector(request).vector === "sources" ? "sources" : "single"];
  const wanted = Math.floor(deviceOf(request).multiprocessors * each / threads);
  const partials = partialBytes(request) * resultElements(problem);
  const source = elementCount(tensorShape(problem, operandTensors(problem.op)[0]));
  const room = Math.floor(
    Math.min(maxWorkspaceBytes, PARTIAL_SHARE * source * operandBytes(request)) / partials,
  );
  const most = Math.min(wanted, Math.floor(turns / LEAST_TURNS), MOST_SEGMENTS, room);
  const segments = Math.max(1, Math.min(turns, request.splits ?? most));
  // What a whole number of turns each leaves empty is no segment.
  return Math.ceil(turns / Math.ceil(turns / segments));
}

/** Whether a request's filter is read in the order [taps][channels], into which a pass brings it. */
export function packsFilter(request: PlanRequest): boolean {
  const { problem } = request;
  if (problem.op === "bwd-filter" || request.layout !== "nhwc") return false;
  if (groupOf(request).inputs > 1 || depthwiseVector(request).vector === "sources") return false;
  const [channel] = stridesInLayout(tensorShape(problem, "filter"), request.filterLayout);
  if (channel === 1) return false;
  const channels = problem.op === "fwd" ? problem.outChannels : problem.inChannels;
  const { width } = depthwiseVector(request);
  const bytes = stagedBytes(
    elementCount(problem.filterSize),
    lanesOf(request, channels),
    width,
  );
  const several = problem.op === "bwd-data" && problem.outChannels > problem.groups;
  const most = Math.min(STAGED_BYTES, request.limits.maxComputeWorkgroupStorageSize);
  return several || bytes > most;
}

/** How threads reach the filter: neighbouring channels should be neighbours for lanes. */
function filterAccess(
  request: PlanRequest,
  lanes: number,
  width: 1 | 4,
): DepthwiseShape["filter"] {
  const { problem } = request;
  const [channel, input, ...axes] = stridesInLayout(
    tensorShape(problem, "filter"),
    request.filterLayout,
  );
  const grouped = groupOf(request).inputs > 1;
  if (depthwiseVector(request).vector === "sources") {
    // Four channels of a filter are one load where they lie together.
    const vector = problem.op === "fwd" && input === 1;
    const unit = vector ? 4 : 1;
    return {
      staged: false,
      vector,
      channel: problem.outChannels === 1 ? 0 : channel! / unit,
      input: input!,
      axes: threeOf(axes.map((stride, d) => problem.filterSize[d] === 1 ? 0 : stride / unit), 0),
    };
  }
  const vector = lanes > 0 && width === 4;
  if (packsFilter(request)) {
    const taps = stridesInLayout([1, 1, ...problem.filterSize], "kcrs").slice(2);
    const strides = taps.map((stride) => stride * problem.outChannels / (vector ? 4 : 1));
    return { staged: false, vector, channel: 1, input: 0, axes: threeOf(strides, 0) };
  }
  const staged = lanes > 0 && channel !== 1 && !grouped;
  const unit = vector && !staged ? 4 : 1;
  return {
    staged,
    vector,
    channel: channel === 1 ? 1 : channel! / unit,
    input: grouped ? input! : 0,
    axes: threeOf(axes.map((stride, d) => problem.filterSize[d] === 1 ? 0 : stride / unit), 0),
  };
}

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

/** What a load of backward-filter takes, in products. */
const LOAD_PRODUCTS = 8;
/** What a value takes that the multiprocessors' shared cache answers, in products. */
const FAR_PRODUCTS = 18;

/** Of backward-filter: what a thread sums. */
interface FilterSums {
  readonly taps: DepthwiseFilterShape["taps"];
  readonly own: DepthwiseFilterShape["own"];
}

/** How much longer than its products backward-filter takes, by the loads of a thread that sums so much. */
export function gradientSlowness(
  request: PlanRequest,
  { stride, dilation }: Axis,
  places: number,
  { taps: { run, others }, own: { filters, inputs } }: FilterSums,
): number {
  const products = places * run * others * filters * inputs;
  const met = (places - 1) * stride + (run - 1) * dilation + 1;
  // Neighbouring threads' places lie a stride apart, but for lanes.
  const lines = request.layout === "nhwc" ? 1 : Math.min(stride, 8);
  const loads = filters * places + inputs * others * Math.min(met, places * run) * lines;
  const far = 1 / (run * others * inputs) + 1 / (run * others * filters);
  return Math.max(1 + LOAD_PRODUCTS * loads / products, FAR_PRODUCTS * far);
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
  mode: SizeMode,
): { readonly shape: DepthwiseFilterShape; readonly grouped: number } {
  const { problem, layout } = request;
  const { vector, width } = depthwiseVector(request);
  const input = depthwiseStrides(request, "input", width);
  const output = depthwiseStrides(request, "output", width);
  const three = depthwiseAxes(problem, input);
  const run = runAxis(request, three);
  const none = run === 3;
  const axes = none ? [...three, UNIT] : three;
  const along = axes[run]!;
  const otherTaps = axes.reduce((all, { taps }, d) => d === run ? all : all * taps, 1);
  const [channel, inputStride, ...strides] = stridesInLayout(
    tensorShape(problem, "filter"),
    request.filterLayout,
  );
  const widen = (own: readonly number[]) => none ? [...own, 0] : own;
  const most = isSoftware(request) ? SUMS.software : width === 4 ? SUMS.vectors : SUMS.single;
  const { taps, own } = filterSums(request, along, otherTaps, most);
  const perPlace = { ...along, taps: taps.run * taps.others };
  const places = runLength(along.places, mostResults(request, perPlace, run), 1);
  const walked = { axes, run, places, images: problem.batch, vector };
  const units = depthwiseUnits(walked);
  const channels = filterChannels(request);
  const vectors = channels / (vector === "channels" ? 4 : 1) / (own.filters * own.inputs);
  const threads = filterThreads(request, vectors, units);
  const shape = {
    ...walked,
    ...threads,
    channels,
    group: groupOf(request),
    order: [...(run === 2 ? [1, 2, 0] : [2, 1, 0]), ...(none ? [3] : [])],
    imagesFirst: layout === "chwn",
    taps,
    own,
    input: { ...input, axes: widen(input.axes) },
    output: { ...output, axes: widen(output.axes) },
    filter: { channel: channel!, input: inputStride!, axes: widen(threeOf(strides, 0)) },
    mode,
    elements: elementsOf(request),
  };
  const segments = request.splits ??
    segmentsFor(request, units / threads.walkers, depthwiseFilterBlocks(shape));
  const inTurn = segments > SUMMED ? Math.floor(Math.sqrt(segments)) : 1;
  const grouped = Math.floor(segments / inTurn);
  return {
    shape: { ...shape, segments: inTurn * grouped },
    grouped: inTurn === 1 ? 1 : grouped,
  };
}

/** Segments that give every multiprocessor enough workgroups, and every thread enough to do. */
function segmentsFor(request: PlanRequest, units: number, blocks: number): number {
  const { multiprocessors } = deviceOf(request);
  // Whole waves: a few workgroups more would wait for all others.
  const workgroups = WORKGROUPS[depthwiseVector(request).width === 4 ? "vectors" : "single"];
  const wanted = Math.floor(workgroups * multiprocessors / Math.max(1, blocks));
  // Threads with little to do are better than idle multiprocessors.
  const needed = Math.ceil(multiprocessors / Math.max(1, blocks));
  const worth = Math.floor(units / LEAST_UNITS);
  const most = Math.max(1, Math.floor(units));
  const least = Math.max(1, Math.ceil(units / MOST_UNITS));
  const { problem, maxWorkspaceBytes = Infinity } = request;
  const elements = Math.max(1, elementCount(tensorShape(problem, "filter")));
  const room = Math.floor(maxWorkspaceBytes / (partialBytes(request) * elements));
  // Of many segments a sixth is for the sums of groups of them.
  const fitting = room <= SUMMED ? room : Math.floor(room * 5 / 6);
  const useful = Math.min(wanted, most, Math.max(needed, worth), fitting);
  const segments = Math.max(least, 1, useful);
  // A second pass that sums them costs more than a few segments bring.
  return segments <= 2 * SUMMED ? Math.max(least, Math.min(segments, SUMMED)) : segments;
}
