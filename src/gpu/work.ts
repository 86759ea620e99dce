/** What is to be run and timed. */
export interface Work {
  /** Encodes runs `from` to `from + runs`. */
  readonly encode: (pass: GPUComputePassEncoder, from: number, runs: number) => void;
  readonly samples: number;
  readonly repeats: number;
  readonly warmup: number;
  readonly estimateNs?: number | undefined;
}
