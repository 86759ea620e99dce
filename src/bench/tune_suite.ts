import { kernelNames } from "../algorithms/tuning.ts";
import { rivalPairs } from "../algorithms/winrs/configure.ts";
import type { GpuDevice } from "../gpu/device.ts";
import type { CaseRecord, ConvTuningRecord } from "../report/record.ts";
import { VERSION } from "../version.ts";
import {
  type BenchCase,
  type BenchGroup,
  benchGroups,
  type BenchPlan,
  caseId,
  recordId,
} from "./bench_plan.ts";
import { runSuite, type SuiteHooks } from "./run_suite.ts";
import type { TunedDevice } from "./tuning_file.ts";

/** What was measured for one problem, fastest first. */
export interface TunedGroup {
  readonly group: BenchGroup;
  readonly records: readonly ConvTuningRecord[];
  /** Cases that ran into an error or failed their check. */
  readonly failed: readonly CaseRecord[];
}

/** The first look at every rival: few samples, nothing checked. */
const FIRST_LOOK = { samples: 3, fillMs: 5 };
/** Rivals that are measured and checked in earnest. */
const FINALISTS = 4;
/** The planner's choice stays where it is beaten by less than this: two runs differ as much. */
const MARGIN = 0.02;

const UNTUNED: Omit<BenchCase, "caches"> = { algorithm: "auto", policy: "auto", tile: "auto" };

/**
 * Measures every algorithm, policy, tile and pair of WinRS on every problem: all of them briefly, then the fastest and the planner's
 * choice in turn and with a check. Yields each problem's outcome as soon as it is known.
 *
 * @param bench What covers the rivals; `auto` is added.
 * @param open Opens the device: for each of the two rounds, and again after it was lost.
 */
export async function* tuneSuite(
  bench: BenchPlan,
  open: () => Promise<GpuDevice>,
  onCase: (index: number, count: number, what: string) => void,
): AsyncGenerator<TunedGroup, void, undefined> {
  const groups = benchGroups(bench).map((group) => withPairs(group, bench));
  const medians = new Map<string, number>();
  const look = { ...bench, check: "none" as const, protocol: FIRST_LOOK };
  const briefly = (index: number, count: number, what: string) =>
    onCase(index, count, `${what}, a first look`);
  for await (const record of runSuite(look, groups, open, briefly)) {
    if (record.time_ms) medians.set(recordId(record), record.time_ms.median);
  }
  const finals = groups.map((group) => finalGroup(group, medians));
  let device: TunedDevice = { backend: "", adapter: "", driver: "" };
  const opened = async () => {
    const gpu = await open();
    const { backend, adapter, driver } = gpu.info;
    device = { backend, adapter, driver: driver ?? "" };
    return gpu;
  };
  // Alone, a group's records are complete when it ends.
  for (const group of finals) {
    const records: CaseRecord[] = [];
    const kernels = new Map<string, readonly string[]>();
    const hooks: SuiteHooks = {
      onChecked: ({ record, plan }) => void kernels.set(recordId(record), kernelNames(plan)),
    };
    for await (const record of runSuite(bench, [group], opened, onCase, hooks)) {
      records.push(record);
    }
    yield {
      group,
      records: tuningRecords(group, records, kernels, device),
      failed: records.filter(({ verdict }) => verdict === "fail" || verdict === "error"),
    };
  }
}

/** A group with a case more for each pair of kernels that WinRS may take, where that is among the rivals. */
function withPairs(group: BenchGroup, { algorithms, caches }: BenchPlan): BenchGroup {
  if (!algorithms.includes("winrs") || group.problem.op !== "bwd-filter") return group;
  const pairs = rivalPairs(group.problem).map((pair) => (
    { ...UNTUNED, algorithm: "winrs" as const, pair, caches }
  ));
  return { ...group, cases: [...group.cases, ...pairs] };
}

/** A group with its finalists alone. */
function finalGroup(group: BenchGroup, medians: ReadonlyMap<string, number>): BenchGroup {
  const caches = ["hot" as const];
  const ranked = group.cases
    .map((one) => ({ one, median: medians.get(caseId(group, one, "hot")) }))
    .filter(({ median }) => median !== undefined)
    .sort((a, b) => a.median! - b.median!)
    .map(({ one }) => one);
  return { ...group, cases: [{ ...UNTUNED, caches }, ...ranked.slice(0, FINALISTS)] };
}

function tuningRecords(
  group: BenchGroup,
  records: readonly CaseRecord[],
  kernels: ReadonlyMap<string, readonly string[]>,
  device: TunedDevice,
): ConvTuningRecord[] {
  const timed = records
    .filter(({ time_ms }) => time_ms !== null)
    .toSorted((a, b) => a.time_ms!.median - b.time_ms!.median);
  const untuned = recordIn(timed, caseId(group, UNTUNED, "hot"));
  const exact = timed.filter(({ verdict }) => verdict === "pass");
  let winner = exact[0];
  if (winner && untuned?.verdict === "pass") {
    const gain = untuned.time_ms!.median / winner.time_ms!.median;
    if (gain < 1 + MARGIN) winner = untuned;
  }
  return timed.map((record) => ({
    schema: 1,
    kind: "tuning",
    version: VERSION,
    backend: device.backend,
    device: device.adapter,
    driver: device.driver,
    problem: record.problem,
    op: record.op,
    dtype: record.dtype,
    layout: record.layout,
    filter_layout: record.filter_layout!,
    algorithm: record.algorithm,
    ...(record.policy === undefined ? {} : { policy: record.policy }),
    ...(record.tile === undefined ? {} : { tile: record.tile }),
    ...(record.pair === undefined ? {} : { pair: record.pair }),
    kernel: record.kernel!,
    kernels: kernels.get(recordId(record)) ?? [],
    time_ms: record.time_ms!,
    gflops: record.gflops!,
    workspace_bytes: record.workspace_bytes!,
    max_bound_ratio: record.accuracy?.max_bound_ratio ?? null,
    chosen: record === untuned,
    winner: record === winner,
    verdict: record.verdict,
  }));
}

function recordIn(records: readonly CaseRecord[], id: string): CaseRecord | undefined {
  return records.find((record) => recordId(record) === id);
}
