import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import {
  foldedSums,
  type Round,
  ROUNDINGS,
  type SimulatedSums,
  type SumOrder,
  type SumSource,
} from "./sum_source.ts";
import type { PatchTransform, RoundedTransform, TileTransforms } from "./transforms.ts";

/** Winograd's: products of transformed patches, and their sums through the output transform. */
export function tiledSums(
  { units, lefts, rights, load }: SumSource,
  { input, filter, output }: TileTransforms,
  arithmetic: PlanArithmetic,
  { separate = false, start = 0 }: SumOrder,
): SimulatedSums {
  const alpha = input.exact.outputs;
  const { outputs: results } = output.exact;
  const pairs = lefts * rights;
  const late = arithmetic.fold === "results";
  let rounded = false;
  // Where chains meet as results, each is transformed by itself.
  const chained = late ? undefined : foldedSums(pairs * alpha, arithmetic, Math.fround);
  const open = chained?.open ?? new Float64Array(pairs * alpha);
  const outer = late ? foldedResults(pairs, alpha, results, arithmetic, output.rounded) : undefined;
  const exact = new Float64Array(pairs * alpha);
  const magnitudes = new Float64Array(pairs * alpha);
  const squares = new Float64Array(pairs * alpha);
  const { transformed } = arithmetic;
  const round = transformed === undefined ? undefined : ROUNDINGS[transformed];
  const x = transformedSide(lefts, input, round);
  const w = transformedSide(rights, filter, round);
  for (let step = 0; step < units; step++) {
    const unit = (step + start) % units;
    load(unit, x.patches, w.patches);
    rounded = x.transform() || rounded;
    rounded = w.transform() || rounded;
    for (let left = 0, i = 0; left < lefts; left++) {
      for (let right = 0; right < rights; right++) {
        for (let a = 0, l = left * alpha, r = right * alpha; a < alpha; a++, l++, r++, i++) {
          const product = x.rounded[l]! * w.rounded[r]!;
          const sum = open[i]! + (separate ? Math.fround(product) : product);
          const next = Math.fround(sum);
          if (next !== sum) rounded = true;
          open[i] = next;
          exact[i]! += x.exact[l]! * w.exact[r]!;
          magnitudes[i]! += x.positive[l]! * w.positive[r]!;
          squares[i]! += x.squares[l]! * w.squares[r]!;
        }
      }
    }
    if (chained) chained.step();
    else outer!.step(open);
  }
  const totals = chained?.totals();
  const nonNegative = (sums: Float64Array) =>
    throughOutput(output.exact, sums, pairs).map((value) => Math.max(0, value));
  return {
    values: totals ? throughOutput(output.rounded, totals, pairs) : outer!.totals(open),
    exact: throughOutput(output.exact, exact, pairs),
    rests: new Float64Array(pairs * results),
    magnitudes: nonNegative(magnitudes),
    squares: nonNegative(squares),
    rounded,
  };
}

/** Transforms the sums of each pair. */
export function throughOutput(
  { inputs, outputs, apply }: PatchTransform,
  sums: Float64Array,
  pairs: number,
): Float64Array {
  const made = new Float64Array(pairs * outputs);
  for (let i = 0; i < pairs; i++) apply(sums, i * inputs, made, i * outputs);
  return made;
}

/**
 * The patches of one side, and their transforms: in f32, exact, of their sizes and of their squares.
 *
 * @param round What the transforms in f32 are rounded by before they are multiplied.
 */
export function transformedSide(
  count: number,
  { rounded, exact }: RoundedTransform,
  round?: Round,
) {
  const { inputs, outputs } = exact;
  const patches = new Float64Array(count * inputs);
  const sizes = new Float64Array(patches.length);
  const powers = new Float64Array(patches.length);
  const made = () => new Float64Array(count * outputs);
  const side = { patches, rounded: made(), exact: made(), positive: made(), squares: made() };
  return {
    ...side,
    /** Whether rounding changed anything. */
    transform(): boolean {
      for (let i = 0; i < patches.length; i++) {
        sizes[i] = Math.abs(patches[i]!);
        powers[i] = patches[i]! * patches[i]!;
      }
      for (let one = 0; one < count; one++) {
        const [from, to] = [one * inputs, one * outputs];
        rounded.apply(patches, from, side.rounded, to);
        exact.apply(patches, from, side.exact, to);
        exact.apply(sizes, from, side.positive, to);
        exact.apply(powers, from, side.squares, to);
      }
      if (round === undefined) return false;
      let changed = false;
      side.rounded.forEach((value, i) => {
        const kept = round(value);
        if (kept !== value) changed = true;
        side.rounded[i] = kept;
      });
      return changed;
    },
  };
}

/** Chains that are transformed before they meet: what `foldedSums` does, of results. */
function foldedResults(
  pairs: number,
  alpha: number,
  results: number,
  { chain, segment }: PlanArithmetic,
  output: { apply(from: Float64Array, start: number, to: Float64Array, end: number): void },
) {
  // A chain is one step of the sums of results.
  const perSegment = segment === undefined ? undefined : Math.ceil(segment / (chain ?? segment));
  const sums = foldedSums(
    pairs * results,
    { chain: 1, ...(perSegment === undefined ? {} : { segment: perSegment }) },
    Math.fround,
  );
  let inChain = 0, inSegment = 0;
  const flush = (open: Float64Array) => {
    for (let i = 0; i < pairs; i++) output.apply(open, i * alpha, sums.open, i * results);
    open.fill(0);
    inChain = 0;
    sums.step();
  };
  return {
    step(open: Float64Array) {
      inChain++;
      inSegment++;
      const ends = inSegment === segment;
      if (inChain === chain || ends) flush(open);
      if (ends) inSegment = 0;
    },
    totals(open: Float64Array) {
      if (inChain > 0) flush(open);
      return sums.totals();
    },
  };
}
