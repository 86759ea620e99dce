/** An output, and what it should be. */
export interface WorstElement {
  /** Index in canonical axes: N K P Q, N C H W or K C R S. */
  readonly index: number[];
  /** What the kernel gave. */
  readonly got: number;
  /** What the reference says. */
  readonly ref: number;
}

/**
 * How far results are from their reference. Names are those of the record schema. Relative figures are over
 * outputs with a finite reference other than 0, and `null` where there is none.
 */
export interface AccuracyReport {
  /** Mean of |y − ref| / |ref|. */
  readonly mare: number | null;
  /** Quantiles of the same, to 0.2 %. */
  readonly median_rel: number | null;
  /** The 99th percentile of the same. */
  readonly p99_rel: number | null;
  /** The largest of the same. */
  readonly max_rel: number | null;
  /** Largest |y − ref| in units of float32's last place at ref. */
  readonly max_ulp: number | null;
  /** ‖y − ref‖ / ‖ref‖; 0 where both are 0, infinite where only the reference is 0. */
  readonly rel_l2: number;
  /** Largest |y − ref| over its scale, u · Σ|a||b| but for f16 results (`errorScale`). */
  readonly max_bound_ratio: number;
  /** Mean of (y − ref) / Σ|a||b|: a bias, as truncation has it, shows here. */
  readonly mean_signed: number;
  /** ‖Σ|a||b|‖ / ‖ref‖: how much the data cancels; 1 for positive data, more for subnormal. */
  readonly condition: number;
  /** NaNs among the outputs that were compared. */
  readonly nan: number;
  /** Infinities among them. */
  readonly inf: number;
  /** Outputs that are NaN or infinite where the reference is not the same, or the other way round. */
  readonly mismatched: number;
  /** Outputs whose reference is 0: left out of relative figures, not of the bound ratio. */
  readonly zero_ref: number;
  /** Outputs compared, out of `total`. */
  readonly checked: number;
  /** Outputs of the result. */
  readonly total: number;
  /** The largest bound ratios, largest first. */
  readonly worst: readonly WorstElement[];
}
