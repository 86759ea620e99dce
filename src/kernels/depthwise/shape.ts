/** Shapes of kernels where few channels meet, and what follows from them. */
import { product, range } from "../lists.ts";
import type { Elements } from "../../elements/elements.ts";
import { type Axis, type axisSizes, gcd } from "../axes.ts";
import type { EpilogueStep } from "../epilogue.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";

/** Strides of a tensor in memory, in vectors. */
export interface DepthwiseStrides {
  readonly image: number;
  readonly channel: number;
  /** One a spatial axis. */
  readonly axes: readonly number[];
}

/** Channels of a group; a filter has as many channels as the group has inputs. */
export interface DepthwiseGroup {
  readonly inputs: number;
  readonly outputs: number;
}

/** Places of channels, and how threads take them. */
export interface DepthwisePlaces {
  /** The problem's, padded at the front to three, and a fourth of one place for kernels without runs. */
  readonly axes: readonly Axis[];
  readonly images: number;
  /** Channels of the result; of backward-filter those of all filters. */
  readonly channels: number;
  readonly group: DepthwiseGroup;
  /**
   * What four elements of a vector are: channels of source and result alike, images, channels of the source alone, which a
   * result sums, or nothing where single elements are loaded.
   */
  readonly vector: "channels" | "images" | "sources" | "none";
  /** The axis along which a thread takes several places at once. */
  readonly run: number;
  /** The order of axes in which places are given to threads, innermost first. */
  readonly order: readonly number[];
  /** Whether images count before places. */
  readonly imagesFirst: boolean;
}

/**
 * Forward and backward-data where a result has few channels of a group, or sums few. Backward-data counts places of the
 * input, and its source is the output's gradient.
 */
export interface DepthwiseShape extends DepthwisePlaces {
  readonly op: "fwd" | "bwd-data";
  /** Threads of a workgroup that take neighbouring channels of the same places; where 0, all take neighbouring places. */
  readonly lanes: number;
  readonly threads: number;
  /** Results of a thread along the run's axis; a multiple of the stride in backward-data. */
  readonly results: number;
  /**
   * Neighbouring threads that share a run: of the vectors of sources that its results sum each takes every so-manieth, and what
   * they have is added up in workgroup memory. 1 where a thread has all of them.
   */
  readonly sharing: number;
  /**
   * Neighbouring channels of its group that a thread has results of: of single elements or images, unless filters are staged. Where they
   * do not divide a group's, the last thread's begin earlier, and what it has twice it leaves to its neighbour.
   */
  readonly own: number;
  /**
   * Neighbouring places along the innermost axis that a thread makes a run of each for: what it loads for a tap of one serves the next
   * tap of the other, and both share taps.
   */
  readonly columns: 1 | 2;
  readonly loop: DepthwiseLoop;
  /** Parts into which the loop is cut; each leaves a partial result where there are several. */
  readonly segments: number;
  readonly source: DepthwiseStrides;
  readonly result: DepthwiseStrides;
  readonly filter: {
    /** Whether a workgroup's filters are in its memory, brought there in whole lines: lanes only. */
    readonly staged: boolean;
    /** Whether four channels are one load. */
    readonly vector: boolean;
    /** From one filter to the next, and from one of its channels. */
    readonly channel: number;
    readonly input: number;
    readonly axes: readonly number[];
  };
  readonly elements: Elements;
}

/**
 * What a kernel's loop runs over: nothing, where all products stand in its text; the source channels that a result sums, so
 * many (vectors of them) in a turn; or each of them with each tap of the other axes.
 */
export type DepthwiseLoop =
  | { readonly over: "nothing" }
  | { readonly over: "rounds" }
  | { readonly over: "sources"; readonly together: number };

/** Elements of a vector. */
export function vectorWidth({ vector }: Pick<DepthwisePlaces, "vector">): 1 | 4 {
  return vector === "none" ? 1 : 4;
}

/** Elements of a vector of results. */
export function resultWidth(
  shape: Pick<DepthwiseShape, "op" | "group" | "vector" | "own" | "sharing">,
): 1 | 4 {
  const { vector, own, sharing } = shape;
  if (vector !== "sources") return vectorWidth(shape);
  return own === 4 && sharing === 1 && !overlaps(shape) ? 4 : 1;
}

