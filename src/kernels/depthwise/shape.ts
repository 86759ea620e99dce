import type { Elements } from "../../elements/elements.ts";
import type { Axis } from "../axes.ts";
import type { ModuleBuilder, SizeMode } from "../module.ts";

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
  /** Neighbouring channels of its group that a thread has results of: of single elements or images, unless filters are staged. */
  readonly own: number;
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
  readonly mode: SizeMode;
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
  { vector, own, sharing }: Pick<DepthwiseShape, "vector" | "own" | "sharing">,
): 1 | 4 {
  return vector === "sources" ? own === 4 && sharing === 1 ? 4 : 1 : vectorWidth({ vector });
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

/** Axes but that of runs. */
export function otherAxes({ axes, run }: Pick<DepthwisePlaces, "axes" | "run">): number[] {
  return axes.map((_, d) => d).filter((d) => d !== run);
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
