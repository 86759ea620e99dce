import { SPLIT_ROUNDING } from "../problem/split_rounding.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { productError, sumError } from "../reference/double_double.ts";
import { roundedSource, ROUNDINGS } from "./roundings.ts";
import { fftSums } from "./fft_sums.ts";
import { foldedSums, type SimulatedSums, type SumOrder, type SumSource } from "./sum_source.ts";
import { splitSums } from "./split_sums.ts";
import { splitTiledSums } from "./split_tiles.ts";
import { tiledSums } from "./tiled_sums.ts";
import { unitSums } from "./unit_sums.ts";

/** Computes the sums of `source` as a plan rounds them. */
export function simulateSums(
  source: SumSource,
  arithmetic: PlanArithmetic,
  order: SumOrder = {},
): SimulatedSums {
  const { operands, ...rest } = arithmetic;
  if (operands !== undefined) {
    const made = simulateSums(roundedSource(source, ROUNDINGS[operands]), rest, order);
    const whole = simulateSums(source, rest, order);
    const same = made.exact.every((value, i) => value === whole.exact[i]);
    return { ...whole, values: made.values, rounded: made.rounded || !same };
  }
  if (arithmetic.lanes !== undefined) {
    const { lanes, ...own } = arithmetic;
    return simulateSums(dealtSource(source, lanes), own, order);
  }
  if (arithmetic.math === "fft") return fftSums(source, source.tiles!, order);
  if (source.transforms !== undefined) {
    const simulate = arithmetic.math === "f16x3" ? splitTiledSums : tiledSums;
    return simulate(source, source.transforms, arithmetic, order);
  }
  return arithmetic.sums === "f64"
    ? doubleSums(source, arithmetic, order)
    : arithmetic.math === "f16x3"
    ? splitSums(source, arithmetic, order, (order) =>
      plainSums(source, { chain: SPLIT_ROUNDING.chain }, order))
    : arithmetic.unit !== undefined
    ? unitSums(source, arithmetic, arithmetic.unit, order)
    : plainSums(source, arithmetic, order);
}

/** A source whose units are dealt to lanes in turn: all of the first lane come first. */
function dealtSource(source: SumSource, lanes: number): SumSource {
  const all = Array.from({ length: source.units }, (_, unit) => unit);
  const dealt = all.toSorted((one, other) => one % lanes - other % lanes);
  return { ...source, load: (unit, lefts, rights) => source.load(dealt[unit]!, lefts, rights) };
}

function plainSums(
  { units, lefts, rights, initial, load }: SumSource,
  arithmetic: PlanArithmetic,
  { separate = false, start = 0 }: SumOrder,
): SimulatedSums {
  const count = lefts * rights;
  const half = arithmetic.sums === "f16";
  let rounded = false;
  const sums = foldedSums(count, arithmetic, Math.fround);
  const { open } = sums;
  if (initial !== undefined) open.set(initial);
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
