import type { ConvProblem } from "../../problem/conv_problem.ts";
import { formatTile, parseTile, type WinogradTile } from "../../winograd/tile.ts";
import { tileTransform, type WinogradTransform } from "../../winograd/transform.ts";
import { elementsOf, sumOf } from "../../elements/elements.ts";
import type { Stored } from "../../elements/scalar.ts";
import type { PlanRequest } from "../request.ts";

/** Largest n + r − 1 of an axis that the default takes: beyond it rounding errors grow fast. */
const DEFAULT_ALPHA = 8;
/** Largest step of the default tile. */
const DEFAULT_STEP = 4;
/** Longest filter axis: F(1,16) and F(16,1) are the longest transforms. */
const LONGEST_FILTER = 16;

/**
 * The tile that is taken where none is asked for, one entry a spatial axis. Of the steps up to 4 with α ≤ 8 (2 for
 * filters of 8 and more) each axis takes the one with the fewest products, ⌈size / step⌉·α: 4 for 3x3 and 5x5
 * filters on large images, 3 where an output of 5 would waste three eighths of two tiles of 4. An axis of filter
 * size 1 has tiles of 1, and so no transform. Backward-filter, F(filter size, step), steps through the output.
 */
export function defaultTile(problem: ConvProblem): WinogradTile {
  const { op, filterSize } = problem;
  const sizes = op === "bwd-data" ? problem.inputSize : problem.outputSize;
  const steps = filterSize.map((filter, axis) => {
    const most = Math.max(2, Math.min(DEFAULT_STEP, DEFAULT_ALPHA + 1 - filter));
    const products = (step: number) => Math.ceil(sizes[axis]! / step) * (step + filter - 1);
    let best = 1;
    for (let step = 2; step <= Math.min(most, LONGEST_FILTER + 1 - filter); step++) {
      if (products(step) < products(best)) best = step;
    }
    return best;
  });
  return op === "bwd-filter" ? { n: [...filterSize], r: steps } : { n: steps, r: [...filterSize] };
}

/** The tile asked for, or the default. */
function tileOf({ problem, tile }: PlanRequest): WinogradTile {
  return tile === undefined ? defaultTile(problem) : parseTile(tile);
}

/** Why there is no such algorithm for the problem, or undefined if there is. */
export function nonfusedReason(request: PlanRequest): string | undefined {
  const { problem } = request;
  const { op, filterSize, stride, dilation } = problem;
  const rank = filterSize.length;
  if (rank > 2) return `it has ${rank} spatial axes, 1 and 2 are supported`;
  if (stride.some((value) => value !== 1)) return `its stride is ${stride.join("x")}, not 1`;
  if (dilation.some((value) => value !== 1)) return `its dilation is ${dilation.join("x")}, not 1`;
  const longest = Math.max(...filterSize);
  if (longest > LONGEST_FILTER) {
    return `its filter is ${longest} long, ${LONGEST_FILTER} are supported`;
  }
  const tile = tileOf(request);
  const filter = op === "bwd-filter" ? tile.n : tile.r;
  if (!sameSizes(filter, filterSize)) {
    return `tile ${formatTile(tile)} is for filters of ${filter.join("x")}, ` +
      `this one is ${filterSize.join("x")}`;
  }
  return undefined;
}

/** Whether sizes agree; one axis is two with a first one of 1. */
function sameSizes(a: readonly number[], b: readonly number[]): boolean {
  const [left, right] = [planar(a, 1), planar(b, 1)];
  return left.every((size, axis) => size === right[axis]);
}

/** Values of two axes; of one axis, after a first one of `first`. */
export function planar(values: readonly number[], first: number): [number, number] {
  return values.length === 1 ? [first, values[0]!] : [values[0]!, values[1]!];
}

/** The tile of a request over two axes, and its transforms. */
export interface PlannedTile {
  readonly text: string;
  /** `m4x4r3x3`: in kernel names. */
  readonly trait: string;
  readonly transforms: readonly [WinogradTransform, WinogradTransform];
  /** Products a tile and pair of channels: α0·α1. */
  readonly products: number;
  /** What transformed data is stored in: two halves a value where matrix units multiply them. */
  readonly stored: Stored;
}

/**
 * The tile of a supported request.
 *
 * @throws {SyntaxError | RangeError} if the tile asked for is none.
 */
export function plannedTile(request: PlanRequest): PlannedTile {
  const tile = tileOf(request);
  const n = planar(tile.n, 1);
  const r = planar(tile.r, 1);
  const stored = request.math === "f16x3" ? "halves" : sumOf(elementsOf(request));
  const scaled = stored === "halves" ? "f16" : "f32";
  const transforms = [
    tileTransform(n[0], r[0], scaled),
    tileTransform(n[1], r[1], scaled),
  ] as const;
  return {
    text: formatTile(tile),
    trait: `m${n.join("x")}r${r.join("x")}`,
    transforms,
    products: transforms[0].alpha * transforms[1].alpha,
    stored,
  };
}
