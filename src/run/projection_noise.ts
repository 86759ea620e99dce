import type { ErrorStatistics, Precision } from "../accuracy/mod.ts";
import type { ProjectionNoise } from "../accuracy/projection.ts";
import type { GemmDType, GemmProblem } from "../problem/gemm_problem.ts";

/** Roundings of a number that is evenly spread err by 1/√3 of the unit roundoff at most: its root mean square. */
const ROUNDED = 1 / Math.sqrt(3);
/** What sums of doubles err by at least, where simulated arithmetic is exact. */
const DOUBLES = 2 ** -44;
/** A normal error has its 99.9th percentile at so many standard deviations. */
const NORMAL_TYPICAL = 3.29;

type Noisy = Pick<ErrorStatistics, "squareRms" | "rms" | "typical">;

/** Rounding errors of a healthy output, of what simulated arithmetic shows on the data at hand. */
export function projectionNoise(
  { squareRms, rms, typical }: Noisy,
  { unitRoundoff, smallestNormal, result }: Precision,
): ProjectionNoise {
  const stored = result === "bf16" ? 2 ** -8 : result === "f16" ? 2 ** -11 : unitRoundoff;
  return {
    products: Math.max(squareRms, DOUBLES),
    result: squareRms === 0 ? DOUBLES : ROUNDED * stored,
    additions: squareRms === 0 ? DOUBLES : ROUNDED * unitRoundoff,
    smallest: smallestNormal,
    tail: rms === 0 ? 1 : Math.max(1, typical / (NORMAL_TYPICAL * rms)),
  };
}

/** The noise of a product; of f64 the reference's own sums, of m and of k, round as much. */
export function gemmNoise(
  sample: Noisy,
  { m, k }: GemmProblem,
  dtype: GemmDType,
  precision: Precision,
): ProjectionNoise {
  if (dtype !== "f64") return projectionNoise(sample, precision);
  const { unitRoundoff } = precision;
  const longer = 2 * Math.sqrt((m + k) / Math.max(1, k));
  const squareRms = longer * Math.max(sample.squareRms, unitRoundoff * Math.sqrt(k));
  const noise = projectionNoise({ ...sample, squareRms }, precision);
  return { ...noise, result: 2 * Math.sqrt(m + k) * unitRoundoff };
}
