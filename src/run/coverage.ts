import { randomStream } from "../reference/sample.ts";
import { elementCount } from "../tensor/tensor.ts";

/** How results are checked; `auto` checks every output, by a projection where there are many. */
export type CheckMode = "auto" | "sample" | "full";
/** What `--check` takes, its default first. */
export const CHECKS = ["auto", "sample", "full", "none"] as const;

/** Outputs that a check compares with their reference one by one, and whether a projection meets the rest. */
type Coverage = "whole" | "sample" | "projected" | "strata";

/** Problems of so few flops are checked whole, whatever was asked for. */
const WHOLE_FLOPS = 2e8;
/** Where a projection gains nothing, the check is whole up to so many multiply-adds, and outputs: 2 GiB of doubles. */
const WHOLE_PRODUCTS = 1e10;
const WHOLE_OUTPUTS = 2 ** 27;
/** Below so many outputs in a place a projection costs nearly as much as the whole. */
const FEWEST_MEMBERS = 8;
/** Outputs of a stratum: no workgroup's tile is smaller along channels, or along places. */
const STRATUM_CHANNELS = 32;
const STRATUM_PLACES = 32;

/** A sample's size: at least this many outputs ... */
const SAMPLE_COUNT = 4096;
/** ... and enough of each channel for its RMS to mean something, ... */
const SAMPLE_PER_CHANNEL = 64;
/** ... but no more multiply-adds than these: a second or so of two cores. */
const SAMPLE_PRODUCTS = 2e9;

/** Outputs of a sample, for results of so many channels and products an output. */
export function sampleCount(channels: number, products: number): number {
  const affordable = Math.floor(SAMPLE_PRODUCTS / Math.max(1, products));
  return Math.max(SAMPLE_COUNT, Math.min(SAMPLE_PER_CHANNEL * channels, affordable));
}

/** What is asked of a check. */
interface CoverageAsked {
  readonly mode: CheckMode;
  /** Whether what is projected is at hand: a result that no activation has changed. */
  readonly linear: boolean;
}

/** How the channels of a result are dealt to strata. */
interface StrataAxes {
  /** 1 of activations and products, 0 of filters. */
  readonly channelAxis: 0 | 1;
  /** Channels whose runs are apart: those of a group. */
  readonly run: number;
  /** Whether what is outside lies innermost in memory, and so in a tile: the batch in chwn. */
  readonly inner: boolean;
}

/** How the results of a subject are summed: what a check costs and covers depends on it. */
export interface ResultSums {
  /** Multiply-adds of a result. */
  readonly length: number;
  /** How many times longer than in FP64 a sum of the reference takes. */
  readonly cost: number;
  /** Results that a projection adds up in a place. */
  readonly members: number;
  /** Results of a sample. */
  readonly sample: number;
  /** How results are dealt to strata. */
  readonly strata: StrataAxes;
}

/** What the coverage of a result depends on. */
export interface Coverable {
  /** Canonical sizes of the result. */
  readonly shape: readonly number[];
  readonly sums: ResultSums;
}

/** How a result is covered. A sample that leaves none out is the whole. */
export function coverageOf(
  { shape, sums: { length, cost, members, sample } }: Coverable,
  { mode, linear }: CoverageAsked,
): Coverage {
  const outputs = elementCount(shape);
  const products = outputs * length * cost;
  if (mode === "full" || 2 * products <= WHOLE_FLOPS || outputs <= sample) return "whole";
  if (mode === "sample") return "sample";
  if (members >= FEWEST_MEMBERS && linear) return "projected";
  return products <= WHOLE_PRODUCTS && outputs <= WHOLE_OUTPUTS ? "whole" : "strata";
}

/**
 * A random output of each run of channels and places, ascending: so every workgroup's tile has one. Runs are longer
 * where outputs cost more than `most` multiply-adds together.
 *
 * @param shape Of the result, canonical.
 */
export function strataOf(
  shape: readonly number[],
  { channelAxis, run, inner }: StrataAxes,
  length: number,
  seed: number,
  most = WHOLE_PRODUCTS,
): Float64Array {
  const random = randomStream(seed);
  const channels = shape[channelAxis]!;
  const outer = shape[1 - channelAxis]!;
  const area = elementCount(shape.slice(2));
  const block = Math.min(STRATUM_CHANNELS, run);
  const blocks = Math.floor(channels / run) * Math.ceil(run / block);
  const affordable = Math.max(1, Math.floor(most / Math.max(1, length * blocks)));
  const places = Math.max(STRATUM_PLACES, Math.ceil(outer * area / affordable));
  const indices: number[] = [];
  for (let group = 0; group < channels; group += run) {
    for (let first = group; first < group + run; first += block) {
      const width = Math.min(block, group + run - first);
      for (let start = 0; start < outer * area; start += places) {
        const count = Math.min(places, outer * area - start);
        const place = start + Math.floor(random() * count);
        const channel = first + Math.floor(random() * width);
        const [at, one] = inner
          ? [Math.floor(place / outer), place % outer]
          : [place % area, Math.floor(place / area)];
        const row = channelAxis === 1 ? one * channels + channel : channel * outer + one;
        indices.push(row * area + at);
      }
    }
  }
  return Float64Array.from(indices).sort();
}
