import type { ConvProblem } from "../problem/conv_problem.ts";
import type { AlgorithmName } from "./names.ts";

/** What was the fastest for a problem, measured on the device. */
export interface TunedChoice {
  /** The problem that was measured. */
  readonly problem: ConvProblem;
  /** Its name in the registry. */
  readonly algorithm: AlgorithmName;
  /** The planner's choice where absent. */
  readonly policy?: string;
  /** Tile of a Winograd algorithm; the planner's choice where absent. */
  readonly tile?: string;
  /** Kernels of WinRS; the planner's choice where absent. */
  readonly pair?: string;
  /** Segments of WinRS, as `--segments` takes them; the planner's choice where absent. */
  readonly segments?: number;
  /** Names of its plan's kernels: their hashes stand for the text that was measured and found exact. */
  readonly kernels: readonly string[];
}

/** Choices by {@linkcode problemClass}. */
export type TuningTable = ReadonlyMap<string, TunedChoice>;
