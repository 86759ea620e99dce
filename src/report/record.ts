/**
 * The one record stream: JSON lines, `schema: 1`. Tables and every other view are made of these. A reader
 * ignores fields it does not know, so fields may be added and never change their meaning.
 */

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

/** An output element and its reference. */
export interface WorstRecord {
  /** Index in the result's canonical axes: N K P Q, N C H W or K C R S. */
  readonly index: readonly number[];
  readonly got: number;
  readonly ref: number;
}

/** Metrics of DESIGN.md against the FP64 reference; `null` where no element defines one. */
export interface AccuracyRecord {
  readonly mare: number | null;
  readonly median_rel: number | null;
  readonly p99_rel: number | null;
  readonly max_rel: number | null;
  readonly max_ulp: number | null;
  readonly rel_l2: number | null;
  readonly max_bound_ratio: number | null;
  readonly mean_signed: number | null;
  readonly nan: number;
  readonly inf: number;
  readonly zero_ref: number;
  /** Elements compared, out of `of`. */
  readonly checked: number;
  readonly of: number;
  /** What the gate allows. */
  readonly bound_limit: number;
  readonly rel_l2_limit: number;
  readonly worst: readonly WorstRecord[];
}

/** `none`: accuracy was not asked for. `error`: the case did not run to its end. */
export type Verdict = "pass" | "fail" | "none" | "error";

/** One problem, run once. */
export interface CaseRecord {
  readonly schema: 1;
  readonly kind: "case";
  readonly provider: "wgconv";
  /** The problem's descriptor: paste it to run the case again. */
  readonly problem: string;
  readonly op: string;
  readonly algorithm: string;
  /** `null` on the CPU backend, and where planning failed. */
  readonly kernel: string | null;
  readonly device: string;
  readonly dtype: string;
  readonly layout: string;
  readonly filter_layout: string;
  readonly time_ms: TimeRecord | null;
  /** The direct algorithm's flops over the median time, in GFLOP/s. */
  readonly gflops: number | null;
  readonly flops: number;
  /** Multiplications the kernels perform, waste included. */
  readonly multiplications: number | null;
  readonly workspace_bytes: number | null;
  readonly accuracy: AccuracyRecord | null;
  readonly verdict: Verdict;
  /** Why a verdict is `fail` or `error`. */
  readonly message?: string;
  /** Fill and seed of made data; absent for files. */
  readonly fill?: string;
  readonly seed?: number;
}

export type ReportRecord = EnvironmentRecord | CaseRecord;
