import { isInputError } from "../errors.ts";
import { type ConvProblem, type Operation, OPERATIONS } from "../problem/conv_problem.ts";
import { parseDescriptor, printDescriptor } from "../problem/descriptor.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import { parseGemm, printGemm } from "../problem/gemm_suite.ts";
import type { ReadCase } from "./record_schema.ts";

/** What a record's `problem` says; `null` where it cannot be parsed. */
type CaseProblem =
  | { readonly conv: ConvProblem }
  | { readonly gemm: GemmProblem }
  | null;

const parsed = new Map<string, CaseProblem>();

/** Parses a record's problem: a descriptor, or the sizes of a product. */
export function caseProblem({ problem, op }: Pick<ReadCase, "problem" | "op">): CaseProblem {
  const key = `${op} ${problem}`;
  const known = parsed.get(key);
  if (known !== undefined) return known;
  const made = parseProblem(problem, op);
  parsed.set(key, made);
  return made;
}

function parseProblem(text: string, op: string): CaseProblem {
  try {
    if (op === "gemm") return { gemm: parseGemm(text) };
    const operation = OPERATIONS.find((one): one is Operation => one === op);
    return operation === undefined ? null : { conv: parseDescriptor(text, operation) };
  } catch (error) {
    if (isInputError(error)) return null;
    throw error;
  }
}

/** The problem in one spelling and without its name, so that every writer's records meet. */
export function canonicalProblem(record: Pick<ReadCase, "problem" | "op">): string {
  const problem = caseProblem(record);
  if (problem === null) return record.problem.trim();
  const { name: _, ...unnamed } = "gemm" in problem ? problem.gemm : problem.conv;
  return "m" in unnamed ? printGemm(unnamed) : printDescriptor(unnamed);
}

/** Element types as they are printed: `f16`, `f16 to f32`. */
export function dtypeText({ dtype, out_dtype }: Pick<ReadCase, "dtype" | "out_dtype">): string {
  return out_dtype === undefined ? dtype : `${dtype} to ${out_dtype}`;
}

/** What follows the element types of a case where it was not multiplied as its operands are: ` by f16x3`. */
export function mathText({ math }: Pick<ReadCase, "math">): string {
  return math === undefined ? "" : ` by ${math}`;
}

/** What the result is, whoever computes it however: problem, operation, dtypes and epilogue. */
export function questionKey(record: ReadCase): string {
  const { op, accumulate = "", epilogue = "" } = record;
  return [canonicalProblem(record), op, dtypeText(record), accumulate, epilogue].join("|");
}

/** The case within a provider, but for its algorithm. What does not say how its cache was is taken for hot. */
export function settingKey(record: ReadCase): string {
  const {
    provider,
    op,
    layout,
    filter_layout = "",
    policy = "",
    tile = "",
    pair = "",
    segments = "",
    cache = "hot",
    math = "",
  } = record;
  // A product's layout is its transposes, which its problem has.
  const layouts = op === "gemm" ? "" : `${layout} ${filter_layout}`;
  return [questionKey(record), provider, layouts, policy, tile, pair, segments, cache, math]
    .join("|");
}

/** The case: its setting and its algorithm, as it was asked for. */
export function caseKey(record: ReadCase): string {
  return `${settingKey(record)}|${record.requested ?? record.algorithm}`;
}

/**
 * Keeps one record a case: of records of the same case, device and kernel the later. A record without a kernel
 * (planning failed) gives way to a later one that has one.
 *
 * @returns The kept ones in their order, and how many gave way.
 */
export function latestCases(
  cases: readonly ReadCase[],
): { readonly cases: ReadCase[]; readonly replaced: number } {
  const byKernel = new Map<string, ReadCase>();
  for (const record of cases) {
    const key = `${caseKey(record)}|${record.device}`;
    byKernel.delete(`${key}|`);
    const own = `${key}|${record.kernel ?? ""}`;
    byKernel.delete(own);
    byKernel.set(own, record);
  }
  const kept = new Set(byKernel.values());
  return {
    cases: cases.filter((record) => kept.has(record)),
    replaced: cases.length - kept.size,
  };
}

/** A case's short name: its problem's name, or else its descriptor. */
export function caseLabel(record: Pick<ReadCase, "problem" | "op">): string {
  const problem = caseProblem(record);
  const name = problem === null
    ? undefined
    : "conv" in problem
    ? problem.conv.name
    : problem.gemm.name;
  return name || canonicalProblem(record);
}

/** Who made a record and how: what tells rivals apart. */
export function seriesLabel({ provider, algorithm, cache, math }: ReadCase): string {
  return [provider, algorithm, math, cache === "cold" ? cache : ""].filter((word) => word).join(
    " ",
  );
}
