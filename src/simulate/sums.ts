import { type PlanArithmetic, type QuadSides, quadsOf } from "../problem/plan_arithmetic.ts";
import { productError, sumError } from "../reference/double_double.ts";
import { roundQuads } from "./quads.ts";
import type { PatchTransform, RoundedTransform, TileTransforms } from "./transforms.ts";

/**
 * Sums of products as every algorithm computes them: a left patch times a right patch in each of `units` units, for all
 * pairs of a few left and right ones. A patch is one value where there is no tile.
 */
export interface SumSource {
  readonly units: number;
  readonly lefts: number;
  readonly rights: number;
  /** Winograd's; plain products where absent. */
  readonly transforms?: TileTransforms;
  /** How many left, and right, ones at a time are neighbours in memory: four where absent. */
  readonly neighbours?: { readonly lefts: number; readonly rights: number };
  /** Loads the patches of one unit, those of one side one after the other. */
  load(unit: number, lefts: Float64Array, rights: Float64Array): void;
}

/** Sums of a source: [left][right][result of a tile]. */
export interface SimulatedSums {
  /** In simulated arithmetic. */
  readonly values: Float64Array;
  /** In doubles; of f64, in twice their precision rounded once, the rest in `rests`. */
  readonly exact: Float64Array;
  /** What `exact` leaves of the true sum: 0 but for f64. */
  readonly rests: Float64Array;
  /** Σ|a||b| */
  readonly magnitudes: Float64Array;
  /** Σ a²b² */
  readonly squares: Float64Array;
  /** Whether anything was rounded on the way: of whole numbers nothing is. */
  readonly rounded: boolean;
}

/** What may differ between runs that round alike. */
export interface SumOrder {
  /** Whether a product is rounded before it is added; WGSL leaves it open. */
  readonly separate?: boolean;
  /** The unit that the sums begin with; after the last one comes the first. */
  readonly start?: number;
}

/** Computes the sums of `source` as a plan rounds them. */
export function simulateSums(
  source: SumSource,
  arithmetic: PlanArithmetic,
  order: SumOrder = {},
): SimulatedSums {
  if (source.transforms !== undefined) {
    return tiledSums(source, source.transforms, arithmetic, order);
  }
  return arithmetic.sums === "f64"
    ? doubleSums(source, arithmetic, order)
    : arithmetic.unit !== undefined
    ? unitSums(source, arithmetic, arithmetic.unit, order)
    : plainSums(source, arithmetic, order);
}

/** Accumulators of `count` sums: chains are added to their segment's sum, and segments to the total. */
function foldedSums(count: number, { chain, segment }: PlanArithmetic, round: Round) {
  const open = new Float64Array(count);
  const segments = new Float64Array(count);
  const totals = new Float64Array(count);
  let inChain = 0, inSegment = 0;
  const add = (from: Float64Array, to: Float64Array) => {
    for (let i = 0; i < count; i++) to[i] = round(to[i]! + from[i]!);
    from.fill(0);
  };
  const foldChain = () => {
    inChain = 0;
    add(open, segments);
  };
  const foldSegment = () => {
    if (inChain > 0) foldChain();
    inSegment = 0;
    add(segments, totals);
  };
  return {
    /** What products are added to. */
    open,
    /** To be called after every unit. */
    step() {
      inChain++;
      inSegment++;
      if (inChain === chain) foldChain();
      if (inSegment === segment) foldSegment();
    },
    totals() {
      if (inSegment > 0) foldSegment();
      return totals;
    },
  };
}

type Round = (value: number) => number;

function plainSums(
  { units, lefts, rights, load }: SumSource,
  arithmetic: PlanArithmetic,
  { separate = false, start = 0 }: SumOrder,
): SimulatedSums {
  const count = lefts * rights;
  const half = arithmetic.sums === "f16";
  let rounded = false;
  const sums = foldedSums(count, arithmetic, Math.fround);
  const { open } = sums;
  const exact = new Float64Array(count);
  const magnitudes = new Float64Array(count);
  const squares = new Float64Array(count);
  const x = new Float64Array(lefts);
  const w = new Float64Array(rights);
  for (let step = 0; step < units; step++) {
    load((step + start) % units, x, w);
    for (let left = 0, i = 0; left < lefts; left++) {
      const value = x[left]!;
      if (value === 0) {
        i += rights;
        continue;
      }
      for (let right = 0; right < rights; right++, i++) {
        const product = value * w[right]!;
        const added = !separate ? product : half ? Math.f16round(product) : Math.fround(product);
        const sum = open[i]! + added;
        const next = half ? Math.f16round(sum) : Math.fround(sum);
        if (next !== sum || added !== product) rounded = true;
        open[i] = next;
        exact[i]! += product;
        magnitudes[i]! += Math.abs(product);
        squares[i]! += product * product;
      }
    }
    sums.step();
  }
  const rests = new Float64Array(count);
  return { values: sums.totals(), exact, rests, magnitudes, squares, rounded };
}

/** Bits of the 24 of f32 and of the two behind them, from the first bit of the largest term on. */
const UNIT_BITS = 25;

/**
 * Sums of matrix units as NVIDIA's make them (measured, docs/accuracy.md): the sum so far and the exact products of a step are
 * cut off behind two bits more than f32 has of the largest of them, added, and cut off to f32. A product counts as large as
 * its factors' exponents say. Units of other makers err less.
 */