/** Result channels of a group. */
export function resultsOf({ op, group }: Pick<DepthwiseShape, "op" | "group">): number {
  return op === "fwd" ? group.outputs : group.inputs;
}

/** Threads that have a group's result channels. */
export function groupThreads(shape: Pick<DepthwiseShape, "op" | "group" | "own">): number {
  return Math.ceil(resultsOf(shape) / shape.own);
}

/** Whether the last thread of a group has channels of its neighbour's. */
export function overlaps(shape: Pick<DepthwiseShape, "op" | "group" | "own">): boolean {
  return resultsOf(shape) % shape.own > 0;
}

/** Channels of a vector. */
export function channelWidth({ vector }: Pick<DepthwisePlaces, "vector">): 1 | 4 {
  return vector === "channels" ? 4 : 1;
}

/** Images of a vector. */
export function imageWidth({ vector }: Pick<DepthwisePlaces, "vector">): 1 | 4 {
  return vector === "images" ? 4 : 1;
}

/** Source channels of a vector, of those that a result sums. */
export function sourceWidth({ vector }: Pick<DepthwisePlaces, "vector">): 1 | 4 {
  return vector === "sources" ? 4 : 1;
}

/** The axis of columns. */
export const INNERMOST = 2;

/** Axes but that of runs. */
export function otherAxes({ axes, run }: Pick<DepthwisePlaces, "axes" | "run">): number[] {
  return range(axes.length).filter((d) => d !== run);
}

/** WGSL of a tensor's strides. */
export function strideSizes(module: ModuleBuilder, tensor: DepthwiseStrides, prefix: string) {
  return {
    image: module.size(`${prefix}_image`, tensor.image),
    channel: module.size(`${prefix}_channel`, tensor.channel),
    axes: tensor.axes.map((stride, d) => module.size(`${prefix}_axis${d}`, stride)),
  };
}

/** `base + 2u`, `base - 1u`, `base`. */
export function plus(base: string, offset: number): string {
  return offset === 0 ? base : offset < 0 ? `${base} - ${-offset}u` : `${base} + ${offset}u`;
}

/** What enters a kernel's name of its groups: what of them its text knows; empty for one filter a channel. */
export function groupTraits({ inputs, outputs }: DepthwiseGroup): string[] {
  if (inputs === 1) return outputs === 1 ? [] : ["multiplied"];
  return outputs === 1 ? ["grouped1"] : ["grouped"];
}

/** Which taps of an axis a place meets: of backward-data every `step`-th, the first by the place's remainder. */
export function tapSteps({ stride, dilation }: Axis, op: DepthwiseShape["op"]) {
  if (op === "fwd") return { step: 1, shared: 1, back: dilation, inverse: 0 };
  const shared = gcd(stride, dilation);
  const step = stride / shared;
  const back = dilation / shared;
  return { step, shared, back, inverse: step === 1 ? 0 : inverseOf(back % step, step) };
}

/** Taps of an axis that a place meets at most. */
export function tapHits(axis: Axis, op: DepthwiseShape["op"]): number {
  return Math.ceil(axis.taps / tapSteps(axis, op).step);
}

/** What rounds follow from. */
type Rounds = Pick<
  DepthwiseShape,
  "op" | "axes" | "run" | "results" | "own" | "group" | "vector" | "sharing" | "columns"
>;

/**
 * How often a thread runs over its run of results: for each of the source channels (vectors of them) that it sums, and each tap
 * of the other axes; and the multiply-adds of each time.
 */
export function depthwiseRounds(
  shape: Rounds,
): { readonly sources: number; readonly hits: number; readonly products: number } {
  const { op, axes, own } = shape;
  return {
    sources: Math.ceil(sourcesOf(shape) / shape.sharing),
    hits: product(otherAxes(shape).map((d) => tapHits(axes[d]!, op))),
    products: runProducts(shape).length * own * shape.columns * sourceWidth(shape),
  };
}

