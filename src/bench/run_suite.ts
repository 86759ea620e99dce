import { DeviceError } from "../errors.ts";
import type { CaseRecord } from "../report/record.ts";
import { caseChecks } from "../run/case_checks.ts";
import type { Executor } from "../run/executor.ts";
import { defaultFill, fillOperand } from "../run/operands.ts";
import { type HostData, type Subject, titleOf } from "../run/subject.ts";
import { caseId, recordCount, recordId, sharesData } from "./bench_plan.ts";
import {
  failedRecords,
  type GroupData,
  LostInTuning,
  type RunGroup,
  runGroup,
  type RunHooks,
  type RunOptions,
} from "./run_group.ts";

/** A case of a suite, or several that run together. */
interface SuiteCase {
  /** Runs it and gives its records, each as soon as it is known. */
  run(executor: Executor): AsyncIterable<CaseRecord>;
  /** The records of what did not run to its end. */
  failed(device: string, message: string): readonly CaseRecord[];
  /** Where several failed together: those without a record yet, one by one. */
  split?(): readonly SuiteCase[];
}

/**
 * Runs cases and yields each one's records at once. What one of them throws becomes its record.
 *
 * @param open Opens the device: at the start, and again after it was lost.
 * @throws what the first `open` throws.
 */
async function* eachCase(
  cases: Iterable<SuiteCase>,
  open: () => Promise<Executor>,
): AsyncGenerator<CaseRecord, void, undefined> {
  let executor: Executor | undefined = await open();
  try {
    for (const one of cases) {
      const waiting = [one];
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        let name = "";
        try {
          if (executor?.isOpen === false) {
            executor.close();
            executor = undefined;
          }
          executor ??= await open();
          name = executor.device.adapter;
          yield* next.run(executor);
        } catch (thrown) {
          const error = await executor?.causeOf(thrown) ?? thrown;
          if (error instanceof DeviceError) {
            executor?.close();
            executor = undefined;
          }
          const parts = thrown instanceof LostInTuning ? [next] : next.split?.() ?? [];
          if (parts.length > 0) waiting.push(...parts);
          else yield* next.failed(name, error instanceof Error ? error.message : String(error));
        }
      }
    }
  } finally {
    executor?.close();
  }
}

/**
 * Runs every case of the groups and yields its record as soon as it is known. A failing case becomes a record with
 * the verdict `error`; where cases that ran together failed, each is tried alone. What one problem and layout's
 * cases share, its data and its references, is made once.
 *
 * @param open Opens what computes: at the start, and again after it was lost.
 */
export async function* runSuite(
  run: RunOptions,
  groups: readonly RunGroup[],
  open: () => Promise<Executor>,
  onCase: (index: number, count: number, what: string) => void,
  hooks: RunHooks = {},
): AsyncGenerator<CaseRecord, void, undefined> {
  const count = recordCount(groups);
  let begun = 0;
  const units = function* () {
    let last: Subject | undefined;
    let tensors = new Map<string, HostData>();
    for (const group of groups) {
      const { subject } = group;
      onCase(begun + 1, count, titleOf(subject));
      begun += recordCount([group]);
      if (last === undefined || !sharesData(subject, last)) tensors = new Map();
      last = subject;
      yield suiteCase(run, group, groupData(run, subject, tensors), hooks);
    }
  };
  yield* eachCase(units(), open);
}

/** The data of a group and what it is checked against, made when first asked for. */
function groupData(
  run: RunOptions,
  subject: Subject,
  tensors: Map<string, HostData>,
): (singly: boolean) => GroupData {
  let made: GroupData | undefined;
  return (singly) => {
    if (made !== undefined) return made;
    const { seed, fill = defaultFill(subject.traits.dtype) } = run;
    for (const one of subject.operands) {
      if (!tensors.has(one.role)) tensors.set(one.role, fillOperand(one, { ...run, fill }));
    }
    const operands = Object.fromEntries(
      subject.operands.map(({ role }) => [role, tensors.get(role)!]),
    );
    const mode = run.check === "none" ? "sample" : run.check;
    made = { operands, ...caseChecks({ subject, operands, mode, linear: true, seed }, singly) };
    return made;
  };
}

function suiteCase(
  run: RunOptions,
  group: RunGroup,
  data: (singly: boolean) => GroupData,
  hooks: RunHooks,
): SuiteCase {
  const done = new Set<string>();
  return {
    async *run(executor) {
      const made = () => data(executor.isReference);
      for await (const record of runGroup(executor, run, group, made, hooks)) {
        done.add(recordId(record));
        yield record;
      }
    },
    failed: (device, message) => failedRecords(run, group, group.cases, device, message),
    split() {
      if (group.cases.length === 1) return [];
      const left = group.cases.filter((one) =>
        one.caches.some((cache) => !done.has(caseId(group, one, cache)))
      );
      return left.map((one) => suiteCase(run, { ...group, cases: [one] }, data, hooks));
    },
  };
}