function unitSums(
  { units, lefts, rights, load }: SumSource,
  arithmetic: PlanArithmetic,
  depth: number,
  { start = 0 }: SumOrder,
): SimulatedSums {
  const count = lefts * rights;
  let rounded = false;
  const sums = foldedSums(count, arithmetic, Math.fround);
  const { open } = sums;
  const exact = new Float64Array(count);
  const magnitudes = new Float64Array(count);
  const squares = new Float64Array(count);
  const patch = (size: number) => Array.from({ length: depth }, () => new Float64Array(size));
  const [xs, ws] = [patch(lefts), patch(rights)];
  const [xExponents, wExponents] = [patch(lefts), patch(rights)];
  for (let first = 0; first < units; first += depth) {
    const terms = Math.min(depth, units - first);
    for (let term = 0; term < terms; term++) {
      load((first + term + start) % units, xs[term]!, ws[term]!);
      for (let i = 0; i < lefts; i++) xExponents[term]![i] = exponentOf(xs[term]![i]!);
      for (let i = 0; i < rights; i++) wExponents[term]![i] = exponentOf(ws[term]![i]!);
    }
    for (let left = 0, i = 0; left < lefts; left++) {
      for (let right = 0; right < rights; right++, i++) {
        const before = open[i]!;
        let largest = exponentOf(before);
        for (let term = 0; term < terms; term++) {
          largest = Math.max(largest, xExponents[term]![left]! + wExponents[term]![right]!);
          const product = xs[term]![left]! * ws[term]![right]!;
          exact[i]! += product;
          magnitudes[i]! += Math.abs(product);
          squares[i]! += product * product;
        }
        if (largest === -Infinity) continue;
        const last = 2 ** (largest - UNIT_BITS);
        const cut = (value: number) => Math.trunc(value / last) * last;
        let sum = before;
        let kept = cut(before);
        for (let term = 0; term < terms; term++) {
          const product = xs[term]![left]! * ws[term]![right]!;
          sum += product;
          kept += cut(product);
        }
        const next = towardZero(kept);
        if (next !== sum) rounded = true;
        open[i] = next;
      }
    }
    for (let term = 0; term < terms; term++) sums.step();
  }
  const rests = new Float64Array(count);
  return { values: sums.totals(), exact, rests, magnitudes, squares, rounded };
}

/** e of a value from 2^e up to 2^(e + 1); −∞ of 0. */
function exponentOf(value: number): number {
  if (value === 0) return -Infinity;
  const size = Math.abs(value);
  const near = Math.floor(Math.log2(size));
  // The logarithm rounds.
  return size < 2 ** near ? near - 1 : size >= 2 ** (near + 1) ? near + 1 : near;
}

const FLOAT = new Float32Array(1);
const WORD = new Int32Array(FLOAT.buffer);

/** The f32 next to a value, toward zero. */
function towardZero(value: number): number {
  FLOAT[0] = value;
  if (Math.abs(FLOAT[0]!) > Math.abs(value)) WORD[0]! -= 1;
  return FLOAT[0]!;
}

/** Sums in doubles, and the true ones by exact products and sums with their rounding errors (Dekker, Knuth). */
function doubleSums(
  { units, lefts, rights, load }: SumSource,
  arithmetic: PlanArithmetic,
  { separate = false, start = 0 }: SumOrder,
): SimulatedSums {
  const count = lefts * rights;
  let rounded = false;
  const sums = foldedSums(count, arithmetic, (value) => value);
  const { open } = sums;
  const exact = new Float64Array(count);
  const rests = new Float64Array(count);
  const magnitudes = new Float64Array(count);
  const squares = new Float64Array(count);
  const x = new Float64Array(lefts);
  const w = new Float64Array(rights);
  for (let step = 0; step < units; step++) {
    load((step + start) % units, x, w);
    for (let left = 0, i = 0; left < lefts; left++) {
      for (let right = 0; right < rights; right++, i++) {
        const a = x[left]!, b = w[right]!;
        const product = a * b;
        const error = productError(a, b, product);
        const sum = exact[i]! + product;
        rests[i]! += sumError(exact[i]!, product, sum) + error;
        exact[i] = sum;
        // A fused multiply-add rounds the exact product and sum once.
        const next = open[i]! + product;
        const lost = sumError(open[i]!, product, next) + error;
        if (lost !== 0) rounded = true;
        open[i] = separate ? next : next + lost;
        magnitudes[i]! += Math.abs(product);
        squares[i]! += product * product;
      }
    }
    sums.step();
  }
  return { values: sums.totals(), exact, rests, magnitudes, squares, rounded };
}

function tiledSums(
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
  const through = ({ apply }: PatchTransform, sums: Float64Array) => {
    const made = new Float64Array(pairs * results);
    for (let i = 0; i < pairs; i++) apply(sums, i * alpha, made, i * results);
    return made;
  };
  const nonNegative = (sums: Float64Array) =>
    through(output.exact, sums).map((value) => Math.max(0, value));
  return {
    values: totals ? through(output.rounded, totals) : outer!.totals(open),
    exact: through(output.exact, exact),
    rests: new Float64Array(pairs * results),
    magnitudes: nonNegative(magnitudes),
    squares: nonNegative(squares),
    rounded,
  };
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
function transformedSide(count: number, { rounded, exact }: RoundedTransform, round?: Round) {
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
