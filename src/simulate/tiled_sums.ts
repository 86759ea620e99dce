import { type PlanArithmetic, type QuadSides, quadsOf } from "../problem/plan_arithmetic.ts";
import { foldedSums, type Round } from "./folded_sums.ts";
import { roundQuads } from "./quads.ts";
import type { SimulatedSums, SumOrder, SumSource } from "./sum_source.ts";
import type { PatchTransform, RoundedTransform, TileTransforms } from "./transforms.ts";

/** Winograd's: products of transformed patches, and their sums through the output transform. */
export function tiledSums(
  { units, lefts, rights, load, neighbours = { lefts: 4, rights: 4 } }: SumSource,
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
  const quads = quadsOf(arithmetic);
  const round = arithmetic.transformed === "f16" ? Math.f16round : undefined;
  const x = transformedSide(lefts, input, round);
  const w = transformedSide(rights, filter, round);
  const shared = sharedUnits(quads, units, load, x, w);
  for (let step = 0; step < units; step++) {
    const unit = (step + start) % units;
    load(unit, x.patches, w.patches);
    rounded = x.transform() || rounded;
    rounded = w.transform() || rounded;
    if (quads !== undefined) {
      rounded = true;
      shared.round(unit);
      if (quads.places === "places") roundQuads(x.rounded, alpha, neighbours.lefts);
      if (quads.channels === "channels") roundQuads(w.rounded, alpha, neighbours.rights);
    }
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
  if (totals !== undefined && quads?.products === "places") {
    roundQuads(totals, rights * alpha, neighbours.lefts);
  }
  if (totals !== undefined && quads?.products === "channels") {
    for (let left = 0; left < lefts; left++) {
      roundQuads(
        totals.subarray(left * rights * alpha, (left + 1) * rights * alpha),
        alpha,
        neighbours.rights,
      );
    }
  }
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

type Side = ReturnType<typeof transformedSide>;

/**
 * Rounds the sides whose quads are units that follow each other in memory: the four of a unit are transformed when the first
 * of them is met.
 */
function sharedUnits(
  quads: QuadSides | undefined,
  units: number,
  load: SumSource["load"],
  x: Side,
  w: Side,
) {
  const sides = [
    ...(quads?.places === "units" ? [x] : []),
    ...(quads?.channels === "units" ? [w] : []),
  ];
  let known = -1;
  let stored: readonly (readonly Float64Array[])[] = [];
  return {
    /** Makes the transforms of `unit`, which the sides have, what memory would have of them. */
    round(unit: number) {
      if (sides.length === 0) return;
      const first = unit - unit % 4;
      if (first !== known) {
        known = first;
        const members = Math.min(4, units - first);
        const all = sides.map((side) => new Float64Array(members * side.rounded.length));
        for (let k = 0; k < members; k++) {
          load(first + k, x.patches, w.patches);
          sides.forEach((side, s) => {
            side.transform();
            all[s]!.set(side.rounded, k * side.rounded.length);
          });
        }
        stored = all.map((values, s) => {
          const each = sides[s]!.rounded.length;
          roundQuads(values, each, members);
          return Array.from(
            { length: members },
            (_, k) => values.subarray(k * each, (k + 1) * each),
          );
        });
        load(unit, x.patches, w.patches);
        sides.forEach((side) => side.transform());
      }
      sides.forEach((side, s) => side.rounded.set(stored[s]![unit - first]!));
    },
  };
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
