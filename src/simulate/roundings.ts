import type { OperandRounding } from "../problem/plan_arithmetic.ts";
import { bf16round, tf32round, tf32truncate } from "../tensor/rounding.ts";
import type { Round, SumSource } from "./sum_source.ts";

/** How operands become what they are multiplied as. */
export const ROUNDINGS: Readonly<Record<OperandRounding, Round>> = {
  f32: Math.fround,
  tf32: tf32round,
  "tf32-truncated": tf32truncate,
  f16: Math.f16round,
  bf16: bf16round,
};

/** The source with both operands rounded. */
export function roundedSource(source: SumSource, round: Round): SumSource {
  return {
    ...source,
    load(unit, lefts, rights) {
      source.load(unit, lefts, rights);
      for (let i = 0; i < lefts.length; i++) lefts[i] = round(lefts[i]!);
      for (let i = 0; i < rights.length; i++) rights[i] = round(rights[i]!);
    },
  };
}

/** How a bias or C is rounded: to 16 bits beside operands of 16 bits, not at all beside TF32, which rounds operands alone. */
export function addedRounding(operands: OperandRounding | undefined): Round {
  return operands === "f16" || operands === "bf16" ? ROUNDINGS[operands] : Number;
}
