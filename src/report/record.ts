/**
 * The one record stream: JSON lines, `schema: 1`. Tables and every other view are made of these. A reader
 * ignores fields it does not know, so fields may be added and never change their meaning.
 */

import type { AccuracyReport, Judgement } from "../accuracy/mod.ts";

/** First line of a stream: where and how the cases were run. */
export interface EnvironmentRecord {
  readonly schema: 1;
  readonly kind: "environment";
  readonly program: string;
  readonly version: string;
  readonly deno: string;
  readonly os: string;
  readonly backend: string;
  readonly adapter: string;
  readonly driver: string;
  readonly limits: Readonly<Record<string, number>>;
  readonly seed: number;
  /** What else a run may be resumed with only when it is the same. */
  readonly options?: Readonly<Record<string, string | number>>;
  /** ISO 8601. */
  readonly date: string;
}

/** Times of one call in milliseconds; every sample is the mean of `repeats` back-to-back calls. */
export interface TimeRecord {
  readonly median: number;
  readonly min: number;
  /** Median absolute deviation of the samples. */
  readonly mad: number;
  readonly samples: readonly number[];
  readonly repeats: number;
  /** What measured: the GPU's timestamps or the host's clock. */
  readonly clock: string;
}

/** Metrics against the FP64 reference, and what the gate allows. */
export interface AccuracyRecord extends AccuracyReport, Omit<Judgement, "verdict" | "reasons"> {}

/**
 * A random projection of the whole result, compared with the reference's (docs/accuracy.md). Ratios are in units of
 * the noise that a healthy result has; products of integers have none, and equal their projection.
 */
export interface ProjectionRecord {
  /** Sums that were compared, and outputs that are added up in one. */
  readonly places: number;
  readonly members: number;
  readonly max_ratio: number;
  readonly limit: number;
  /** RMS over the patch of places that came nearest to its limit. */
  readonly patch_rms: number;
  readonly patch_limit: number;
  /** A single output that is off by so many times its typical error is seen, wherever it is. */
  readonly size: number;
  /** Outputs in sums with a NaN or an infinity, and how many of them were compared one by one. */
  readonly masked: number;
  readonly masked_checked: number;
  /** Outputs that were compared with the activation of the projected result. */
  readonly activated?: number;
  /** Wall time of projecting the reference, once for all results of a problem, and this result. */
  readonly reference_seconds: number;
  readonly seconds: number;
  /** Of fetching the result from the device. */
  readonly read_seconds?: number;
}

/** Device memory of a plan in bytes. */
export interface MemoryRecord {
  readonly inputs: number;
  readonly output: number;
  readonly workspace: number;
  readonly peak: number;
}

/** `none`: accuracy was not asked for. `error`: the case did not run to its end. */
export type Verdict = "pass" | "fail" | "none" | "error";

/** One problem, run once. */
export interface CaseRecord {
  readonly schema: 1;
  readonly kind: "case";
  /** Who computed: `wgconv`, or the tag that `--provider` gave. */
  readonly provider: string;
  /** The problem's descriptor: paste it to run the case again. */
  readonly problem: string;
  readonly op: string;
  readonly algorithm: string;
  /** What was asked for, where that was not the algorithm by name: `auto`. */
  readonly requested?: string;
  /** Tile policy, Winograd tile and WinRS kernels that were asked for; the planner's choice where absent. */
  readonly policy?: string;
  readonly tile?: string;
  readonly pair?: string;
  /** Whether calls found their data in the cache; unknown where absent. */
  readonly cache?: "hot" | "cold";
  /** `null` on the CPU backend, and where planning failed. */
  readonly kernel: string | null;
  readonly device: string;
  readonly dtype: string;
  /** What products are summed in, where that is less than the usual. */
  readonly accumulate?: string;
  /** A product has its transposes here. */
  readonly layout: string;
  /** Of convolutions. */
  readonly filter_layout?: string;
  /** What follows the sum of a product, where anything does. */
  readonly epilogue?: string;
  readonly time_ms: TimeRecord | null;
  /** The direct algorithm's flops over the median time, in GFLOP/s. */
  readonly gflops: number | null;
  readonly flops: number;
  /** Multiplications the kernels perform, waste included. */
  readonly multiplications: number | null;
  readonly workspace_bytes: number | null;
  /** Bytes of all buffers of the plan; `peak` is their sum. */
  readonly memory_bytes: MemoryRecord | null;
  readonly accuracy: AccuracyRecord | null;
  /** Where the whole result was projected. */
  readonly projection?: ProjectionRecord;
  readonly verdict: Verdict;
  /** Why a verdict is `fail` or `error`. */
  readonly message?: string;
  /** Fill and seed of made data; absent for files. */
  readonly fill?: string;
  readonly seed?: number;
}

/** How fast one kernel was among its rivals on one problem. */
export interface TuningRecord {
  readonly schema: 1;
  readonly kind: "tuning";
  readonly problem: string;
  readonly op: string;
  readonly device: string;
  readonly dtype: string;
  readonly kernel: string;
  readonly policy: string;
  /** Of stream-K those of the tiles beyond whole waves. */
  readonly splits: number;
  readonly balance: "none" | "split-k" | "stream-k";
  readonly time_ms: TimeRecord;
  readonly gflops: number;
  /** What the planner's model says, scaled so that it is right on average over the rivals. */
  readonly predicted_gflops: number;
  /** Whether the planner would take it. */
  readonly chosen: boolean;
  readonly verdict: Verdict;
  readonly message?: string;
}

/** How fast one way to convolve was among its rivals: what `auto` heeds on the device that it names. */
export interface ConvTuningRecord {
  readonly schema: 1;
  readonly kind: "tuning";
  readonly version: string;
  readonly backend: string;
  readonly device: string;
  readonly driver: string;
  readonly problem: string;
  readonly op: string;
  readonly dtype: string;
  readonly layout: string;
  readonly filter_layout: string;
  readonly algorithm: string;
  /** The planner's choice where absent. */
  readonly policy?: string;
  readonly tile?: string;
  readonly pair?: string;
  readonly kernel: string;
  /** Every kernel of the plan; a name stands for its text. */
  readonly kernels: readonly string[];
  readonly time_ms: TimeRecord;
  readonly gflops: number;
  readonly workspace_bytes: number;
  readonly max_bound_ratio: number | null;
  /** Whether the planner would take it unmeasured, and whether it is what it should take. */
  readonly chosen: boolean;
  readonly winner: boolean;
  readonly verdict: Verdict;
}

export type ReportRecord = EnvironmentRecord | CaseRecord | TuningRecord | ConvTuningRecord;
