/**
 * The one record stream: JSON lines, `schema: 1`. Tables and every other view are made of these. A reader
 * ignores fields it does not know, so fields may be added and never change their meaning.
 */

import type { AccuracyReport, Judgement } from "../accuracy/mod.ts";

/** First line of a stream: where and how the cases were run. */
export interface EnvironmentRecord {
  /** Version of the schema. */
  readonly schema: 1;
  /** Kind of line. */
  readonly kind: "environment";
  /** `wgconv`, or the peer's name. */
  readonly program: string;
  /** Of the program. */
  readonly version: string;
  /** Version of Deno. */
  readonly deno: string;
  /** Operating system and architecture. */
  readonly os: string;
  /** `wgpu`, `dawn` or `cpu`. */
  readonly backend: string;
  /** Name of the device. */
  readonly adapter: string;
  /** Name and version of its driver. */
  readonly driver: string;
  /** The device's, by WebGPU's names. */
  readonly limits: Readonly<Record<string, number>>;
  /** Of the data. */
  readonly seed: number;
  /** What else a run may be resumed with only when it is the same. */
  readonly options?: Readonly<Record<string, string | number>>;
  /** What the run is called, by the name that `--tag` gave: a commit, for one. */
  readonly tags?: Readonly<Record<string, string>>;
  /** What was measured of the device, where plans go by it: its name and a hash. */
  readonly model?: string;
  /** ISO 8601. */
  readonly date: string;
}

/** Times of one call in milliseconds; every sample is the mean of `repeats` back-to-back calls. */
export interface TimeRecord {
  /** Of the samples. */
  readonly median: number;
  /** The smallest sample. */
  readonly min: number;
  /** Median absolute deviation of the samples. */
  readonly mad: number;
  /** In the order they were taken. */
  readonly samples: readonly number[];
  /** Calls a sample. */
  readonly repeats: number;
  /** What measured: the GPU's timestamps or the host's clock. */
  readonly clock: string;
  /** Said where the device was warmed up for less than benches do: its clocks may not have risen yet. */
  readonly warm_up?: "brief";
}

/** Metrics against the FP64 reference, and what the gate allows. */
export interface AccuracyRecord
  extends AccuracyReport, Omit<Judgement, "verdict" | "reasons" | "notes"> {}

/**
 * A random projection of the whole result, compared with the reference's (docs/accuracy.md, Large results). Ratios are in units of
 * the noise that a healthy result has; products of integers have none, and equal their projection.
 */
export interface ProjectionRecord {
  /** Sums that were compared. */
  readonly places: number;
  /** Outputs that are added up in one sum. */
  readonly members: number;
  /** The largest difference of two sums, over its noise. */
  readonly max_ratio: number;
  /** What of that was allowed. */
  readonly limit: number;
  /** RMS over the patch of places that came nearest to its limit. */
  readonly patch_rms: number;
  /** What of that was allowed. */
  readonly patch_limit: number;
  /** A single output that is off by so many times its typical error is seen, wherever it is. */
  readonly size: number;
  /** Outputs in sums with a NaN or an infinity. */
  readonly masked: number;
  /** How many of those were compared one by one. */
  readonly masked_checked: number;
  /** Outputs that were compared with what becomes of the projected result: its activation, and int8 of its sums. */
  readonly activated?: number;
  /** Wall time of projecting the reference, once for all results of a problem. */
  readonly reference_seconds: number;
  /** Wall time of projecting this result. */
  readonly seconds: number;
  /** Of fetching the result from the device. */
  readonly read_seconds?: number;
}

/** Device memory of a plan in bytes. */
export interface MemoryRecord {
  /** What is read: tensors and bias. */
  readonly inputs: number;
  /** The result. */
  readonly output: number;
  /** What is needed beside them. */
  readonly workspace: number;
  /** All together. */
  readonly peak: number;
}

