import {
  type Checked,
  computeReference,
  computeSingly,
  type Reference,
  type ReferenceRequest,
} from "./check.ts";
import {
  checkBoth,
  type ProjectedResult,
  projectResult,
  type ResultProjection,
} from "./projected.ts";

/** What results of one subject are checked against, made when first asked for. */
export interface CaseChecks {
  reference(): Promise<Reference>;
  check(result: Omit<ProjectedResult, "yardstick">): Promise<Checked>;
}

/**
 * What a subject's results are checked against.
 *
 * @param singly Whether results are the reference's own, so that they are compared with sums taken one by one.
 */
export function caseChecks(request: ReferenceRequest, singly: boolean): CaseChecks {
  let reference: Promise<Reference> | undefined;
  let projection: Promise<ResultProjection | undefined> | undefined;
  const made = () => reference ??= singly ? computeSingly(request) : computeReference(request);
  return {
    reference: made,
    async check(result) {
      const found = await made();
      return await checkBoth(found, await (projection ??= project()), result);
    },
  };

  async function project() {
    return singly ? undefined : await projectResult(request);
  }
}
