import type { AxisTile, PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { driftFactor, type HighRounding, SPLIT_ROUNDING } from "../problem/split_rounding.ts";
import { foldedSums, type SimulatedSums, type SumOrder, type SumSource } from "./sum_source.ts";
import { highHalf } from "./split_sums.ts";
import { throughOutput, transformedSide } from "./tiled_sums.ts";
import type { RoundedTransform, TileTransforms } from "./transforms.ts";
import { addUnit, exponentOf } from "./unit_sums.ts";

const {
  top: TOP,
  smallBits,
  lightBits,
  lightest,
  enough: ENOUGH,
  least,
  most: MOST,
  chain: CHAIN,
} = SPLIT_ROUNDING;

/**
 * Winograd's sums of transformed f32 as two halves each (`SPLIT_ROUNDING`): patches are scaled by the largest value of their image or
 * channel, and of every step of a matrix unit the products of low and high halves, of high and low ones, of both high ones are added
 * as `unitSums()` adds them. Results that dark patches may put off, and those of what is beyond halves, are summed in f32 as they are.
 */
export function splitTiledSums(
  source: SumSource,
  transforms: TileTransforms,
  arithmetic: PlanArithmetic,
  { start = 0 }: SumOrder,
): SimulatedSums {
  const { units, lefts, rights, load, largest } = source;
  const { input, filter, output } = transforms;
  const alpha = input.exact.outputs;
  const results = output.exact.outputs;
  const depth = arithmetic.unit!;
  const pairs = lefts * rights;
  const sums = foldedSums(pairs * alpha, arithmetic, Math.fround);
  const { open } = sums;
  const made = () => new Float64Array(pairs * alpha);
  const [exact, magnitudes, squares] = [made(), made(), made()];
  const ofTiles = largest!.lefts ?? largestPatches(source, input.exact.inputs);
  const { highs = "nearest" } = arithmetic;
  const x = splitSide(transformedSide(lefts, input), ofTiles, depth, input, highs);
  const rightSide = transformedSide(rights, filter);
  const w = splitSide(rightSide, largest!.rights, depth, filter, "nearest");
  const products = new Float64Array(depth);
  for (let first = 0; first < units; first += depth) {
    const terms = Math.min(depth, units - first);
    for (let term = 0; term < terms; term++) {
      load((first + term + start) % units, x.side.patches, w.side.patches);
      x.take(term);
      w.take(term);
      for (let left = 0, i = 0; left < lefts; left++) {
        for (let right = 0; right < rights; right++) {
          for (let a = 0, l = left * alpha, r = right * alpha; a < alpha; a++, l++, r++, i++) {
            exact[i]! += x.side.exact[l]! * w.side.exact[r]!;
            magnitudes[i]! += x.side.positive[l]! * w.side.positive[r]!;
            squares[i]! += x.side.squares[l]! * w.side.squares[r]!;
          }
        }
      }
    }
    for (const [a, b] of [["low", "high"], ["high", "low"], ["high", "high"]] as const) {
      addProducts(x[a], w[b], terms);
    }
    for (let term = 0; term < terms; term++) sums.step();
  }
  const totals = sums.totals();
  const scaled = throughOutput(output.rounded, totals, pairs);
  const { largest: factors, norm } = outputFactors(output);
  let plain: ReturnType<typeof plainSums> | undefined;
  const values = new Float64Array(pairs * results);
  const enlarged = driftFactor(arithmetic);
  const nonNegative = (all: Float64Array) =>
    throughOutput(output.exact, all, pairs).map((value) => Math.max(0, value));
  const said = {
    exact: throughOutput(output.exact, exact, pairs),
    magnitudes: nonNegative(magnitudes),
    squares: nonNegative(squares),
  };
  for (let left = 0, pair = 0; left < lefts; left++) {
    for (let right = 0; right < rights; right++, pair++) {
      const [row, column] = [x.scales[left]!, w.scales[right]!];
      const tile = scaled.subarray(pair * results, (pair + 1) * results);
      const dark = x.dark[left]! + w.dark[right]!;
      const spread = factors.reduce(
        (all, factor, a) => Math.max(all, factor * Math.abs(totals[pair * alpha + a]!)),
        0,
      );
      const doubtful = row.beyond || column.beyond ||
        dark > 0 && spread < dark * ENOUGH / 2 * norm;
      if (doubtful) plain ??= plainSums(source, source.tiles!);
      for (let i = 0, at = pair * results; i < results; i++, at++) {
        values[at] = doubtful
          ? plain!.values[at]!
          : Math.fround(tile[i]! * enlarged * 2 ** (row.exponent + column.exponent));
        // Transforms spread infinities and NaN over a tile.
        if (!doubtful) continue;
        said.exact[at] = plain!.exact[at]!;
        said.magnitudes[at] = plain!.magnitudes[at]!;
        said.squares[at] = plain!.squares[at]!;
      }
    }
  }
  return {
    values,
    ...said,
    rests: new Float64Array(pairs * results),
    rounded: true,
  };

  /** Adds the products of one kind of halves of a step. */
  function addProducts(xs: Halves, ws: Halves, terms: number) {
    for (let left = 0, i = 0; left < lefts; left++) {
      for (let right = 0; right < rights; right++) {
        for (let a = 0; a < alpha; a++, i++) {
          let most = -Infinity;
          for (let term = 0; term < terms; term++) {
            const p = (term * lefts + left) * alpha + a, q = (term * rights + right) * alpha + a;
            most = Math.max(most, xs.exponents[p]! + ws.exponents[q]!);
            products[term] = xs.values[p]! * ws.values[q]!;
          }
          open[i] = addUnit(open[i]!, products, terms, most);
        }
      }
    }
  }
}

/** The largest value of all patches of each left one. */
function largestPatches(
  { units, lefts, rights, load, transforms }: SumSource,
  inputs: number,
): Float64Array {
  const largest = new Float64Array(lefts);
  const x = new Float64Array(lefts * inputs);
  const w = new Float64Array(rights * transforms!.filter.exact.inputs);
  for (let unit = 0; unit < units; unit++) {
    load(unit, x, w);
    x.forEach((value, at) => {
      const left = Math.floor(at / inputs);
      const size = Number.isFinite(value) ? Math.abs(value) : Infinity;
      largest[left] = Math.max(largest[left]!, size);
    });
  }
  return largest;
}

/** Values of a step, and their exponents. */
interface Halves {
  readonly values: Float64Array;
  readonly exponents: Float64Array;
}

/** One side's patches, transformed, scaled, and as halves. */
function splitSide(
  side: ReturnType<typeof transformedSide>,
  largest: Float64Array,
  depth: number,
  { exact: { inputs, outputs } }: RoundedTransform,
  rounding: HighRounding,
) {
  const count = largest.length;
  const scales = Array.from(largest, (value) => {
    const exponent = exponentOf(value);
    const beyond = exponent > MOST || value > 0 && exponent < least;
    return { exponent: value === 0 || beyond ? 0 : exponent - TOP, beyond };
  });
  const made = (): Halves => ({
    values: new Float64Array(depth * count * outputs),
    exponents: new Float64Array(depth * count * outputs),
  });
  const [high, low] = [made(), made()];
  const dark = new Float64Array(count);
  const put = ({ values, exponents }: Halves, at: number, value: number) => {
    values[at] = Math.f16round(value);
    exponents[at] = exponentOf(values[at]!);
  };
  return {
    side,
    scales,
    high,
    low,
    /** What the dark patches of each count. */
    dark,
    /** Takes the patches that are loaded as those of a term. */
    take(term: number) {
      side.transform();
      for (let one = 0; one < count; one++) {
        const { exponent, beyond } = scales[one]!;
        if (beyond) continue;
        const patch = side.patches.subarray(one * inputs, (one + 1) * inputs);
        const most = patch.reduce((all, value) => Math.max(all, Math.abs(value)), 0);
        const scaled = most * 2 ** -exponent;
        if (scaled > 0 && scaled < 2 ** (TOP - smallBits)) {
          dark[one]! += scaled < 2 ** (TOP - lightBits) ? lightest : 1;
        }
        for (let a = 0; a < outputs; a++) {
          const at = (term * count + one) * outputs + a;
          const value = side.rounded[one * outputs + a]! * 2 ** -exponent;
          const head = highHalf(value, rounding);
          put(high, at, head);
          put(low, at, value - head);
        }
      }
    },
  };
}

/** Of the output's transform: the largest factor of each sum, and the largest L1 norm of a row. */
function outputFactors({ exact: { inputs, outputs, apply } }: RoundedTransform) {
  const norms = new Float64Array(outputs);
  const largest = new Float64Array(inputs);
  const [unit, column] = [new Float64Array(inputs), new Float64Array(outputs)];
  for (let i = 0; i < inputs; i++) {
    unit.fill(0)[i] = 1;
    apply(unit, 0, column, 0);
    column.forEach((value, row) => {
      norms[row]! += Math.abs(value);
      largest[i] = Math.max(largest[i]!, Math.abs(value));
    });
  }
  return { largest, norm: Math.max(...norms) };
}

/** The sums as they are, in chains of f32. */
function plainSums({ units, lefts, rights, load }: SumSource, tiles: readonly AxisTile[]) {
  const [rows, columns] = tiles.length > 1 ? [tiles[0]!, tiles[1]!] : [{ n: 1, r: 1 }, tiles[0]!];
  const [height, width] = [rows.n + rows.r - 1, columns.n + columns.r - 1];
  const results = rows.n * columns.n;
  const count = lefts * rights * results;
  const x = new Float64Array(lefts * height * width);
  const w = new Float64Array(rights * rows.r * columns.r);
  const sums = foldedSums(count, { chain: CHAIN }, Math.fround);
  const { open } = sums;
  const made = () => new Float64Array(count);
  const [exact, magnitudes, squares] = [made(), made(), made()];
  for (let unit = 0; unit < units; unit++) {
    load(unit, x, w);
    for (let i = 0; i < rows.r; i++) {
      for (let j = 0; j < columns.r; j++) {
        for (let at = 0; at < count; at++) {
          const pair = Math.floor(at / results), result = at % results;
          const left = Math.floor(pair / rights), right = pair % rights;
          const y = Math.floor(result / columns.n) + i, z = result % columns.n + j;
          const product = x[(left * height + y) * width + z]! *
            w[(right * rows.r + i) * columns.r + j]!;
          open[at] = Math.fround(open[at]! + product);
          exact[at]! += product;
          magnitudes[at]! += Math.abs(product);
          squares[at]! += product * product;
        }
        sums.step();
      }
    }
  }
  return { values: sums.totals(), exact, magnitudes, squares };
}
