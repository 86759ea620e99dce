import type { CaseRecord, TuningRecord } from "../report/record.ts";
import type { Executor } from "../run/executor.ts";
import { caseChoices, type RanCase, type RunCase, type RunGroup } from "./run_group.ts";
import { benchGroups, type BenchPlan, caseId, recordId } from "./bench_plan.ts";
import { runSuite } from "./run_suite.ts";
import { tuningRecord } from "./tuning_file.ts";
import { CPU_DEVICE, type DeviceDescription } from "../report/environment.ts";

/** What was measured for one problem, fastest first. */
export interface TunedGroup {
  readonly group: RunGroup;
  readonly records: readonly TuningRecord[];
  /** Cases that ran into an error or failed their check. */
  readonly failed: readonly CaseRecord[];
}

/** The first look at every rival: few samples, nothing checked. */
const FIRST_LOOK = { samples: 3, fillMs: 5 };
/** Rivals that are measured and checked in earnest. */
const FINALISTS = 4;
/** The planner's choice stays where it is beaten by less than this: two runs differ as much. */
const MARGIN = 0.02;

const UNTUNED: Omit<RunCase, "caches"> = { algorithm: "auto", policy: "auto", tile: "auto" };

/**
 * Measures every algorithm, policy, tile, pair and number of segments of WinRS on every problem: all of them briefly, then the
 * fastest and the planner's choice in turn and with a check. Yields each problem's outcome as soon as it is known.
 *
 * @param bench What covers the rivals; `auto` is added.
 * @param open Opens the device: for each of the two rounds, and again after it was lost.
 * @param onProblem Called when a problem begins, the `index`-th (from 1) of `count`, and with each of its rivals, in both rounds.
 */
export async function* tuneSuite(
  bench: BenchPlan,
  open: () => Promise<Executor>,
  onProblem: (index: number, count: number, what: string) => void,
): AsyncGenerator<TunedGroup, void, undefined> {
  let first: Executor | undefined = await open();
  const executor = first;
  const groups = benchGroups(bench).map((group) => withRivals(group, bench, executor));
  const openFirst = async () => {
    const opened = first ?? await open();
    first = undefined;
    return opened;
  };
  const medians = new Map<string, number>();
  const look = { ...bench, check: "none" as const, protocol: FIRST_LOOK };
  let looked = 0;
  const briefly = tries((what, trying) => {
    if (trying === "") looked++;
    onProblem(looked, groups.length, `${what}, a first look${trying}`);
  });
  for await (const record of runSuite(look, groups, openFirst, briefly.onCase, briefly)) {
    if (record.time_ms) medians.set(recordId(record), record.time_ms.median);
  }
  const finals = groups.map((group) => finalGroup(group, medians));
  let device: DeviceDescription = CPU_DEVICE;
  const opened = async () => {
    const executor = await open();
    device = executor.device;
    return executor;
  };
  // Alone, a group's records are complete when it ends.
  for (const [place, group] of finals.entries()) {
    const inEarnest = tries((what, trying) =>
      onProblem(place + 1, finals.length, `${what}, the fastest in earnest${trying}`)
    );
    const records: CaseRecord[] = [];
    const timed: RanCase[] = [];
    const hooks = { ...inEarnest, onRan: (ran: RanCase) => void timed.push(ran) };
    for await (const record of runSuite(bench, [group], opened, inEarnest.onCase, hooks)) {
      records.push(record);
    }
    yield {
      group,
      records: tuningRecords(group, timed, device),
      failed: records.filter(({ verdict }) => verdict === "fail" || verdict === "error"),
    };
  }
}

/** Tells of each group that begins, and of each rival of it that is tried: `: 3 of 12, winograd2d`. */
function tries(tell: (what: string, trying: string) => void) {
  let group = "";
  return {
    onCase(_index: number, _count: number, what: string) {
      group = what;
      tell(group, "");
    },
    onTry(one: RunCase, place: number, count: number) {
      tell(group, `: ${place} of ${count}, ${[one.algorithm, ...caseChoices(one)].join(" ")}`);
    },
  };
}

/** A group with a case more for each choice of an algorithm's options that is worth measuring on the device. */
function withRivals(
  group: RunGroup,
  { algorithms, caches, planning = {} }: BenchPlan,
  executor: Executor,
): RunGroup {
  const rivals = algorithms.flatMap((algorithm) => {
    const full = executor.planning({ ...planning, algorithm });
    const choices = full ? group.subject.planner.rivals(full) : [];
    return choices.map((choice) => ({ ...UNTUNED, algorithm, ...choice, caches }));
  });
  return { ...group, cases: [...group.cases, ...rivals] };
}

/** A group with its finalists alone. */
function finalGroup(group: RunGroup, medians: ReadonlyMap<string, number>): RunGroup {
  const caches = ["hot" as const];
  const ranked = group.cases
    .map((one) => ({ one, median: medians.get(caseId(group, one, "hot")) }))
    .filter(({ median }) => median !== undefined)
    .sort((a, b) => a.median! - b.median!)
    .map(({ one }) => one);
  return { ...group, cases: [{ ...UNTUNED, caches }, ...ranked.slice(0, FINALISTS)] };
}

function tuningRecords(
  group: RunGroup,
  ran: readonly RanCase[],
  device: DeviceDescription,
): TuningRecord[] {
  const median = ({ record }: RanCase) => record.time_ms!.median;
  const timed = ran.filter(({ record }) => record.time_ms !== null)
    .toSorted((a, b) => median(a) - median(b));
  const untunedId = caseId(group, UNTUNED, "hot");
  const untuned = timed.find(({ record }) => recordId(record) === untunedId);
  let winner = timed.find(({ record }) => record.verdict === "pass");
  if (winner && untuned?.record.verdict === "pass") {
    if (median(untuned) / median(winner) < 1 + MARGIN) winner = untuned;
  }
  return timed.map((one) =>
    tuningRecord(one, device, { chosen: one === untuned, winner: one === winner })
  );
}
