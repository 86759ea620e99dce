import { canonicalProblem, caseProblem } from "./case_key.ts";
import type { ReadCase } from "./record_schema.ts";

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