/** Source channels, or vectors of them, that a result sums. */
export function sourcesOf(
  shape: Pick<DepthwiseShape, "op" | "group" | "vector">,
): number {
  const { op, group } = shape;
  return (op === "bwd-data" ? group.outputs : group.inputs) / sourceWidth(shape);
}

/** Turns of a kernel's loop; 1 where there is none. */
export function loopTurns(shape: Rounds & Pick<DepthwiseShape, "loop">): number {
  const { sources, hits } = depthwiseRounds(shape);
  const { loop } = shape;
  if (loop.over === "nothing") return 1;
  return loop.over === "rounds" ? sources * hits : sources / loop.together;
}

/** The number below `modulus` whose product with `value` leaves 1, by Euclid; the two share no factor. */
function inverseOf(value: number, modulus: number): number {
  let [low, high, a, b] = [value, modulus, 1, 0];
  while (low > 1) {
    const times = Math.floor(high / low);
    [low, high, a, b] = [high - times * low, low, b - times * a, a];
  }
  return (a % modulus + modulus) % modulus;
}

/** Which result of a run a source's place gives to, by which tap: places count from the run's first. */
export interface RunProduct {
  readonly place: number;
  readonly result: number;
  readonly tap: number;
}

/** The products of a run, by the source's places; of backward-data with a stride only those that are. */
export function runProducts(
  { op, axes, run, results }: Pick<DepthwiseShape, "op" | "axes" | "run" | "results">,
): RunProduct[] {
  const { stride, dilation, padding, taps } = axes[run]!;
  const place = (result: number, tap: number) =>
    op === "fwd"
      ? result * stride + tap * dilation
      : (result + padding % stride - tap * dilation) / stride;
  return range(results)
    .flatMap((result) => range(taps).map((tap) => ({ place: place(result, tap), result, tap })))
    .filter(({ place }) => Number.isInteger(place))
    .sort((a, b) => a.place - b.place || a.tap - b.tap);
}

/** Every tap of the other axes (of backward-data every hit), of every channel that a result sums. */
export function roundIndices(others: readonly number[], hits: readonly number[], sums: number) {
  return others.reduce(
    (all, d) =>
      all.flatMap(({ hit, which }) =>
        range(hits[d]!).map((i) => ({ hit: Object.assign([...hit], { [d]: `${i}u` }), which }))
      ),
    range(sums).map((which) => ({ hit: [] as string[], which: `${which}u` })),
  );
}

/** What the text of a kernel is made of: its module, its sizes and strides as WGSL, and what follows from its shape. */
export interface DepthwiseText {
  readonly shape: DepthwiseShape;
  readonly module: ModuleBuilder;
  /** Axes but that of runs. */
  readonly others: readonly number[];
  readonly sized: ReturnType<typeof axisSizes>;
  readonly strides: {
    readonly source: ReturnType<typeof strideSizes>;
    readonly result: ReturnType<typeof strideSizes>;
    readonly filter: readonly string[];
  };
  readonly products: readonly RunProduct[];
  readonly source: TensorAccess;
  readonly taps: TensorAccess;
  readonly result: TensorAccess;
  /** What follows the sums. */
  readonly steps: readonly EpilogueStep[];
  /** Source channels, or vectors of them, that a result sums. */
  readonly sources: number;
}

/** Runs along the shape's run axis. */
export function runCount({ axes, run, results }: DepthwiseShape): number {
  return Math.ceil(axes[run]!.places / results);
}

/** Threads of places and segments (and of channels, where there are no lanes). */
export function placeThreads(shape: DepthwiseShape): number {
  const { axes, vector, images, lanes, segments } = shape;
  const places = product(
    otherAxes(shape).map((d) =>
      d === INNERMOST ? Math.ceil(axes[d]!.places / shape.columns) : axes[d]!.places
    ),
  );
  return places * runCount(shape) * Math.ceil(images / imageWidth({ vector })) * segments *
    (lanes === 0 ? channelVectors(shape) : 1);
}

/** Vectors of channels, or channels that a thread takes together. */
export function channelVectors(shape: DepthwiseShape): number {
  const threads = overlaps(shape) ? groupThreads(shape) / resultsOf(shape) : 1 / shape.own;
  return Math.round(shape.channels / channelWidth(shape) * threads);
}
