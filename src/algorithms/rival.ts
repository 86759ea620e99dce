import type { AlgorithmName } from "./names.ts";

/** An algorithm that `auto` may take, as a request says it. */
export interface Candidate {
  readonly algorithm: AlgorithmName;
  readonly tile?: string;
  readonly pair?: string;
  /** How much it enlarges rounding errors. */
  readonly amplification: number;
  /** Why it is none for the request. */
  readonly reason?: string;
}

/** A candidate and what the model says of it: a time, or why there is none. */
export interface Rival extends Candidate {
  readonly predictedMs?: number;
}

/** A candidate that is none, since it multiplies as much as the direct algorithm. */
export function pointless(algorithm: AlgorithmName): Candidate {
  return { algorithm, amplification: 1, reason: "no tile of it saves multiplications here" };
}