/** How a convolution ran whose batch was cut into chunks, each of which was read, computed and written in turn. */
export interface StreamRecord {
  /** Images of a chunk; the last one may have fewer. */
  readonly images: number;
  /** How many chunks there were. */
  readonly chunks: number;
  /** How many of them were compared with their reference. */
  readonly checked_chunks: number;
  /** Bytes of operands and of the result, as they lie on the device. */
  readonly bytes: number;
  /** Wall time of it all: reading, computing, checking and writing. */
  readonly seconds: number;
  /** The largest resident memory that was seen of the process. */
  readonly host_bytes: number;
}

/** `none`: accuracy was not asked for. `error`: the case did not run to its end. */
export type Verdict = "pass" | "fail" | "none" | "error";

/** One problem, run once. */
export interface CaseRecord {
  /** Version of the schema. */
  readonly schema: 1;
  /** Kind of line. */
  readonly kind: "case";
  /** Who computed: `wgconv`, or the tag that `--provider` gave. */
  readonly provider: string;
  /** The problem's descriptor: paste it to run the case again. */
  readonly problem: string;
  /** `fwd`, `bwd-data`, `bwd-filter` or `gemm`. */
  readonly op: string;
  /** What ran. */
  readonly algorithm: string;
  /** What was asked for, where that was not the algorithm by name: `auto`. */
  readonly requested?: string;
  /** Tile policy that was asked for; the planner's choice where absent, as of tile and pair. */
  readonly policy?: string;
  /** Winograd tile that was asked for. */
  readonly tile?: string;
  /** Kernels of WinRS that were asked for. */
  readonly pair?: string;
  /** Segments of WinRS that were asked for. */
  readonly segments?: number;
  /** Said where `auto` took what had been timed on the device: by `wgconv tune`, or within `--tune-budget`. */
  readonly choice?: "measured";
  /** Whether calls found their data in the cache; unknown where absent. */
  readonly cache?: "hot" | "cold";
  /** `null` on the CPU backend, and where planning failed. */
  readonly kernel: string | null;
  /** Name of the device. */
  readonly device: string;
  /** Element type of the operands. */
  readonly dtype: string;
  /** Of the result, where it is not that which goes with the operands'. */
  readonly out_dtype?: string;
  /** What products are summed in, where that is less than the usual. */
  readonly accumulate?: string;
  /** How operands were multiplied, where not as they are: `f16x3`. */
  readonly math?: string;
  /** Of others' results: the arithmetic that explains its errors, or comes nearest. */
  readonly arithmetic?: string;
  /** Of others' results that failed: where they are wrong, and what they are in place of what they should be. */
  readonly diagnosis?: string;
  /** A product has its transposes here. */
  readonly layout: string;
  /** Of convolutions. */
  readonly filter_layout?: string;
  /** What follows the sum of a product, where anything does. */
  readonly epilogue?: string;
  /** Milliseconds a call; `null` where nothing was timed. */
  readonly time_ms: TimeRecord | null;
  /** The direct algorithm's flops over the median time, in GFLOP/s. */
  readonly gflops: number | null;
  /** Of the direct algorithm, two a multiply-add. */
  readonly flops: number;
  /** Multiplications the kernels perform, waste included. */
  readonly multiplications: number | null;
  /** Bytes beside the tensors; `null` where nothing was planned. */
  readonly workspace_bytes: number | null;
  /** Bytes of all buffers of the plan; `peak` is their sum. */
  readonly memory_bytes: MemoryRecord | null;
  /** `null` where it was not asked for, or nothing ran. */
  readonly accuracy: AccuracyRecord | null;
  /** Where the whole result was projected. */
  readonly projection?: ProjectionRecord;
  /**
   * Where the batch was cut. Times are the sums of all chunks', memory is a chunk's. Of `accuracy` and `projection` counts are
   * sums, MARE and bias means, sizes of single errors the largest; the rest is of the chunk that came nearest to its limits.
   */
  readonly stream?: StreamRecord;
  /** What the check said. */
  readonly verdict: Verdict;
  /** Why a verdict is `fail` or `error`, or why there is none; of one that passes, what should be known of it. */
  readonly message?: string;
  /** Fill of made data; absent for files. */
  readonly fill?: string;
  /** Seed of made data. */
  readonly seed?: number;
  /** What the output's gradient was multiplied by before it was rounded: the result is so many times as large. */
  readonly loss_scale?: number;
}

