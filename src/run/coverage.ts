import {
  accumulationLength,
  type ConvProblem,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import { randomStream } from "../reference/sample.ts";
import { elementCount } from "../tensor/tensor.ts";

/** How results are checked; `auto` checks every output, by a projection where there are many. */
export type CheckMode = "auto" | "sample" | "full";
/** What `--check` takes, its default first. */
export const CHECKS = ["auto", "sample", "full", "none"] as const;
export const CHECK_HELP =
  "auto: every output, by sample and projection where there are many; sample, full or none";

/** Outputs that a check compares with their reference one by one, and whether a projection meets the rest. */
export type Coverage = "whole" | "sample" | "projected" | "strata";

/** Problems of so few flops are checked whole, whatever was asked for. */
export const WHOLE_FLOPS = 2e8;
/** Where a projection gains nothing, the check is whole up to so many multiply-adds, and outputs: 2 GiB of doubles. */
const WHOLE_PRODUCTS = 1e10;
const WHOLE_OUTPUTS = 2 ** 27;
/** Below so many outputs in a place a projection costs nearly as much as the whole. */
const FEWEST_MEMBERS = 8;
/** Outputs of a stratum: no workgroup's tile is smaller along channels, or along places. */
const STRATUM_CHANNELS = 32;
const STRATUM_PLACES = 32;

/** What the coverage of a check depends on. */
export interface Coverable {
  readonly mode: CheckMode;
  /** Multiply-adds of the whole. */
  readonly products: number;
  readonly outputs: number;
  /** Outputs that a projection adds up in a place. */
  readonly members: number;
  /** Whether what is projected is at hand: a result that no activation has changed. */
  readonly linear: boolean;
}

/** How a result is covered. */
export function coverageOf({ mode, products, outputs, members, linear }: Coverable): Coverage {
  if (mode === "full" || 2 * products <= WHOLE_FLOPS) return "whole";
  if (mode === "sample") return "sample";
  if (members >= FEWEST_MEMBERS && linear) return "projected";
  return products <= WHOLE_PRODUCTS && outputs <= WHOLE_OUTPUTS ? "whole" : "strata";
}

/** The sizes of a convolution. */
export function convCoverable(problem: ConvProblem): Omit<Coverable, "mode" | "linear"> {
  const { op, groups } = problem;
  const [C, K] = [problem.inChannels / groups, problem.outChannels / groups];
  const outputs = elementCount(tensorShape(problem, resultTensor(op)));
  return {
    products: outputs * accumulationLength(problem),
    outputs,
    members: op === "fwd" ? K : op === "bwd-data" ? C : C * K,
  };
}

/** Those of a product. */
export function gemmCoverable(
  { m, n, k, batch }: GemmProblem,
): Omit<Coverable, "mode" | "linear"> {
  return { products: batch * m * n * k, outputs: batch * m * n, members: m };
}

/**
 * A random output of each run of channels and places, ascending: so every workgroup's tile has one. Runs are longer
 * where outputs cost more than `most` multiply-adds together.
 *
 * @param shape Of the result, canonical.
 * @param channelAxis 1 of activations and products, 0 of filters.
 * @param run Channels whose runs are apart: those of a group.
 * @param inner Whether what is outside lies innermost in memory, and so in a tile: the batch in chwn.
 */
export function strataOf(
  shape: readonly number[],
  channelAxis: 0 | 1,
  run: number,
  length: number,
  seed: number,
  inner = false,
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
