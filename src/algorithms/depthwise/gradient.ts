import { elementsOf } from "../../elements/elements.ts";
import type { Axis } from "../../kernels/axes.ts";
import {
  depthwiseFilterBlocks,
  type DepthwiseFilterShape,
  depthwiseUnits,
} from "../../kernels/depthwise/gradient.ts";
import type { SizeMode } from "../../kernels/module.ts";
import { tensorShape } from "../../problem/conv_problem.ts";
import { stridesInLayout } from "../../tensor/layout.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { deviceOf } from "../device/h200.ts";
import { isSoftware, type PlanRequest } from "../request.ts";
import { partialBytes } from "../tensors.ts";
import {
  depthwiseAxes,
  depthwiseStrides,
  depthwiseVector,
  groupOf,
  LANES,
  lanesOf,
  mostResults,
  RUN,
  runAxis,
  runLength,
  THREADS,
  threeOf,
  UNIT,
} from "./geometry.ts";

/** Sums that a thread of backward-filter holds: of vectors, of single elements, and of software devices. */
const SUMS = { vectors: 28, single: 64, software: 8 };
/** Workgroups that a multiprocessor of backward-filter should have: of vectors, whose sums fill its registers, and of single elements. */
const WORKGROUPS = { vectors: 2, single: 4 };
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
