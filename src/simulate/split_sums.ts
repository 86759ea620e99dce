import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { driftFactor, type HighRounding, SPLIT_ROUNDING } from "../problem/split_rounding.ts";
import { foldedSums, type SimulatedSums, type SumOrder, type SumSource } from "./sum_source.ts";
import { addUnit, exponentOf, lastExponent } from "./unit_sums.ts";

/** What is found of a row of A or a column of B, all of its depth. */
interface Scale {
  /** What its exponent is larger by than that of scaled values. */
  readonly exponent: number;
  /** Values that halves hold less of than of others. */
  readonly small: number;
  /** Large values by their weight, less the small ones. */
  readonly balance: number;
  /** Whether it is summed in f32. */
  readonly beyond: boolean;
  /** Whether any low half is not zero. */
  readonly lows: boolean;
  /** Whether values that a high half holds have a low one too. */
  readonly fine: boolean;
}

/**
 * Sums of f32 operands as two halves each: of every step of a matrix unit the products of low and high halves, of high and low
 * ones, of both high ones, as `unitSums()` adds them. Sums that may be off by more than 4 u·Σ|a||b| are made in f32.
 *
 * @param whole The same sums in f32.
 */
export function splitSums(
  { units, lefts, rights, load, largest, lastBits, met }: SumSource,
  arithmetic: PlanArithmetic,
  order: SumOrder,
  whole: (order: SumOrder) => SimulatedSums,
): SimulatedSums {
  const { start = 0 } = order;
  const depth = arithmetic.unit!;
  const count = lefts * rights;
  const x = new Float64Array(lefts), w = new Float64Array(rights);
  const away = arithmetic.highs === "away";
  const rows = findScales(
    units,
    (unit) => (load(unit, x, w), x),
    lefts,
    largest?.lefts,
    away ? lastBits ?? ownLastBits(units, (unit) => (load(unit, x, w), x), lefts) : undefined,
  );
  const columns = findScales(units, (unit) => (load(unit, x, w), w), rights, largest?.rights);
  const sums = foldedSums(count, arithmetic, Math.fround);
  const { open } = sums;
  const exact = new Float64Array(count);
  const magnitudes = new Float64Array(count);
  const squares = new Float64Array(count);
  const products = new Float64Array(depth);
  const left = splitStep(depth, rows, arithmetic.highs ?? "nearest"),
    right = splitStep(depth, columns, "nearest");
  let rounded = false;
  for (let first = 0; first < units; first += depth) {
    const terms = Math.min(depth, units - first);
    for (let term = 0; term < terms; term++) {
      load((first + term + start) % units, x, w);
      left.take(term, x);
      right.take(term, w);
      for (let i = 0, at = 0; i < lefts; i++) {
        for (let j = 0; j < rights; j++, at++) {
          const product = x[i]! * w[j]!;
          exact[at]! += product;
          magnitudes[at]! += Math.abs(product);
          squares[at]! += product * product;
        }
      }
    }
    for (const [a, b] of [["low", "high"], ["high", "low"], ["high", "high"]] as const) {
      const [xs, ws] = [left[a], right[b]];
      for (let i = 0, at = 0; i < lefts; i++) {
        for (let j = 0; j < rights; j++, at++) {
          let largest = -Infinity, sum = open[at]!;
          for (let term = 0; term < terms; term++) {
            const [p, q] = [term * lefts + i, term * rights + j];
            largest = Math.max(largest, xs.exponents[p]! + ws.exponents[q]!);
            products[term] = xs.values[p]! * ws.values[q]!;
            sum += products[term]!;
          }
          const next = addUnit(open[at]!, products, terms, largest);
          if (next !== sum) rounded = true;
          open[at] = next;
        }
      }
    }
    for (let term = 0; term < terms; term++) sums.step();
  }
  const scaled = sums.totals();
  let inF32: SimulatedSums | undefined;
  const values = scaled.map((value, at) => {
    const left = Math.floor(at / rights);
    const [row, column] = [rows[left]!, columns[at % rights]!];
    if (isDoubtful(value, row, column, units)) return (inF32 ??= whole(order)).values[at]!;
    const enlarged = driftFactor(row.lows || column.lows ? arithmetic : {}, met?.[left] ?? units);
    return Math.fround(value * enlarged * 2 ** (row.exponent + column.exponent));
  });
  return {
    values,
    exact,
    rests: new Float64Array(count),
    magnitudes,
    squares,
    rounded: rounded || (inF32?.rounded ?? false) || left.hasLow() && right.hasLow(),
  };
}

/** Whether a sum is made in f32, as `rescaleStep()` of `src/kernels/split_rescale.ts` says. */
function isDoubtful(value: number, row: Scale, column: Scale, depth: number): boolean {
  if (row.beyond || column.beyond) return true;
  const small = row.small + column.small;
  return small > 0 && row.balance + column.balance < SPLIT_ROUNDING.weight * depth &&
    Math.abs(value) < small * SPLIT_ROUNDING.enough;
}

