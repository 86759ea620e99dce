import type { AxisTile, OperandRounding, PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { bf16round, tf32round, tf32truncate } from "../tensor/convert.ts";
import type { TileTransforms } from "./transforms.ts";

/**
 * Sums of products as every algorithm computes them: a left patch times a right patch in each of `units` units, for all
 * pairs of a few left and right ones. A patch is one value where there is no tile.
 */
export interface SumSource {
  readonly units: number;
  readonly lefts: number;
  readonly rights: number;
  /** Winograd's; plain products where absent. */
  readonly transforms?: TileTransforms;
  /** What they are of, along the axes that have tiles; absent where they are. */
  readonly tiles?: readonly AxisTile[];
  /**
   * Of what is split into halves: the largest value of the image or channel of each left, and right, one; infinite where
   * there is an infinity or NaN. Of each one alone where absent.
   */
  readonly largest?: { readonly lefts?: Float64Array; readonly rights: Float64Array };
  /** The same of the exponent of the last bit of any value, of each left one's image or channel. */
  readonly lastBits?: Float64Array;
  /** Products of each left one that are none of padding; all where absent. */
  readonly met?: readonly number[];
  /** What sums begin with, [left][right]; 0 where absent. `exact` and Σ|a||b| leave it out. */
  readonly initial?: Float64Array;
  /** Loads the patches of one unit, those of one side one after the other. */
  load(unit: number, lefts: Float64Array, rights: Float64Array): void;
}

/** Sums of a source: [left][right][result of a tile]. */
export interface SimulatedSums {
  /** In simulated arithmetic. */
  readonly values: Float64Array;
  /** In doubles; of f64, in twice their precision rounded once, the rest in `rests`. */
  readonly exact: Float64Array;
  /** What `exact` leaves of the true sum: 0 but for f64. */
  readonly rests: Float64Array;
  /** Σ|a||b| */
  readonly magnitudes: Float64Array;
  /** Σ a²b² */
  readonly squares: Float64Array;
  /** Whether anything was rounded on the way: of whole numbers nothing is. */
  readonly rounded: boolean;
}

/** What may differ between runs that round alike. */
export interface SumOrder {
  /** Whether a product is rounded before it is added; WGSL leaves it open. */
  readonly separate?: boolean;
  /** The unit that the sums begin with; after the last one comes the first. */
  readonly start?: number;
}

/** Accumulators of `count` sums: chains are added to their segment's sum, and segments to the total. */
export function foldedSums(count: number, { chain, segment }: PlanArithmetic, round: Round) {
  const open = new Float64Array(count);
  const segments = new Float64Array(count);
  const totals = new Float64Array(count);
  let inChain = 0, inSegment = 0;
  const add = (from: Float64Array, to: Float64Array) => {
    for (let i = 0; i < count; i++) to[i] = round(to[i]! + from[i]!);
    from.fill(0);
  };
  const foldChain = () => {
    inChain = 0;
    add(open, segments);
  };
  const foldSegment = () => {
    if (inChain > 0) foldChain();
    inSegment = 0;
    add(segments, totals);
  };
  return {
    /** What products are added to. */
    open,
    /** To be called after every unit. */
    step() {
      inChain++;
      inSegment++;
      if (inChain === chain) foldChain();
      if (inSegment === segment) foldSegment();
    },
    totals() {
      if (inSegment > 0) foldSegment();
      return totals;
    },
  };
}

/** Rounds a sum to what it is kept in. */
export type Round = (value: number) => number;

/** How operands become what they are multiplied as. */
export const ROUNDINGS: Readonly<Record<OperandRounding, Round>> = {
  f32: Math.fround,
  tf32: tf32round,
  "tf32-truncated": tf32truncate,
  f16: Math.f16round,
  bf16: bf16round,
};

/** The source with both operands rounded. */
export function roundedSource(source: SumSource, round: Round): SumSource {
  return {
    ...source,
    load(unit, lefts, rights) {
      source.load(unit, lefts, rights);
      for (let i = 0; i < lefts.length; i++) lefts[i] = round(lefts[i]!);
      for (let i = 0; i < rights.length; i++) rights[i] = round(rights[i]!);
    },
  };
}

/** How a bias or C is rounded: to 16 bits beside operands of 16 bits, not at all beside TF32, which rounds operands alone. */
export function addedRounding(operands: OperandRounding | undefined): Round {
  return operands === "f16" || operands === "bf16" ? ROUNDINGS[operands] : Number;
}
