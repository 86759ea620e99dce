import { accumulationLength, directFlops, tensorBytes } from "../problem/conv_problem.ts";
import { gemmFlops } from "../problem/gemm_problem.ts";
import { caseLabel, caseProblem } from "./case_key.ts";
import type { ReadCase } from "./record_schema.ts";

/** What follows from a case's problem; `null` where that cannot be parsed. */
export interface CaseFigures {
  readonly label: string;
  readonly batch: number;
  readonly flops: number | null;
  /** Least bytes moved: every tensor once. */
  readonly bytes: number | null;
  /** Products summed into one element of the result. */
  readonly accumulation: number | null;
  /** Direct flops over the median time; of a wrong result too. */
  readonly gflops: number | null;
}

/** Bytes of an element of A and B, and of the result, by dtype. */
const ELEMENT_BYTES: ReadonlyMap<string, readonly [operand: number, result: number]> = new Map([
  ["f16", [2, 2]],
  ["bf16", [2, 2]],
  ["i8", [1, 4]],
  ["u8", [1, 4]],
  ["f64", [8, 8]],
]);

function elementBytes(dtype: string): readonly [operand: number, result: number] {
  return ELEMENT_BYTES.get(dtype) ?? [4, 4];
}

/** Derives a case's figures. */
export function caseFigures(record: ReadCase): CaseFigures {
  const problem = caseProblem(record);
  const [operand, own] = elementBytes(record.dtype);
  const result = record.out_dtype === undefined ? own : elementBytes(record.out_dtype)[0];
  const label = caseLabel(record);
  if (problem === null) {
    const { flops } = record;
    const gflops = rate(record, flops);
    return { label, batch: 1, flops, bytes: null, accumulation: null, gflops };
  }
  if ("gemm" in problem) {
    const { m, n, k, batch } = problem.gemm;
    const flops = gemmFlops(problem.gemm);
    return {
      label,
      batch,
      flops,
      bytes: batch * (operand * (m * k + k * n) + result * m * n),
      accumulation: k,
      gflops: rate(record, flops),
    };
  }
  const { conv } = problem;
  const flops = directFlops(conv);
  return {
    label,
    batch: conv.batch,
    flops,
    bytes: tensorBytes(conv, operand, result),
    accumulation: accumulationLength(conv),
    gflops: rate(record, flops),
  };
}

function rate({ time_ms: time, gflops }: ReadCase, flops: number | null): number | null {
  if (time !== null && time.median > 0 && flops !== null) return flops / time.median / 1e6;
  return gflops;
}
