import { InputRangeError } from "../errors.ts";
import type { GemmDType, GemmProblem } from "../problem/gemm_problem.ts";
import type { CheckMode } from "./coverage.ts";
import { gemmCoverage } from "./gemm_check.ts";
import { type GemmOperand, gemmReads } from "./gemm_operands.ts";
import type { OperandData, PlanOperands } from "./gpu_case.ts";

/** What an int32 holds at most. */
const MOST = 2 ** 31 - 1;

/** A product, and how it is going to be checked. */
export interface RangeRequest {
  readonly problem: GemmProblem;
  readonly dtype: GemmDType;
  readonly check: CheckMode | "none";
}

/**
 * Refuses int8 products whose results may leave 32 bits, where a device would wrap around without a word. Nothing can where
 * |α|·max|a|·max|b|·k + |β|·max|C| + max|bias| + max|residual| stays below 2³¹, which often the sizes tell alone; where it
 * does not, the reference tells, if it is going to be computed whole: it refuses what overflows.
 *
 * @param operands What the product reads; looked at only where its sizes leave it open.
 * @throws {RangeError} with the largest result there may be.
 */
export async function refuseOverflow(
  { problem, dtype, check }: RangeRequest,
  operands: () => PlanOperands | Promise<PlanOperands>,
): Promise<void> {
  if (dtype !== "i8") return;
  if (check !== "none" && gemmCoverage({ problem, dtype, mode: check }) === "whole") return;
  const least = largestResult(problem, (which) => which === "a" || which === "b" ? 128 : MOST);
  if (least <= MOST) return;
  const data = await operands();
  const largest = new Map<GemmOperand, number>();
  for (const which of gemmReads(problem)) largest.set(which, await largestMagnitude(data[which]!));
  const most = largestResult(problem, (which) => largest.get(which)!);
  if (most <= MOST) return;
  throw new InputRangeError(
    `Cannot multiply: ${problem.k} products of up to ${largest.get("a")} and ` +
      `${largest.get("b")} may make results of ${most}, more than the 32 bits of i8's hold; ` +
      "--check full looks whether they do",
  );
}

/** The largest magnitude a result may have, of operands' largest magnitudes. */
function largestResult(problem: GemmProblem, largest: (which: GemmOperand) => number): number {
  const { k, alpha, beta, bias, residual } = problem;
  return Math.abs(alpha) * k * largest("a") * largest("b") +
    (beta === 0 ? 0 : Math.abs(beta) * largest("c")) +
    (bias === "none" ? 0 : largest("bias")) +
    (residual ? largest("residual") : 0);
}

async function largestMagnitude(data: OperandData): Promise<number> {
  let most = 0;
  for await (const values of typeof data === "function" ? data() : [data]) {
    for (const value of values as Int8Array | Int32Array) most = Math.max(most, Math.abs(value));
  }
  return most;
}