/** Whether a result is wrong, or was compared and nothing could be said of it: such a run is no success. */
export function isUnproved(
  { verdict, accuracy }: {
    readonly verdict: Verdict;
    readonly accuracy: { readonly total?: number | null | undefined } | null;
  },
): boolean {
  return verdict === "fail" || (verdict === "none" && (accuracy?.total ?? 0) > 0);
}

/** What a verdict is called where it stands alone. */
export function verdictWord(verdict: Verdict): string {
  return verdict === "none" ? "not checked" : verdict;
}

/**
 * How fast one way to compute a problem was among its rivals, on the device that it names. `auto` takes
 * the winner of convolutions.
 */
export interface TuningRecord {
  /** Version of the schema. */
  readonly schema: 1;
  /** Kind of line. */
  readonly kind: "tuning";
  /** Of the program. */
  readonly version: string;
  /** `wgpu` or `dawn`. */
  readonly backend: string;
  /** Name of the device. */
  readonly device: string;
  /** Name and version of its driver. */
  readonly driver: string;
  /** The problem's descriptor, or a product's sizes. */
  readonly problem: string;
  /** Operation, or `gemm`. */
  readonly op: string;
  /** Element type; of a product that of A and B. */
  readonly dtype: string;
  /** Of the result, where it is not that which goes with the operands'. */
  readonly out_dtype?: string;
  /** What products are summed in, where that is less than the usual. */
  readonly accumulate?: string;
  /** Of activations; a product's transposes. */
  readonly layout: string;
  /** Of the filter. */
  readonly filter_layout?: string;
  /** What follows the sum of a product, where anything does. */
  readonly epilogue?: string;
  /** What ran. */
  readonly algorithm: string;
  /** Tile policy; the planner's choice where absent, as of tile and pair. */
  readonly policy?: string;
  /** Winograd tile. */
  readonly tile?: string;
  /** Kernels of WinRS. */
  readonly pair?: string;
  /** Segments of WinRS, as `--segments` takes them; the planner's choice where absent. */
  readonly segments?: number;
  /** Of a product; of stream-K those of the tiles beyond whole waves. */
  readonly splits?: number;
  /** Of a product: how tiles are spread over the device. */
  readonly balance?: "none" | "split-k" | "stream-k";
  /** Said where it was planned as for a device with so many multiprocessors. */
  readonly multiprocessors?: number;
  /** Of what `auto` timed by itself, which is not checked then: the milliseconds it had (`--tune-budget`). */
  readonly budget_ms?: number;
  /** Name of the kernel that does the products. */
  readonly kernel: string;
  /** Every kernel of the plan; a name stands for its text. */
  readonly kernels: readonly string[];
  /** Milliseconds a call. */
  readonly time_ms: TimeRecord;
  /** The direct algorithm's flops over the median time, in GFLOP/s. */
  readonly gflops: number;
  /** Of a product: what the planner's model says, scaled so that it is right on average over the rivals. */
  readonly predicted_gflops?: number;
  /** Bytes beside the tensors. */
  readonly workspace_bytes: number;
  /** The largest error over u·Σ|a||b|; `null` where nothing was checked. */
  readonly max_bound_ratio: number | null;
  /** Whether the planner would take it unmeasured. */
  readonly chosen: boolean;
  /** Whether it is what the planner should take. */
  readonly winner: boolean;
  /** What the check said. */
  readonly verdict: Verdict;
  /** Why a verdict is `fail` or `error`. */
  readonly message?: string;
}

/** A line of a stream. */
export type ReportRecord = EnvironmentRecord | CaseRecord | TuningRecord;