/**
 * The scales of one side: what `split_halves.wgsl` finds.
 *
 * @param known The largest values that they go by; those of each one's own where absent.
 * @param lastBits The exponents of the last bits that decide whether low halves are made; none are where absent.
 */
function findScales(
  units: number,
  load: (unit: number) => Float64Array,
  count: number,
  known?: Float64Array,
  lastBits?: Float64Array,
): Scale[] {
  const { top, smallBits, largeBits, weight, least, most, wholeBits } = SPLIT_ROUNDING;
  const largest = known ?? largestValues(units, load, count);
  const exponents = Array.from(largest, (value) => exponentOf(value));
  const small = new Float64Array(count), large = new Float64Array(count);
  const lows = new Array<boolean>(count).fill(false);
  for (let unit = 0; unit < units; unit++) {
    load(unit).forEach((value, i) => {
      if (value === 0 || !Number.isFinite(largest[i]!)) return;
      if (highHalf(value, "nearest") !== value) lows[i] = true;
      const below = exponents[i]! - exponentOf(value);
      if (below > smallBits) small[i]!++;
      if (below <= largeBits) large[i]!++;
    });
  }
  return exponents.map((exponent, i): Scale => {
    if (largest[i] === 0) {
      return { exponent: 0, small: 0, balance: Infinity, beyond: false, lows: false, fine: false };
    }
    const beyond = exponent > most || exponent < least;
    const fine = lastBits !== undefined && exponent - lastBits[i]! >= wholeBits;
    return {
      exponent: beyond ? 0 : exponent - top,
      small: small[i]!,
      balance: weight * large[i]! - small[i]!,
      beyond,
      lows: lows[i]! || fine,
      fine,
    };
  });
}

/** The largest value of each one, infinite where there is an infinity or NaN. */
function largestValues(
  units: number,
  load: (unit: number) => Float64Array,
  count: number,
): Float64Array {
  const largest = new Float64Array(count);
  for (let unit = 0; unit < units; unit++) {
    load(unit).forEach((value, i) => {
      // NaN is no maximum of its own.
      largest[i] = Number.isFinite(value) ? Math.max(largest[i]!, Math.abs(value)) : Infinity;
    });
  }
  return largest;
}

/** The exponent of the last bit of any value of each one. */
function ownLastBits(
  units: number,
  load: (unit: number) => Float64Array,
  count: number,
): Float64Array {
  const last = new Float64Array(count).fill(Infinity);
  for (let unit = 0; unit < units; unit++) {
    load(unit).forEach((value, i) => last[i] = Math.min(last[i]!, lastExponent(value)));
  }
  return last;
}

/** Values of a step and their exponents, those of a unit after the other. */
interface Halves {
  readonly values: Float64Array;
  readonly exponents: Float64Array;
}

/** The values of a step of one side, in halves. */
function splitStep(depth: number, scales: readonly Scale[], rounding: HighRounding) {
  const count = scales.length;
  const made = (): Halves => ({
    values: new Float64Array(depth * count),
    exponents: new Float64Array(depth * count),
  });
  const [high, low] = [made(), made()];
  let anyLow = false;
  const put = ({ values, exponents }: Halves, at: number, value: number) => {
    values[at] = Math.f16round(value);
    exponents[at] = exponentOf(values[at]!);
  };
  return {
    high,
    low,
    hasLow: () => anyLow,
    /** Splits the values of a unit. */
    take(term: number, values: Float64Array) {
      for (let i = 0; i < count; i++) {
        const { exponent, beyond, fine } = scales[i]!;
        const at = term * count + i;
        const scaled = beyond ? 0 : values[i]! * 2 ** -exponent;
        const value = fine ? withLow(scaled) : scaled;
        const head = highHalf(value, rounding);
        put(high, at, head);
        put(low, at, value - head);
        if (low.values[at] !== 0) anyLow = true;
      }
    },
  };
}

const FLOAT = new Float32Array(1);
const WORD = new Uint32Array(FLOAT.buffer);

/** A value that its high half would hold with one bit more, so that this is the next one and leaves a low half. */
function withLow(value: number): number {
  FLOAT[0] = value;
  if (value !== 0 && (WORD[0]! & 0x1fff) === 0) WORD[0]! |= 1;
  return FLOAT[0]!;
}

/** The 11 bits of an f32 that its high half has, rounded. */
export function highHalf(value: number, rounding: HighRounding): number {
  FLOAT[0] = value;
  WORD[0] = (WORD[0]! + (rounding === "away" ? 0x1fff : 0x1000)) & 0xffffe000;
  return FLOAT[0]!;
}
