import type { SizeMode } from "../kernels/module.ts";
import { accumulationLength, type ConvDType } from "../problem/conv_problem.ts";
import { boundRatioLimit } from "../problem/error_bound.ts";
import type { AlgorithmName, Candidate, Plan } from "./plan.ts";
import type { Planned } from "./refusal.ts";
import type { PlanRequest } from "./request.ts";
import type { Schedule } from "./schedule.ts";

/**
 * How much `auto` lets an algorithm enlarge rounding errors where the user says nothing. Forward and backward-data: all
 * tiles of α ≤ 8 on both axes (F(6x6,3x3) has 46, F(7x7,2x2) 66), whose MARE stays below 6e-7; not α = 16.
 * Backward-filter: WinRS with α = 16 (up to 514), whose MARE stays below 2e-6, and two axes of up to α = 10
 * (F(9x9,2x2): 1019), which errs as much; not α = 16 on both (10⁵).
 */
const DEFAULT_AMPLIFICATION = { data: 70, filter: 1100 };

/** Times the relative L2 error of direct sums of f16 that transformed data in half the bytes may have unasked. */
export const HALF_ALLOWED = 4;

/** Largest amplification that `auto` may choose for a request. */
export function allowedAmplification(request: PlanRequest): number {
  const { problem, epilogue: { activation }, exact, maxBoundRatio } = request;
  if (exact) return 1;
  if (maxBoundRatio === undefined) {
    return DEFAULT_AMPLIFICATION[problem.op === "bwd-filter" ? "filter" : "data"];
  }
  const length = accumulationLength(problem);
  const limit = (amplification: number) =>
    boundRatioLimit({ accumulationLength: length, amplification, activation });
  // The limit grows in proportion to what is above 1.
  const each = limit(3) - limit(2);
  return Math.max(1, 2 + (maxBoundRatio - limit(2)) / each);
}

/** What is said of an algorithm that enlarges errors more than `allowed`: it "is no exact algorithm", or by how much. */
export function inaccuracy({ exact }: PlanRequest, amplification: number, allowed: number): string {
  const figure = (value: number) => `${Number(value.toPrecision(3))}`;
  return exact
    ? "is no exact algorithm"
    : `enlarges rounding errors ${figure(amplification)} times, ${figure(allowed)} are allowed`;
}

/** What a request says that only some algorithms have: fields of its schedule and others. */
export type AlgorithmOption = keyof Schedule | "tile" | "pair" | "math";

/** Options of an algorithm that are worth measuring, as a request says them; the planner's choice where absent. */
export interface OptionChoice {
  /** The pair of kernels. */
  readonly pair?: string;
  /** Segments, as `--segments` takes them. */
  readonly segments?: number;
}

/** A convolution algorithm: all that the planner, `auto`, commands and tables know of it. */
export interface Algorithm<Geometry = unknown> {
  /** As `--algorithm` takes it; no two are the same. */
  readonly name: AlgorithmName;
  /** Its options, beside those that all algorithms have. */
  readonly options: readonly AlgorithmOption[];
  /** What tensors it takes; f32 alone where absent. */
  readonly dtypes?: readonly ConvDType[];
  /** Whether it takes tensors that are parts of larger ones ({@linkcode PlanRequest.within}): all strides are what `stridesOf()` says. */
  readonly takesParts?: boolean;
  /** Why it cannot do the problem, as a clause; undefined if it can. */
  refuse(request: PlanRequest): string | undefined;
  /** What `auto` weighs of it, within the enlargement of errors that is allowed; nothing where absent. */
  candidates?(request: PlanRequest, allowed: number): Candidate[];
  /** What a request becomes: sizes, tiles, how they are cut. It is derived once a candidate, and price and plan take it. */
  geometry(request: PlanRequest): Planned<Geometry>;
  /** Predicted microseconds; undefined, or absent, where nothing predicts them. */
  price?(geometry: Geometry): number | undefined;
  /** What a tuning measures beside the planner's choice of its options; nothing where absent. */
  rivals?(request: PlanRequest): readonly OptionChoice[];
  /** Its passes and buffers, or why there are none; `uniform` keeps sizes out of the kernels' texts. */
  plan(geometry: Geometry, mode: SizeMode): Planned<Plan>;
}

/** A candidate that is none, since it multiplies as much as the direct algorithm. */
export function pointless(algorithm: AlgorithmName): Candidate {
  return { algorithm, amplification: 1, reason: "no tile of it saves multiplications here" };
}

/** A candidate that is none where compilers are slow. */
export function slowToCompile(algorithm: AlgorithmName): Candidate {
  return { algorithm, amplification: 1, reason: "its kernels take too long to compile here" };
}
