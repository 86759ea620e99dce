/**
 * What sums of an output's products count for at least, by its canonical flat index: of Winograd's, whose tiles err by all that their
 * transforms meet, also where an output's own products are tiny or none.
 */
export interface Floors {
  /** Σ|a||b| */
  size(index: number): number;
  /** Σ a²b² */
  square(index: number): number;
  /** The same, the mean over all channels that a projection adds up. */
  meanSquare(index: number): number;
}

/** Errors of outputs over their scales ({@linkcode errorScale}), as simulated arithmetic makes them. */
export interface ErrorStatistics {
  /** Outputs. */
  readonly count: number;
  /** √(mean of squares). */
  readonly rms: number;
  /** 99.9th percentile of the sizes; a little above the largest of fewer than a thousand. */
  readonly typical: number;
  /** The largest. */
  readonly largest: number;
  /** The largest error itself. */
  readonly largestError: number;
  /** Mean of fourth powers over the square of the mean of squares: 3 for normal errors. */
  readonly kurtosis: number;
  /** RMS of error / √(Σ a²b²): the noise of a projection. */
  readonly squareRms: number;
  /** ‖error‖ / ‖value‖ */
  readonly relL2: number;
}

/** Errors that are 0, as of whole numbers: results must be exact. */
export const NO_ERRORS: ErrorStatistics = {
  count: 0,
  rms: 0,
  typical: 0,
  largest: 0,
  largestError: 0,
  kurtosis: 3,
  squareRms: 0,
  relL2: 0,
};

/** Statistics of some errors over their scales, beside what is not of these alone. */
export function errorStatistics(
  ratios: ArrayLike<number>,
  others: Pick<ErrorStatistics, "largestError" | "squareRms" | "relL2">,
): ErrorStatistics {
  const count = ratios.length;
  if (count === 0) return NO_ERRORS;
  const sizes = Float64Array.from(ratios, Math.abs).sort();
  const largest = sizes[count - 1]!;
  // Squares of the sizes themselves may leave the range of doubles.
  const unit = largest > 0 ? largest : 1;
  let second = 0, fourth = 0;
  for (let i = 0; i < count; i++) {
    const power = (sizes[i]! / unit) ** 2;
    second += power;
    fourth += power * power;
  }
  const rms = unit * Math.sqrt(second / count);
  const rank = Math.ceil(0.999 * count) - 1;
  return {
    count,
    rms,
    // Few errors show less of their tail; a normal one has its 99.9th percentile at 3.29.
    typical: Math.max(sizes[rank]!, count < 1000 ? Math.min(3.29 * rms, 1.5 * largest) : 0),
    largest,
    kurtosis: second === 0 ? 3 : Math.max(1, fourth * count / (second * second)),
    ...others,
  };
}

/** What correct arithmetic of a plan's kind errs by on the data at hand (`src/simulate`). */
export interface Yardstick {
  /** Of outputs sampled from the whole result. */
  readonly sample: ErrorStatistics;
  /** Of given outputs (flat canonical indices) and no others, in several orders of their sums. */
  of(indices: readonly number[]): ErrorStatistics;
  /** Of each of many more orders. */
  again(indices: readonly number[]): readonly ErrorStatistics[];
}

/** The same where nothing is looked at more closely: what passes by it passes by all of it. */
export function sampleAlone(yardstick: Yardstick): Yardstick {
  return {
    get sample() {
      return yardstick.sample;
    },
    of: () => NO_ERRORS,
    again: () => [],
  };
}

/** Whole numbers have no errors. */
export const NO_ERRORS_YARDSTICK: Yardstick = {
  sample: NO_ERRORS,
  of: () => NO_ERRORS,
  again: () => [],
};
