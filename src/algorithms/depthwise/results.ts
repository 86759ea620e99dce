import { stagedBytes } from "../../kernels/depthwise/convolve.ts";
import {
  type DepthwiseLoop,
  depthwiseRounds,
  type DepthwiseShape,
  loopTurns,
  resultWidth,
  sourceWidth,
} from "../../kernels/depthwise/shape.ts";
import { operandTensors, resultTensor } from "../../problem/conv_problem.ts";
import { stridesInLayout } from "../../tensor/layout.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { deviceOf } from "../device/h200.ts";
import { groupOf, stridesOf } from "../geometry.ts";
import { isSoftware, type PlanRequest } from "../request.ts";
import { operandBytes, partialBytes, resultElements, tensorElements } from "../tensors.ts";
import {
  depthwiseAxes,
  depthwiseStrides,
  depthwiseVector,
  depthwiseWalk,
  filterBytes,
  lanesOf,
  loadsFours,
  mostResults,
  runAxis,
  runLength,
  sharingOf,
  SHORT_RUN,
  SMALL_GROUP,
  THREADS,
  threadsOf,
  threeOf,
} from "./geometry.ts";

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
/** Channels that a thread takes together at most: each with a run of places, or with one place. And sums that it then holds. */
const MOST_OWN = { run: 4, place: 16 };
const SUMS_OWN = 64;
/** Sums of each of two columns that it then holds at most. */
const SUMS_PAIRED = 16;
/** Places that the rows of pairs have at least, so that a warp's loads meet two rows, and taps with which they pay in shorter rows too. */
const PAIRED = { places: 48, taps: 5 };
/** Bytes of workgroup memory for filters, so that several workgroups have room. */
const STAGED_BYTES = 16_384;

/**
 * Channels of a group that a thread takes together, so that it loads places once for all of them: a divisor of the group's, or twice as
 * many and more where threads have some twice.
 */
function ownChannels(results: number, vector: DepthwiseShape["vector"], most: number): number {
  if (vector === "channels") return 1;
  let divisor = Math.max(1, Math.min(most, results));
  while (results % divisor > 0) divisor--;
  const wide = Math.ceil(results / Math.ceil(results / most));
  return wide >= 2 * divisor ? wide : divisor;
}

/** Forward or backward-data as one kernel does it. */
export function depthwiseShape(request: PlanRequest): DepthwiseShape {
  const { problem, layout } = request;
  const op = problem.op === "fwd" ? "fwd" : "bwd-data";
  const { vector, width } = depthwiseVector(request);
  const source = depthwiseStrides(request, operandTensors(op)[0], width);
  const three = depthwiseAxes(problem, source, op === "fwd" ? "forward" : "backward");
  const group = groupOf(request);
  const channelsOfGroup = op === "fwd" ? group.outputs : group.inputs;
  const alongRow = runAxis(request, three);
  // In one row runs of neighbouring threads lie apart; many channels of one place make up for loading it alone.
  const many = ownChannels(channelsOfGroup, vector, MOST_OWN.place);
  const dense = op === "fwd" || three[2]!.stride === 1;
  const apart = layout === "nchw" && alongRow === 2 && dense;
  const run = apart && many > MOST_OWN.run ? 3 : alongRow;
  const { axes, along, widen, walked } = depthwiseWalk(request, three, run);
  const unit = op === "bwd-data" ? along.stride : 1;
  const channels = op === "fwd" ? problem.outChannels : problem.inChannels;
  const lanes = lanesOf(request, channels);
  const sharing = sharingOf(request);
  const filter = filterAccess(request, lanes, width);
  const own = filter.staged
    ? 1
    : layout === "nchw" && run === 3
    ? many
    : ownChannels(channelsOfGroup, vector, MOST_OWN.run);
  const channelThreads = problem.groups * Math.ceil(channelsOfGroup / own);
  const ownLanes = lanesOf(request, channelThreads);
  const sums = width / sourceWidth({ vector });
  const result = depthwiseStrides(
    request,
    resultTensor(op),
    resultWidth({ op, group, vector, own, sharing }),
  );
  const kind = isSoftware(request) ? "software" : "device";
  const products = along.taps * own * sourceWidth({ vector });
  const { multiprocessors, threadResults } = deviceOf(request);
  const most = Math.max(
    1,
    Math.min(
      mostResults(request, along, run),
      Math.floor(Math.min(SUMS_OWN, threadResults) / (own * sums)),
      Math.ceil(ROUND[kind] / products),
    ),
  );
  const threadsWith = (results: number) =>
    Math.ceil(along.places / results) * problem.batch * channelThreads / sums * sharing *
    axes.reduce((all, { places }, d) => d === run ? all : all * places, 1);
  let results = runLength(along.places, most, unit);
  // Of filters that are ordered first those of one channel are not cut.
  const cut = cutsSources(request) && (vector === "sources" || !packsFilter(request));
  // Of small problems more threads, so that every scheduler of a multiprocessor has a warp.
  while (
    results > Math.max(unit, cut ? SHORT_RUN.results : 1) &&
    threadsWith(results) < multiprocessors * THREADS / 2
  ) {
    results = unit * Math.ceil(results / unit / 2);
  }
  const shape = {
    ...walked,
    op,
    channels,
    vector,
    lanes: ownLanes,
    threads: threadsOf(ownLanes, sharing),
    sharing,
    results,
    own,
    source,
    result: { ...result, axes: widen(result.axes) },
    filter: { ...filter, axes: widen(filter.axes) },
  } as const;
  const loop = loopOf({ ...shape, columns: 1 }, kind);
  const threads = threadsWith(results);
  const columns = takesPairs(request, shape, loop, threads) ? 2 as const : 1 as const;
  const looped = { ...shape, columns, loop };
  const segments = cut ? segmentsOf(request, loopTurns(looped), threads / columns) : 1;
  return { ...looped, segments };
}

