import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import {
  type Checked,
  computeReference,
  computeSingly,
  type Reference,
  type ReferenceRequest,
  yardstickOf,
} from "./check.ts";
import {
  checkBoth,
  type ProjectedResult,
  projectResult,
  type ResultProjection,
} from "./projected.ts";
import { type During, untimed } from "./timeline.ts";

/** What results of one subject are checked against, made when first asked for. */
export interface CaseChecks {
  reference(): Promise<Reference>;
  /** Begins what needs no result; what fails of it is told by `check()`. */
  begin(arithmetic: PlanArithmetic): void;
  check(result: ProjectedResult): Promise<Checked>;
}

/**
 * What a subject's results are checked against.
 *
 * @param singly Whether results are the reference's own, so that they are compared with sums taken one by one.
 */
export function caseChecks(
  { during = untimed, ...request }: ReferenceRequest & { readonly during?: During },
  singly: boolean,
): CaseChecks {
  let reference: Promise<Reference> | undefined;
  let projection: Promise<ResultProjection | undefined> | undefined;
  const made = () =>
    reference ??= during(
      "reference",
      () => singly ? computeSingly(request) : computeReference(request),
    );
  const projected = (found: Reference) =>
    projection ??= during(
      "reference",
      async () => singly ? undefined : await projectResult(request, found),
    );
  return {
    reference: made,
    begin(arithmetic) {
      const beginRest = (found: Reference) => {
        const known = projected(found);
        // Simulated here, while workers project.
        during("reference", () => void yardstickOf(found, arithmetic).sample);
        return known;
      };
      made().then(beginRest).catch(() => {});
    },
    async check(result) {
      const found = await made();
      const known = await projected(found);
      return await during("check", () => checkBoth(found, known, result));
    },
  };
}
