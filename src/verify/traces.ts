/**
 * Traces that coarser roundings than the claimed ones leave, whatever the size of errors: long sums, and sums in f16, err by more than
 * roundings that are to be found beside them.
 */
import { type Precision, stored, type Yardstick } from "../accuracy/mod.ts";
import { comparison } from "../accuracy/walk.ts";
import type { OperandRounding, PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { type Checked, type Reference, resultStrides, yardstickOf } from "../run/check.ts";
import { type HostData, type HostOperands, isIntegral } from "../run/subject.ts";
import { ROUNDINGS } from "../simulate/sum_source.ts";
import { sampledOutputs, spread } from "./hypothesis.ts";
import { besides } from "./unrounded.ts";

/** Outputs that are looked at. */
const COUNT = 1024;
/** Fewer different ones say nothing. */
const FEWEST = 32;
/** So many right results have all their last bits 0 by no chance. */
const FEWEST_RESULTS = 16;
/** Results below this share of Σ|a||b| have last bits that rounding decides. */
const CANCELLED = 2 ** -8;
/** Errors below which operands are rounded to nothing that is known here. */
const LEAST_REL_L2 = 1e-6;
/** What rounded operands make at least, over Σ|a||b|, to be told from f32's sums. */
const LEAST_MADE = 2 ** -22;
/** What errors have of those that rounded operands make, about 1 or nearly nothing, and how sure that must be. */
const SHARE = { least: 0.7, most: 1.3, deviations: 8 };

/** Smallest normal numbers. */
const LEAST_NORMAL = { f16: 2 ** -14, bf16: 2 ** -126 } as const;

/** Operands that are coarser than those of an arithmetic. */
const COARSER: Readonly<Record<OperandRounding, readonly OperandRounding[]>> = {
  f32: ["tf32", "tf32-truncated", "bf16"],
  tf32: ["bf16"],
  "tf32-truncated": ["bf16"],
  f16: ["bf16"],
  bf16: [],
};

/** What was found of a result, and the arithmetic that it was judged by. */
interface Judged extends Pick<Checked, "verdict" | "accuracy"> {
  readonly rounding: PlanArithmetic;
}

/** Roundings that a result shows. */
export interface Trace {
  /** A reason to fail. */
  readonly text: string;
  /** Whether no other arithmetic rounds so either. */
  readonly final?: boolean;
  /** Whether f32's tiles may explain the result all the same. */
  readonly tiles?: boolean;
}

/**
 * What a result that passes shows of coarser roundings than its arithmetic has; undefined of nothing.
 *
 * @param result As it lies in memory.
 * @param claimed All that may explain single outputs that are off.
 */
export async function coarserTrace(
  reference: Reference,
  result: HostData,
  verified: Judged,
  claimed: readonly PlanArithmetic[],
): Promise<Trace | undefined> {
  const { subject, operands } = reference;
  if (isIntegral(subject) || verified.verdict !== "pass") return undefined;
  const outputs = sampledOutputs(reference, result, COUNT);
  const grain = coarserGrain(outputs, verified);
  if (grain !== undefined) return { text: `all results are numbers of ${grain}` };
  const cut = cutResults(reference, outputs, verified);
  if (cut !== undefined) {
    return { text: `results are rounded toward zero, not to the nearest ${cut}`, final: true };
  }
  const stray = strayResults(reference, result, verified, claimed);
  if (stray !== undefined) return { text: stray, final: true, tiles: true };
  const { rel_l2 } = verified.accuracy;
  const { operands: own = "f32", sums } = verified.rounding;
  if (sums === "f64" || !(rel_l2 >= LEAST_REL_L2)) return undefined;
  const indices = Float64Array.from(outputs.indices).sort();
  const order = outputs.indices.map((index, i) => [index, i] as const).sort(([a], [b]) => a - b);
  for (const kind of COARSER[own]) {
    const { values } = await subject.reference.of(roundedOperands(operands, kind), { indices });
    const over = order.map(([, i]) => 1 / outputs.magnitudes[i]!);
    // Of sums that cancel, what operands' rounding makes is no larger than that of sums.
    const errors = order.map(([, i], at) => (outputs.got[i]! - outputs.expected[i]!) * over[at]!);
    const made = order.map(([, i], at) => (values[at]! - outputs.expected[i]!) * over[at]!);
    if (rmsOf(made) > LEAST_MADE && isMadeOf(errors, made)) {
      return { text: `errors are those of operands in ${WORDS[kind]}` };
    }
  }
  return undefined;
}

const WORDS: Readonly<Record<OperandRounding, string>> = {
  f32: "f32",
  tf32: "TF32",
  "tf32-truncated": "TF32, cut off",
  f16: "f16",
  bf16: "bf16",
};

/** The type that all results have which should be rounded otherwise. */
function coarserGrain(
  { got, expected, magnitudes }: ReturnType<typeof sampledOutputs>,
  { rounding: { results, sums } }: Judged,
): string | undefined {
  if (results === "bf16") return undefined;
  const kinds = results === "f16" || sums === "f64" ? ["bf16"] as const : ["bf16", "f16"] as const;
  const as = (result: Precision["result"], value: number) =>
    stored({ unitRoundoff: 0, smallestNormal: 0, result }, value);
  const own = results ?? (sums === "f64" ? "f64" : "f32");
  return kinds.find((kind) => {
    const coarse = (value: number) => as(kind, value) === value;
    // What is right in few bits says nothing, nor what is left of sums that cancel.
    const finer = expected.flatMap((value, i) =>
      coarse(as(own, value)) || Math.abs(value) < CANCELLED * magnitudes[i]! ? [] : [i]
    );
    const different = new Set(finer.map((i) => as(own, expected[i]!))).size;
    return different >= FEWEST_RESULTS && finer.every((i) => coarse(got[i]!));
  });
}

/** How far f32 sums of `length` products may be from the exact ones, over Σ|a||b|: more than any order errs, as units that cut do. */
function sumError(length: number): number {
  return (4 * Math.sqrt(length) + length / 4) * 2 ** -24;
}

/**
 * The 16-bit type to which all results are cut off. Only those count whose exact values lie so far beyond the middle of two numbers
 * that f32 sums cannot decide how they are rounded.
 */
function cutResults(
  { subject: { activation, sums: { length } } }: Reference,
  { got, expected, magnitudes }: ReturnType<typeof sampledOutputs>,
  { rounding: { results, sums, tiles, math } }: Judged,
): "f16" | "bf16" | undefined {
  if (results === undefined || sums === "f16" || tiles || math) {
    return undefined;
  }
  if (activation !== "none" && activation !== "relu") return undefined;
  const seen = new Set<number>();
  for (const [i, exact] of expected.entries()) {
    const size = Math.abs(exact);
    const nearest = stored({ unitRoundoff: 0, smallestNormal: 0, result: results }, size);
    const below = besides(nearest, false, results);
    const margin = sumError(length) * magnitudes[i]!;
    if (!Number.isFinite(nearest) || nearest - margin <= size) continue;
    if (size - margin <= (nearest + below) / 2) continue;
    if (Math.abs(got[i]!) >= nearest) return undefined;
    seen.add(exact);
  }
  return seen.size >= FEWEST ? results : undefined;
}

/** What is multiplied. */
const FACTORS = ["input", "filter", "output", "a", "b"];

/** Operands of the products rounded; what is added stays. */
function roundedOperands(operands: HostOperands, kind: OperandRounding): HostOperands {
  const round = ROUNDINGS[kind];
  return Object.fromEntries(
    Object.entries(operands).map(([role, data]) => [
      role,
      FACTORS.includes(role) ? (data as Float64Array).map(round) : data,
    ]),
  );
}

/** The share of outputs that are not the nearest up to which those farther off are no arithmetic's: one that errs so errs everywhere. */
const RARE = 0.02;
/** Operands that rounding changes in part, no more than these: the others say nothing of whether they are rounded. */
const PARTLY = 0.5;
/** Changes of operands, over the largest, that change no result. */
const NO_CHANGE = 2 ** -24;

/** An output that is beside the nearest number, or is it. */
interface Placed {
  readonly index: number;
  /** How far it is from the exact one. */
  readonly error: number;
  /** How far off the nearest number may be. */
  readonly half: number;
}

/**
 * Names single outputs that are two numbers of 16 bits or more off, where nearly all others are the nearest. Only of sums of products
 * that nothing is added to, of operands that are not rounded, and where no arithmetic that is claimed errs so seldom.
 */
function strayResults(
  reference: Reference,
  result: HostData,
  { rounding: { results, tiles, math } }: Judged,
  claimed: readonly PlanArithmetic[],
): string | undefined {
  const { subject, operands } = reference;
  const { activation, sums: { length } } = subject;
  // Whether tiles explain it is asked of whole results alone.
  if (results === undefined || tiles || math || reference.indices) return undefined;
  if (activation !== "none" && activation !== "relu") return undefined;
  const kinds = new Set(claimed.flatMap(({ operands }) => operands ?? []));
  let tiny = 0, largest = 0;
  for (const [role, data] of Object.entries(operands)) {
    if (!FACTORS.includes(role)) return undefined;
    if (changedBy(ROUNDINGS[results], data as Float64Array) > 0) return undefined;
    for (const kind of kinds) {
      const changed = changedBy(ROUNDINGS[kind], data as Float64Array, NO_CHANGE);
      if (changed > 0 && changed < PARTLY) return undefined;
    }
    for (const value of data as Float64Array) {
      const size = Math.abs(value);
      if (size > 0 && size < LEAST_NORMAL[results]) tiny++;
      if (size > largest) largest = size;
    }
  }
  // GPUs may flush what is below the normal numbers: of operands, products, sums and results.
  const flushed = Math.min(length, tiny) * LEAST_NORMAL[results] * largest +
    2 * length * LEAST_NORMAL.bf16;
  const round = ROUNDINGS[results];
  const precision: Precision = { unitRoundoff: 0, smallestNormal: 0, result: results };
  const strays: Placed[] = [], nearest: Placed[] = [];
  let others = 0, first = "";
  comparison(result, reference, { strides: resultStrides(subject), precision })(
    (at, index, got, exact, _error, _scale, magnitude) => {
      const usual = sumError(length) * magnitude + flushed;
      if (!(Math.abs(exact) - usual >= LEAST_NORMAL[results]) || !Number.isFinite(got)) return;
      const number = round(exact - usual);
      const size = Math.abs(number);
      const half = (besides(size, true, results) - size) / 2;
      const placed = { index, error: Math.abs(got - exact), half };
      if (number === round(exact + usual)) {
        if (got === number) nearest.push(placed);
        else others++;
      }
      const most = largestSumError(length, exact, magnitude) + flushed;
      const [low, high] = [round(exact - most), round(exact + most)];
      if (!Number.isFinite(low) || !Number.isFinite(high)) return;
      if (got < besides(low, false, results) || got > besides(high, true, results)) {
        strays.push(placed);
        first ||= `[${at}]`;
      }
    },
  );
  const decided = nearest.length + others;
  if (strays.length === 0 || decided < FEWEST || others > RARE * decided) return undefined;
  const explains = (arithmetic: PlanArithmetic) =>
    arithmetic.sums === "f16" && arithmetic.results === results &&
    errsSeldom(yardstickOf(reference, arithmetic), strays, nearest);
  if (claimed.some(explains)) return undefined;
  const are = strays.length === 1
    ? `output ${first} is`
    : `${strays.length} outputs, ${first} the first, are`;
  return `${are} two numbers of ${results} or more off, nearly all others are the nearest`;
}

/** The share of values that rounding changes by more than a share of the largest. */
function changedBy(round: (value: number) => number, data: Float64Array, least = 0): number {
  const most = least * data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  let changed = 0;
  for (const value of data) if (!(Math.abs(round(value) - value) <= most)) changed++;
  return changed / Math.max(1, data.length);
}

/**
 * How far f32 sums of `length` products may be from the exact ones at most, whatever their order, also where units cut them: each of
 * the products, their sums and a factor loses a last place of at most what the terms of one sign add up to.
 */
function largestSumError(length: number, exact: number, magnitude: number): number {
  return (length + 3) * 2 ** -23 * (Math.abs(exact) + magnitude) / 2;
}

/** Outputs that are simulated of those that stray, and of those that are the nearest. */
const SIMULATED = { strays: 8, nearest: 32 };
/** What sums in f16 that err seldom make other numbers of, at most: of two products they do of a fifth. */
const SELDOM = 0.1;

/** Whether an arithmetic errs as much where outputs stray, and makes the nearest of nearly all others. */
function errsSeldom(
  yardstick: Yardstick,
  strays: readonly Placed[],
  nearest: readonly Placed[],
): boolean {
  const errorsOf = ({ index }: Placed) =>
    yardstick.again([index]).map(({ largestError }) => largestError);
  // The order of the sums as they stand is among these, others begin elsewhere.
  const most = (one: Placed) => Math.max(yardstick.of([one.index]).largestError, ...errorsOf(one));
  const some = (list: readonly Placed[], count: number) =>
    spread(list.length, count).map((at) => list[at]!);
  const few = some(strays, SIMULATED.strays);
  if (few.filter((one) => most(one) >= one.error / 2).length < few.length / 2) return false;
  const off = some(nearest, SIMULATED.nearest).flatMap((one) =>
    errorsOf(one).map((error) => error > 1.01 * one.half)
  );
  return off.filter((one) => one).length <= SELDOM * off.length;
}

function rmsOf(values: readonly number[]): number {
  const finite = values.filter(Number.isFinite);
  return Math.sqrt(finite.reduce((sum, value) => sum + value * value, 0) / finite.length);
}

/** Whether errors have other ones as a part of them, by regression on what these differ from their mean by. */
function isMadeOf(errors: readonly number[], made: readonly number[]): boolean {
  const known = made.keys().filter((i) => Number.isFinite(errors[i]! - made[i]!)).toArray();
  if (new Set(known.map((i) => made[i]!)).size < FEWEST) return false;
  const mean = (list: readonly number[]) =>
    known.reduce((sum, i) => sum + list[i]!, 0) / known.length;
  const [e, m] = [mean(errors), mean(made)];
  let products = 0, squares = 0, fourths = 0;
  for (const i of known) {
    const other = made[i]! - m;
    products += other * (errors[i]! - e);
    squares += other ** 2;
    fourths += other ** 4;
  }
  // Few large ones say no more than so few.
  if (squares ** 2 < FEWEST * fourths) return false;
  const share = products / squares;
  let spread = 0;
  for (const i of known) {
    const other = made[i]! - m;
    spread += (other * (errors[i]! - e - share * other)) ** 2;
  }
  const deviation = Math.sqrt(spread) / squares;
  return share > SHARE.least && share < SHARE.most && share > SHARE.deviations * deviation;
}
