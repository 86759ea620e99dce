import { rankTest } from "./ranks.ts";
import { median } from "./stats.ts";

/** A drop of less is within what runs differ by. */
const LEAST_DROP = 0.03;
/** Fewer samples do not tell. */
const FEWEST = 9;
/** The probability below which halves of the samples are not of one distribution. */
const SIGNIFICANT = 0.02;

/**
 * The share of its rate that a case lost while it was sampled: clocks that throttle, or another program. Undefined where its
 * second half of samples is not clearly slower than its first.
 */
export function slowdown(samples: readonly number[]): number | undefined {
  if (samples.length < FEWEST) return undefined;
  const half = samples.length >> 1;
  const [early, late] = [samples.slice(0, half), samples.slice(-half)];
  const drop = 1 - median(early) / median(late);
  return drop >= LEAST_DROP && rankTest(late, early).p < SIGNIFICANT ? drop : undefined;
}
