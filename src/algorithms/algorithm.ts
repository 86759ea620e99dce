import type { SizeMode } from "../kernels/module.ts";
import type { ConvDType } from "../problem/conv_problem.ts";
import type { AlgorithmName, Candidate, Plan } from "./plan.ts";
import type { Planned } from "./refusal.ts";
import type { PlanRequest } from "./request.ts";

/** Options of a request that only some algorithms have. */
export type AlgorithmOption =
  | "policy"
  | "splits"
  | "tile"
  | "pair"
  | "variant"
  /** Rotated loops, which fused Winograd has too. */
  | "slice-loop"
  | "math"
  | "output-layout";

/** A convolution algorithm: all that the planner, `auto`, commands and tables know of it. */
export interface Algorithm {
  /** As `--algorithm` takes it; no two are the same. */
  readonly name: AlgorithmName;
  /** Its options, beside those that all algorithms have. */
  readonly options: readonly AlgorithmOption[];
  /** What tensors it takes; f32 alone where absent. */
  readonly dtypes?: readonly ConvDType[];
  /** Why it cannot do the problem, as a clause; undefined if it can. */
  refuse(request: PlanRequest): string | undefined;
  /** What `auto` weighs of it, within the enlargement of errors that is allowed; nothing where absent. */
  candidates?(request: PlanRequest, allowed: number): Candidate[];
  /** Microseconds that it takes at least, where that is found faster than its price. */
  atLeast?(request: PlanRequest, candidate: Candidate): number;
  /** Predicted microseconds; undefined, or absent, where nothing predicts them. */
  price?(request: PlanRequest): Planned<number> | undefined;
  /** Its passes and buffers, or why there are none; `uniform` keeps sizes out of the kernels' texts. */
  plan(request: PlanRequest, mode: SizeMode): Planned<Plan>;
}

/** A candidate that is none, since it multiplies as much as the direct algorithm. */
export function pointless(algorithm: AlgorithmName): Candidate {
  return { algorithm, amplification: 1, reason: "no tile of it saves multiplications here" };
}

/** A candidate that is none on a CPU, which takes seconds to compile its kernels. */
export function slowToCompile(algorithm: AlgorithmName): Candidate {
  return { algorithm, amplification: 1, reason: "a CPU takes seconds to compile its kernels" };
}
