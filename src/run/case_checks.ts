import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import {
  checkAgainst,
  type Checked,
  computeReference,
  computeSingly,
  type Reference,
  type ReferenceRequest,
  yardstickOf,
} from "./check.ts";
import { type ProjectedResult, projectResult, type ResultProjection } from "./projected.ts";
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

/** Computes the reference of a subject, projects it where that pays, and checks a result. */
export async function checkResult(
  request: Omit<ReferenceRequest, "linear"> & ProjectedResult,
): Promise<Checked> {
  const { subject, result, linear, arithmetic, readSeconds } = request;
  const asked = { ...request, linear: subject.linear === undefined || linear !== undefined };
  const reference = await computeReference(asked);
  const projection = await projectResult(asked, reference);
  return await checkBoth(reference, projection, { result, linear, arithmetic, readSeconds });
}

/** Checks a result by its reference, and by its projection where there is one. */
async function checkBoth(
  reference: Reference,
  projection: ResultProjection | undefined,
  projected: ProjectedResult,
): Promise<Checked> {
  const checked = checkAgainst(
    reference,
    projected.result,
    projected.arithmetic,
    projected.brief,
  );
  return await projection?.check(checked, projected) ?? checked;
}
