import type { SampledOutputs } from "./sampled_outputs.ts";

/** What a result may be in place of what it should be. */
export interface Hypothesis {
  /** It follows "the result matches with": `the filter flipped`. */
  readonly name: string;
  /** What would stand at canonical indices; NaN where that is not known. */
  values(indices: readonly number[]): Float64Array;
}

/** A hypothesis that fits, and how well. */
export interface Match {
  readonly name: string;
  /** ‖y − values‖ / ‖values‖ over the outputs that were looked at. */
  readonly relL2: number;
}

/**
 * The hypothesis that fits a result best, where it explains nearly all that is wrong.
 *
 * @param outputs Some that are wrong, and some of all.
 */
export function bestMatch(
  hypotheses: readonly Hypothesis[],
  { indices, got, expected }: SampledOutputs,
): Match | undefined {
  if (indices.length === 0) return undefined;
  let best: (Match & { readonly rest: number }) | undefined;
  for (const { name, values } of [...hypotheses, ...scaled(got, expected)]) {
    const made = values(indices);
    const known = indices.keys().filter((at) => Number.isFinite(made[at]!)).toArray();
    if (known.length < indices.length / 2) continue;
    const rest = distance(got, made, known), own = distance(got, expected, known);
    // Earlier ones are simpler.
    if (!(rest <= EXPLAINED * own) || (best !== undefined && !(rest < CLEARLY * best.rest))) {
      continue;
    }
    const size = norm(known.map((at) => made[at]!));
    best = { name, rest, relL2: size === 0 ? (rest === 0 ? 0 : Infinity) : rest / size };
  }
  return best && { name: best.name, relL2: best.relL2 };
}

/** What may be left of what is wrong, at most. */
const EXPLAINED = 0.02;
/** What a later hypothesis may leave of what an earlier one does. */
const CLEARLY = 0.5;

/** The same outputs times what fits best. */
function scaled(got: readonly number[], expected: readonly number[]): Hypothesis[] {
  let products = 0, squares = 0;
  expected.forEach((value, i) => {
    products += value * got[i]!;
    squares += value * value;
  });
  const factor = products / squares;
  if (!Number.isFinite(factor) || factor === 0) return [];
  return [{
    name: `all results times ${Number(factor.toPrecision(4))}`,
    values: () => Float64Array.from(expected, (value) => value * factor),
  }];
}

function distance(a: ArrayLike<number>, b: ArrayLike<number>, places: readonly number[]): number {
  return norm(places.map((at) => a[at]! - b[at]!));
}

function norm(values: readonly number[]): number {
  return Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
}
