import { type ErrorStatistics, NO_ERRORS } from "./statistics.ts";

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
