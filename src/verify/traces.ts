/**
 * Traces that coarser roundings than the claimed ones leave, whatever the size of errors: long sums, and sums in f16, err by more than
 * roundings that are to be found beside them.
 */
import { type Precision, stored } from "../accuracy/mod.ts";
import { comparison } from "../accuracy/walk.ts";
import type { OperandRounding, PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { type Checked, type Reference, resultStrides } from "../run/check.ts";
import { type HostData, type HostOperands, isIntegral } from "../run/subject.ts";
import { ROUNDINGS } from "../simulate/sum_source.ts";
import { sampledOutputs } from "./hypothesis.ts";
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
 */
export async function coarserTrace(
  reference: Reference,
  result: HostData,
  verified: Judged,
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
  const stray = strayResults(reference, result, verified);
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

/**
 * Names single outputs that are two numbers of 16 bits or more off, where nearly all others are the nearest. Only of sums of products
 * that nothing is added to, of operands that are not rounded.
 */
function strayResults(
  reference: Reference,
  result: HostData,
  { rounding: { results, sums, tiles, math } }: Judged,
): string | undefined {
  const { subject: { activation, sums: { length } }, operands } = reference;
  // Whether tiles explain it is asked of whole results alone.
  if (results === undefined || sums === "f16" || tiles || math || reference.indices) {
    return undefined;
  }
  if (activation !== "none" && activation !== "relu") return undefined;
  const round = ROUNDINGS[results];
  let tiny = 0, largest = 0;
  for (const [role, data] of Object.entries(operands)) {
    if (!FACTORS.includes(role)) return undefined;
    for (const value of data as Float64Array) {
      if (round(value) !== value) return undefined;
      const size = Math.abs(value);
      if (size > 0 && size < LEAST_NORMAL[results]) tiny++;
      if (size > largest) largest = size;
    }
  }
  // GPUs may flush what is below the normal numbers, of operands and of results.
  const flushed = Math.min(length, tiny) * LEAST_NORMAL[results] * largest;
  const precision: Precision = { unitRoundoff: 0, smallestNormal: 0, result: results };
  let decided = 0, others = 0, stray = 0, first = "";
  comparison(result, reference, { strides: resultStrides(reference.subject), precision })(
    (at, _index, got, exact, _error, _scale, magnitude) => {
      const margin = sumError(length) * magnitude + flushed;
      if (!(Math.abs(exact) - margin >= LEAST_NORMAL[results]) || !Number.isFinite(got)) return;
      const [low, high] = [round(exact - margin), round(exact + margin)];
      if (low === high) {
        decided++;
        if (got !== low) others++;
      }
      if (got < besides(low, false, results) || got > besides(high, true, results)) {
        stray++;
        first ||= `[${at}]`;
      }
    },
  );
  if (stray === 0 || decided < FEWEST || others > RARE * decided) return undefined;
  const are = stray === 1 ? `output ${first} is` : `${stray} outputs, ${first} the first, are`;
  return `${are} two numbers of ${results} or more off, nearly all others are the nearest`;
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
