import type { MainLoopVariant } from "../kernels/main_loop_variant.ts";
import type { AlgorithmName } from "./names.ts";

/** An algorithm that `auto` may take, as a request says it. */
export interface Candidate {
  /** Its name in the registry. */
  readonly algorithm: AlgorithmName;
  /** Tile of a Winograd algorithm, e.g. `F(4x4,3x3)`. */
  readonly tile?: string;
  /** Kernels of WinRS, e.g. `a8n3r6,a4n3r2`. */
  readonly pair?: string;
  /** Kernels that differ from those that are taken where nothing is said. */
  readonly variant?: MainLoopVariant;
  /** How much it enlarges rounding errors. */
  readonly amplification: number;
  /** Why it is none for the request. */
  readonly reason?: string;
}

/** A candidate and what the model says of it: a time, or why there is none. */
export interface Rival extends Candidate {
  /** Milliseconds. */
  readonly predictedMs?: number;
}

/** A candidate that is none, since it multiplies as much as the direct algorithm. */
export function pointless(algorithm: AlgorithmName): Candidate {
  return { algorithm, amplification: 1, reason: "no tile of it saves multiplications here" };
}

/** A candidate that is none on a CPU, which takes seconds to compile its kernels. */
export function slowToCompile(algorithm: AlgorithmName): Candidate {
  return { algorithm, amplification: 1, reason: "a CPU takes seconds to compile its kernels" };
}
