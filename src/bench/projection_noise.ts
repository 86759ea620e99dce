import type { ErrorStatistics, Precision } from "../accuracy/mod.ts";
import type { ProjectionNoise } from "../accuracy/projection.ts";

/** Roundings of a number that is evenly spread err by 1/√3 of the unit roundoff at most: its root mean square. */
const ROUNDED = 1 / Math.sqrt(3);
/** What sums of doubles err by at least, where simulated arithmetic is exact. */
const DOUBLES = 2 ** -44;

/** Rounding errors of a healthy output, of what simulated arithmetic shows on the data at hand. */
export function projectionNoise(
  { squareRms }: Pick<ErrorStatistics, "squareRms">,
  { unitRoundoff, smallestNormal, result }: Precision,
): ProjectionNoise {
  const stored = result === "f16" ? 2 ** -11 : unitRoundoff;
  return {
    products: Math.max(squareRms, DOUBLES),
    result: squareRms === 0 ? DOUBLES : ROUNDED * stored,
    additions: squareRms === 0 ? DOUBLES : ROUNDED * unitRoundoff,
    smallest: smallestNormal,
  };
}
