import type { axisSizes } from "../axes.ts";
import type { ModuleBuilder } from "../module.ts";
import { channelWidth, type DepthwiseShape, imageWidth, type strideSizes } from "./shape.ts";
import type { RunProduct } from "./taps.ts";

/** What the text of a kernel is made of: its module, its sizes and strides as WGSL, and what follows from its shape. */
export interface DepthwiseText {
  readonly shape: DepthwiseShape;
  readonly module: ModuleBuilder;
  /** Axes but that of runs. */
  readonly others: readonly number[];
  readonly sized: ReturnType<typeof axisSizes>;
  readonly from: ReturnType<typeof strideSizes>;
  readonly to: ReturnType<typeof strideSizes>;
  readonly filterStrides: readonly string[];
  readonly products: readonly RunProduct[];
  /** Source channels, or vectors of them, that a result sums. */
  readonly sources: number;
}

/** Runs along the shape's run axis. */
export function runCount({ axes, run, results }: DepthwiseShape): number {
  return Math.ceil(axes[run]!.places / results);
}

/** Threads of places and segments (and of channels, where there are no lanes). */
export function placeThreads(shape: DepthwiseShape): number {
  const { axes, run, vector, images, lanes, segments } = shape;
  const places = axes.reduce((all, { places }, d) => d === run ? all : all * places, 1);
  return places * runCount(shape) * Math.ceil(images / imageWidth({ vector })) * segments *
    (lanes === 0 ? channelVectors(shape) : 1);
}

/** Vectors of channels, or channels that a thread takes together. */
export function channelVectors(shape: DepthwiseShape): number {
  return shape.channels / channelWidth(shape) / shape.own;
}
