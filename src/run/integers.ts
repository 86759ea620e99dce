/** Operands of whole numbers: what a device would answer wrongly, and their zero points. */
import { InputRangeError } from "../errors.ts";
import { isScale, NO_EPILOGUE, SCALE_RANGE } from "../problem/epilogue.ts";
import {
  BYTE_RANGE,
  type ByteDType,
  type IntegerOperands,
  isZeroPoint,
} from "../problem/conv_elements.ts";
import { lessZero } from "../reference/integers.ts";
import { type Coverable, coverageOf } from "./coverage.ts";
import type {
  ConvAsked,
  HostOperands,
  OperandData,
  PlanOperands,
  SubjectPlanner,
} from "./subject.ts";

/** What an int32 holds at most. */
const MOST = 2 ** 31 - 1;

/** A sum of int8 products, and what is added to it. */
export interface IntegerSum {
  /** What is being done, for messages. */
  readonly doing: string;
  /** Products of a result. */
  readonly length: number;
  /** What they are multiplied by; 1 where absent. */
  readonly factor?: number;
  /** The two operands of int8. */
  readonly operands: readonly [string, string];
  /** Of operands that are u8, or have zero points: these, or the operand that holds them. */
  readonly zeroPoints?: Readonly<Record<string, number | string>>;
  /** Operands in i32 that are added, with their factors. */
  readonly added: readonly (readonly [operand: string, factor: number])[];
}

/**
 * Refuses int8 products whose results may leave 32 bits, where a device would wrap around without a word: a planner's
 * `admit()`. Nothing can where factor·length·max|a|·max|b| and the largest of all that is added stay below 2³¹, which often
 * the sizes tell alone; where they do not, the reference tells, if it is going to be computed whole: it refuses what overflows.
 *
 * @throws {RangeError} with the largest result there may be.
 */
export function admitSums(
  results: Coverable,
  sum: IntegerSum,
): NonNullable<SubjectPlanner["admit"]> {
  return async (check, operands) => {
    if (check !== "none" && coverageOf(results, { mode: check, linear: true }) === "whole") return;
    const { operands: [a, b], zeroPoints = {} } = sum;
    const most = (which: string) => which in zeroPoints ? 255 : 128;
    if (largestSum(sum, (which) => which === a || which === b ? most(which) : MOST) <= MOST) {
      return;
    }
    const data = await operands() as Readonly<Record<string, OperandData>>;
    const largest = new Map<string, number>();
    for (const which of [a, b, ...sum.added.map(([operand]) => operand)]) {
      const zero = zeroPoints[which] ?? 0;
      const magnitude = typeof zero === "number"
        ? await largestMagnitude(data[which]!, zero)
        : await largestMagnitude(data[which]!) + await largestMagnitude(data[zero]!);
      largest.set(which, which in zeroPoints ? Math.min(255, magnitude) : magnitude);
    }
    const result = largestSum(sum, (which) => largest.get(which)!);
    if (result <= MOST) return;
    throw new InputRangeError(
      `${sum.doing}: ${sum.length} products of up to ${largest.get(a)} and ${largest.get(b)} ` +
        `may make results of ${result}, more than the 32 bits of i8's hold; ` +
        "--check full looks whether they do",
    );
  };
}

/** The largest magnitude a result may have, of operands' largest magnitudes. */
function largestSum(
  { length, factor = 1, operands: [a, b], added }: IntegerSum,
  largest: (which: string) => number,
): number {
  return added.reduce(
    (most, [operand, factor]) => most + Math.abs(factor) * largest(operand),
    Math.abs(factor) * length * largest(a) * largest(b),
  );
}

/** The largest magnitude of an operand of whole numbers, less what stands for zero. */
async function largestMagnitude(data: OperandData, zeroPoint = 0): Promise<number> {
  let most = 0;
  for await (const values of typeof data === "function" ? data() : [data]) {
    for (const value of values as Int8Array | Int32Array) {
      most = Math.max(most, Math.abs(value - zeroPoint));
    }
  }
  return most;
}

/** Refuses values of output channels that are none. */
export async function refuseValues(
  { epilogue = NO_EPILOGUE, integers = {} }: Pick<ConvAsked, "epilogue" | "integers">,
  operands: PlanOperands,
): Promise<void> {
  if (epilogue.scale === "channel") await refuseScales(operands.scale!);
  if (integers.filterZeroPoint === "channel") {
    await refuseZeroPoints(operands.filterZeroPoint!, integers.filterDtype ?? "i8");
  }
}

/** @throws {RangeError} where a zero point of a filter is none. */
async function refuseZeroPoints(values: OperandData, dtype: ByteDType): Promise<void> {
  for await (const some of typeof values === "function" ? values() : [values]) {
    const wrong = (some as Int32Array).find((value) => !isZeroPoint(dtype, value));
    if (wrong === undefined) continue;
    throw new InputRangeError(
      `Cannot convolve: zero point ${wrong} of a filter is no whole number from ${
        BYTE_RANGE[dtype].join(" to ")
      }, which ${dtype} holds`,
    );
  }
}

/** @throws {RangeError} where a scale of an output channel is none. */
async function refuseScales(scales: OperandData): Promise<void> {
  for await (const some of typeof scales === "function" ? scales() : [scales]) {
    for (const scale of some as Float32Array) {
      if (!isScale(scale)) {
        throw new InputRangeError(
          `Cannot convolve: scale ${scale} is no number from ${SCALE_RANGE}`,
        );
      }
    }
  }
}

/** Operands of bytes less their zero points. */
export function lessZeros(
  { inputZeroPoint = 0, filterZeroPoint = 0 }: IntegerOperands,
  operands: HostOperands,
): HostOperands {
  const { input, filter, filterZeroPoint: each } = operands;
  const zeros = filterZeroPoint === "channel" ? each as Int32Array : filterZeroPoint;
  return {
    ...operands,
    ...(input && { input: lessZero(input as Int8Array, inputZeroPoint) }),
    ...(filter && { filter: lessZero(filter as Int8Array, zeros) }),
  } as HostOperands;
}