/**
 * Whether threads take two columns: of halves that are loaded one at a time, which then are loaded and converted two thirds as often, where
 * all taps of the columns' axis stand in the text, and threads are left for all schedulers. Rows are long or taps many: with 3 taps and 7 to 28
 * places a warp's loads, two places apart, meet more lines than pairs save (0.5 to 0.85 of the speed on an H200, else 1.03 to 1.5).
 */
function takesPairs(
  request: PlanRequest,
  { axes, run, vector, lanes, results, own }: Pick<
    DepthwiseShape,
    "axes" | "run" | "vector" | "lanes" | "results" | "own"
  >,
  loop: DepthwiseLoop,
  threads: number,
): boolean {
  const { taps, stride, dilation, places } = axes[2]!;
  const enough = threads >= 2 * deviceOf(request).multiprocessors * THREADS;
  return operandBytes(request) === 2 && request.layout === "nchw" && vector === "none" &&
    lanes === 0 && run === 1 && loop.over !== "rounds" && enough && results * own <= SUMS_PAIRED &&
    stride === 1 && dilation === 1 && taps > 1 &&
    (places >= PAIRED.places || places > 1 && taps >= PAIRED.taps);
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
function cutsSources({ problem, schedule: { splits } = {} }: PlanRequest): boolean {
  const { inputs, outputs } = groupOf({ problem });
  const sources = problem.op === "fwd" ? inputs : outputs;
  return resultElements(problem) > 0 && (splits !== undefined || sources > SMALL_GROUP);
}

/** Segments of a kernel's loop: where places are few, enough that all multiprocessors have work. */
function segmentsOf(request: PlanRequest, turns: number, threads: number): number {
  const { problem, maxWorkspaceBytes = Infinity } = request;
  // Where places of a warp lie a pixel apart, more warps would drive each other's lines out of the cache.
  const apart = depthwiseVector(request).vector === "sources" && sharingOf(request) === 1;
  const each = THREADS_WANTED[apart ? "sources" : "single"];
  const wanted = Math.floor(deviceOf(request).multiprocessors * each / threads);
  const partials = partialBytes(request) * resultElements(problem);
  const packed = packsFilter(request) ? filterBytes(request) : 0;
  const source = tensorElements(problem, operandTensors(problem.op)[0]);
  const room = Math.floor(
    Math.min(maxWorkspaceBytes - packed, PARTIAL_SHARE * source * operandBytes(request)) /
      partials,
  );
  const most = Math.min(wanted, Math.floor(turns / LEAST_TURNS), MOST_SEGMENTS, room);
  const segments = Math.max(1, Math.min(turns, request.schedule?.splits ?? most));
  // What a whole number of turns each leaves empty is no segment.
  return Math.ceil(turns / Math.ceil(turns / segments));
}

/** Whether a request's filter is read in the order [taps][channels], into which a pass brings it. */
export function packsFilter(request: PlanRequest): boolean {
  const { problem } = request;
  if (problem.op === "bwd-filter" || request.layout !== "nhwc") return false;
  if (depthwiseVector(request).vector === "sources") {
    return sharingOf(request) > 1 && !loadsFours(request);
  }
  if (groupOf(request).inputs > 1) return false;
  const [channel] = stridesOf(request, "filter");
  if (channel === 1) return false;
  const channels = problem.op === "fwd" ? problem.outChannels : problem.inChannels;
  const { width } = depthwiseVector(request);
  const bytes = stagedBytes(elementCount(problem.filterSize), lanesOf(request, channels), width);
  const several = problem.op === "bwd-data" && problem.outChannels > problem.groups;
  const most = Math.min(STAGED_BYTES, request.limits.maxComputeWorkgroupStorageSize);
  return several || bytes > most;
}

/** A filter as it is packed for threads that share sources: four of those are a load, then other channels, then taps. */
function packedFours({ problem }: PlanRequest): DepthwiseShape["filter"] {
  const { inputs } = groupOf({ problem });
  const [sources, others] = problem.op === "fwd"
    ? [inputs, problem.outChannels]
    : [problem.outChannels, inputs];
  const far = sources / 4;
  const [channel, input] = problem.op === "fwd" ? [far, 1] : [1, far];
  const taps = stridesInLayout([1, 1, ...problem.filterSize], "kcrs").slice(2);
  const axes = taps.map((stride, d) => problem.filterSize[d] === 1 ? 0 : stride * others * far);
  return { staged: false, vector: true, channel, input, axes: threeOf(axes, 0) };
}

/** How threads reach the filter: neighbouring channels should be neighbours for lanes. */
function filterAccess(request: PlanRequest, lanes: number, width: 1 | 4): DepthwiseShape["filter"] {
  const { problem } = request;
  const [channel, input, ...axes] = stridesOf(request, "filter");
  const grouped = groupOf(request).inputs > 1;
  if (depthwiseVector(request).vector === "sources") {
    if (packsFilter(request)) return packedFours(request);
    // Four channels of a filter are one load where they lie together.
    const vector = loadsFours(request);
    const unit = vector ? 4 : 1;
    const far = (stride: number) => stride === 1 ? 1 : stride / unit;
    return {
      staged: false,
      vector,
      channel: problem.outChannels === 1 ? 0 : far(channel!),
      input: far(input!),
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
