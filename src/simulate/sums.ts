import type { AxisTile, PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { SPLIT_ROUNDING } from "../problem/split_rounding.ts";
import { productError, sumError } from "../reference/double_double.ts";
import { splitSums } from "./split_sums.ts";
import { splitTiledSums } from "./split_tiles.ts";
import {
  foldedSums,
  roundedSource,
  ROUNDINGS,
  type SimulatedSums,
  type SumOrder,
  type SumSource,
} from "./sum_source.ts";
import { tiledSums } from "./tiled_sums.ts";
import { unitSums } from "./unit_sums.ts";

/** Complex values of a tile: real parts, then imaginary ones. */
type Spectrum = Float64Array;

/**
 * Correlations of patches with taps by transforms of patches and taps in f32, sums of their products over units in f32, and
 * transforms back. Roundings spread over all of a tile, so errors are in proportion to all that it has.
 */
function fftSums(
  source: SumSource,
  tiles: readonly AxisTile[],
  { start = 0 }: SumOrder,
): SimulatedSums {
  const { units, lefts, rights, load } = source;
  const alphas = tiles.map(({ n, r }) => n + r - 1);
  const taps = tiles.map(({ r }) => r), results = tiles.map(({ n }) => n);
  const [patch, kernel] = [product(alphas), product(taps)];
  const sizes = alphas.map((alpha) => 2 ** Math.ceil(Math.log2(alpha)));
  const xs = new Float64Array(lefts * patch), ws = new Float64Array(rights * kernel);
  const kinds = [
    { rounds: true, of: (value: number) => value },
    { rounds: false, of: (value: number) => value },
    { rounds: false, of: Math.abs },
    { rounds: false, of: (value: number) => value * value },
  ].map((kind) => ({ ...kind, sums: spectra(lefts * rights, sizes) }));
  for (let step = 0; step < units; step++) {
    load((step + start) % units, xs, ws);
    for (const { rounds, of, sums } of kinds) {
      const x = transformed(xs.map(of), lefts, alphas, sizes, rounds);
      const w = transformed(ws.map(of), rights, taps, sizes, rounds);
      for (let left = 0, i = 0; left < lefts; left++) {
        for (let right = 0; right < rights; right++, i++) {
          addProduct(sums[i]!, x[left]!, w[right]!, rounds);
        }
      }
    }
  }
  const [values, exact, magnitudes, squares] = kinds.map(({ rounds, sums }) =>
    backTransformed(sums, results, sizes, rounds)
  );
  return {
    values: values!,
    exact: exact!,
    rests: new Float64Array(exact!.length),
    magnitudes: magnitudes!.map((value) => Math.max(0, value)),
    squares: squares!.map((value) => Math.max(0, value)),
    rounded: true,
  };
}

function product(sizes: readonly number[]): number {
  return sizes.reduce((all, one) => all * one, 1);
}

function spectra(count: number, sizes: readonly number[]): Spectrum[] {
  return Array.from({ length: count }, () => new Float64Array(2 * product(sizes)));
}

/** The spectra of tiles of `extents`, zero beyond them. */
function transformed(
  data: Float64Array,
  count: number,
  extents: readonly number[],
  sizes: readonly number[],
  rounds: boolean,
): Spectrum[] {
  const each = product(extents);
  return spectra(count, sizes).map((spectrum, one) => {
    for (let i = 0; i < each; i++) spectrum[place(i, extents, sizes)] = data[one * each + i]!;
    transform(spectrum, sizes, 1, rounds);
    return spectrum;
  });
}

/** The first results of tiles whose spectra were summed. */
function backTransformed(
  sums: readonly Spectrum[],
  results: readonly number[],
  sizes: readonly number[],
  rounds: boolean,
): Float64Array {
  const each = product(results), scale = 1 / product(sizes);
  const made = new Float64Array(sums.length * each);
  sums.forEach((sum, one) => {
    transform(sum, sizes, -1, rounds);
    for (let i = 0; i < each; i++) made[one * each + i] = sum[place(i, results, sizes)]! * scale;
  });
  return made;
}

/** Where an element of a part of a tile lies in the whole of it. */
function place(index: number, extents: readonly number[], sizes: readonly number[]): number {
  let at = 0, step = 1;
  for (let axis = sizes.length - 1; axis >= 0; axis--) {
    at += (index % extents[axis]!) * step;
    index = Math.floor(index / extents[axis]!);
    step *= sizes[axis]!;
  }
  return at;
}

/** Adds a spectrum times the conjugate of the taps', which correlates. */
function addProduct(
  sum: Spectrum,
  x: Spectrum,
  w: Spectrum,
  rounds: boolean,
): void {
  const half = sum.length / 2;
  for (let i = 0; i < half; i++) {
    const a = x[i]!, b = x[half + i]!, c = w[i]!, d = w[half + i]!;
    sum[i] = rounded(rounded(sum[i]! + a * c, rounds) + b * d, rounds);
    sum[half + i] = rounded(rounded(sum[half + i]! + b * c, rounds) - a * d, rounds);
  }
}

/** Transforms along each axis in place: forward, or backward without its factor. */
function transform(
  values: Spectrum,
  sizes: readonly number[],
  sign: 1 | -1,
  rounds: boolean,
): void {
  const total = product(sizes);
  let step = 1;
  for (let axis = sizes.length - 1; axis >= 0; axis--) {
    const size = sizes[axis]!;
    const turns = turnsOf(size, sign, rounds);
    for (let outer = 0; outer < total; outer += step * size) {
      for (let inner = 0; inner < step; inner++) {
        line(values, outer + inner, step, size, turns, rounds);
      }
    }
    step *= size;
  }
}

/** Cosines and sines of a transform of `size` values, in turn. */
function turnsOf(size: number, sign: 1 | -1, rounds: boolean): Float64Array {
  return Float64Array.from({ length: size }, (_, i) => {
    const angle = -sign * 2 * Math.PI * (i >> 1) / size;
    return rounded(i % 2 === 0 ? Math.cos(angle) : Math.sin(angle), rounds);
  });
}

/** A value as f32 keeps it, or as it is: a flag, since a function that is passed costs most of the time. */
function rounded(value: number, rounds: boolean): number {
  return rounds ? Math.fround(value) : value;
}

/** A radix-2 transform of `size` values `step` apart. */
function line(
  values: Spectrum,
  first: number,
  step: number,
  size: number,
  turns: Float64Array,
  rounds: boolean,
): void {
  const half = values.length / 2;
  for (let i = 1, j = 0; i < size; i++) {
    let bit = size >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i >= j) continue;
    for (let part = first; part <= first + half; part += half) {
      const a = part + i * step, b = part + j * step, value = values[a]!;
      values[a] = values[b]!;
      values[b] = value;
    }
  }
  for (let width = 2; width <= size; width *= 2) {
    for (let k = 0; k < width / 2; k++) {
      const turn = 2 * k * (size / width), c = turns[turn]!, s = turns[turn + 1]!;
      for (let i = k; i < size; i += width) {
        const a = first + i * step, b = a + width / 2 * step;
        const x = values[b]!, y = values[half + b]!;
        const re = rounded(rounded(x * c, rounds) - y * s, rounds);
        const im = rounded(rounded(x * s, rounds) + y * c, rounds);
        const p = values[a]!, q = values[half + a]!;
        values[a] = rounded(p + re, rounds);
        values[half + a] = rounded(q + im, rounds);
        values[b] = rounded(p - re, rounds);
        values[half + b] = rounded(q - im, rounds);
      }
    }
  }
}

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
