import type { GpuDevice } from "../gpu/device.ts";
import type { CaseRecord } from "../report/record.ts";
import { type BenchGroup, type BenchPlan, caseId, recordCount, recordId } from "./bench_plan.ts";
import { eachCase, type SuiteCase } from "./each_case.ts";
import { type GroupData, groupData } from "./group_data.ts";
import { failedRecords, runGroup, type SuiteHooks } from "./run_group.ts";

export { type BenchPlan } from "./bench_plan.ts";
export { type CheckedCase, type SuiteHooks } from "./run_group.ts";

/**
 * Runs every case of the groups and yields its record as soon as it is known. A failing case becomes a record with
 * the verdict `error`; where cases that ran together failed, each is tried alone. What one problem and layout's
 * cases share, its data and its references, is made once.
 *
 * @param open Opens the device: at the start, and again after it was lost.
 */
export async function* runSuite(
  bench: BenchPlan,
  groups: readonly BenchGroup[],
  open: () => Promise<GpuDevice>,
  onCase: (index: number, count: number, what: string) => void,
  hooks: SuiteHooks = {},
): AsyncGenerator<CaseRecord, void, undefined> {
  const count = recordCount(groups);
  let begun = 0;
  const units = function* () {
    let last: BenchGroup | undefined;
    let data: GroupData | undefined;
    for (const group of groups) {
      const { problem: { op, name } } = group;
      onCase(begun + 1, count, `${name ?? ""} ${op}`.trim());
      begun += recordCount([group]);
      if (last === undefined || data === undefined || !sharesData(group, last)) {
        data = groupData(bench, group);
      }
      last = group;
      yield suiteCase(bench, group, data, hooks);
    }
  };
  yield* eachCase(units(), open);
}

function sharesData(one: BenchGroup, other: BenchGroup): boolean {
  const shape = ({ problem, layout, dtype }: BenchGroup) =>
    JSON.stringify([{ ...problem, op: "" }, layout, dtype]);
  return shape(one) === shape(other);
}

function suiteCase(
  bench: BenchPlan,
  group: BenchGroup,
  data: GroupData,
  hooks: SuiteHooks,
): SuiteCase {
  const done = new Set<string>();
  return {
    async *run(gpu) {
      for await (const record of runGroup(gpu, bench, group, data, hooks)) {
        done.add(recordId(record));
        yield record;
      }
    },
    failed: (device, message) => failedRecords(bench, group, group.cases, device, message),
    split() {
      if (group.cases.length === 1) return [];
      const left = group.cases.filter((one) =>
        one.caches.some((cache) => !done.has(caseId(group, one, cache)))
      );
      return left.map((one) => suiteCase(bench, { ...group, cases: [one] }, data, hooks));
    },
  };
}
