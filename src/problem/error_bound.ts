import { type Activation, activationRoundings } from "./activations.ts";

/** What the size of rounding errors depends on. */
interface ErrorSource {
  /** Products summed into an output: `accumulationLength(problem)`. */
  readonly accumulationLength: number;
  /** How much the algorithm enlarges rounding errors; 1, that of sums of products, where absent. */
  readonly amplification?: number;
  /** The epilogue's; GPUs approximate exponentials. */
  readonly activation?: Activation;
}

/** Of √L: twice what 10⁴ outputs of positive data reach, 8 standard deviations of one. */
const BOUND_FACTOR = 2;
/**
 * Where products are few, those of an output's neighbours in its tile, whose errors it shares, can be much larger
 * than its own: by as much at L = 24 as what is shared where they are many.
 */
const MIXED_LENGTH = 24;
/**
 * Share of the data's own norm, max(‖ref‖, ‖Σ|a||b|‖ / √L), that errors never reach, whatever the algorithm: so few bits are
 * no use to anyone.
 */
export const ERROR_CEILING = {
  ...{ bf16: 0.16, f16: 2e-2, f32: 1e-3, f64: 1e-3 },
  ...{ i32: 0, i8: 0, u8: 0 },
} as const;

/**
 * Limit of |y − ref| / (u · Σ|a||b|) that a correct kernel's outputs stay below, whatever the data: what
 * planners go by. The gate is tighter, as it knows the data.
 */
export function boundRatioLimit(
  { accumulationLength, amplification = 1, activation = "none" }: ErrorSource,
): number {
  const length = Math.max(1, accumulationLength);
  const mixed = amplification > 1 ? 1 + MIXED_LENGTH / length : 1;
  return BOUND_FACTOR * Math.sqrt(length) * amplification * mixed + activationRoundings(activation);
}
