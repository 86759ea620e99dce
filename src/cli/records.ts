import {
  groupFeatures,
  recordCount,
  referenceGroups,
  remainingGroups,
  shardGroups,
} from "../bench/bench_plan.ts";
import { runSuite } from "../bench/run_suite.ts";
import { EXIT, InputTypeError } from "../errors.ts";
import { type CaseTableOptions, type ComingCase, networkTotals } from "../report/case_table.ts";
import { isUnproved } from "../report/record.ts";
import { recordCeilings } from "../report/case_columns.ts";
import { networkLines, networksOf, networkTable } from "../report/network.ts";
import { textTable } from "../report/table.ts";
import type { ReadCase } from "../report/record_schema.ts";
import { cpuExecutor, type Executor } from "../run/executor.ts";
import type { RunGroup, RunHooks, RunOptions } from "../bench/run_group.ts";
import { type Planning, usesUnits } from "../run/subject.ts";
import { VERSION } from "../version.ts";
import { modelTrait } from "./problem_options.ts";
import { commandWrites } from "./failure.ts";
import { caseProgress, onInterrupt, reporter, terminalColumns, verdictPainter } from "./output.ts";
import { caseRows, endEmptyPart, type TableOptions, timingNotes } from "./table_options.ts";
import { chosenBackend, openGpuExecutor } from "./open_gpu.ts";
import type { AnyGpuChoice, GpuChoice } from "./shared_options.ts";
import { proveOutputs } from "./outputs.ts";
import { sayFailedCase } from "./print_case.ts";
import { finishedIds, openRecords, refuseOtherRun } from "./record_stream.ts";
import { refuseTogether } from "./refuse.ts";
import { CPU_DEVICE, environmentRecord } from "../report/environment.ts";

/** A run over groups of cases, whatever they compute. */
interface Suite {
  readonly run: RunOptions;
  readonly groups: readonly RunGroup[];
  readonly inputs: readonly (string | undefined)[];
  /** What decides a figure beside the case itself; a resumed run must have the same. */
  readonly environment: Readonly<Record<string, string | number>>;
  readonly tags?: Readonly<Record<string, string>> | undefined;
  readonly hooks?: RunHooks;
  /** What a device reaches at most, for the table; what is known of it by name where absent. */
  readonly ceilings?: CaseTableOptions["ceilings"];
  readonly onEnd?: () => void;
  /** Whether the problems are a network's, whose times are added up in the end. */
  readonly network?: boolean;
}

/** Where a run over groups computes, and where its records go. */
interface SuiteOptions extends TableOptions {
  readonly backend: AnyGpuChoice["backend"];
  readonly adapter?: string | undefined;
  readonly device: "gpu" | "cpu";
  /** Seconds in which the GPU's size may be measured; 0 where absent. */
  readonly tuneBudget?: number | undefined;
  readonly json?: boolean | undefined;
  readonly jsonl?: string | undefined;
  readonly force?: boolean | undefined;
  readonly resume?: boolean | undefined;
  readonly shard?: { readonly index: number; readonly count: number } | undefined;
}

/** Opens what computes. */
export async function openExecutor(
  { device, tuneBudget = 0, ...choice }:
    & GpuChoice
    & Pick<SuiteOptions, "device" | "tuneBudget">,
  features: readonly string[] = [],
  planning: Partial<Planning> = {},
): Promise<Executor> {
  return device === "cpu"
    ? cpuExecutor()
    : await openGpuExecutor(choice, features, planning, { tuneBudget });
}

/**
 * Runs a suite, or the part of it that is asked for and left to do: writes each record and its row of the table at
 * once, then totals.
 *
 * @throws {ExitCode} unless every case ran and none failed.
 * @throws {TypeError} where no case ran, or the resumed run was another one.
 */
export async function reportSuite(
  { run: asked, groups: all, inputs, hooks, ceilings, onEnd, network, ...suite }: Suite,
  options: SuiteOptions,
): Promise<void> {
  const { shard, force, resume } = options;
  const onCpu = options.device === "cpu";
  const { seed } = asked;
  // What the CPU computes is the reference itself.
  const run = onCpu ? { ...asked, check: "none" as const } : asked;
  const environment = { ...suite.environment, check: run.check };
  const tags = suite.tags && { tags: suite.tags };
  let groups: readonly RunGroup[] = onCpu ? referenceGroups(all) : all;
  if (shard !== undefined) groups = shardGroups(groups, shard);
  refuseTogether("Cannot bench", { json: options.json, jsonl: options.jsonl });
  refuseTogether("Cannot bench", { columns: options.columns, wide: options.wide });
  const target = options.json ? "-" : options.jsonl;
  if (resume && (target === undefined || target === "-")) {
    throw new InputTypeError("Cannot resume: --resume continues the file that --jsonl names");
  }
  await proveOutputs([{ option: "--jsonl", path: target, kind: "records" }], { inputs, force });
  const writes = commandWrites();
  using records = openRecords(target, writes, { resume: resume ?? false, force });
  const { previous } = records;
  const onUnits = groups.some(({ subject }) => usesUnits(subject.traits.dtype, run.planning?.math));
  const backend = onCpu ? "wgpu" : await chosenBackend({ ...options, onUnits });
  if (previous) {
    const { tags: _, ...same } = previous.environment;
    const of = onCpu ? CPU_DEVICE.backend : backend;
    const now = { ...same, ...tags, version: VERSION, backend: of, seed };
    refuseOtherRun(previous, { ...now, options: environment });
  }
  const coming = [...previous?.cases ?? [], ...comingCases(groups)];
  const count = recordCount(groups);
  if (previous) groups = remainingGroups(groups, finishedIds(previous));
  const note = reporter("stderr");
  if (previous) note.line(`resuming: ${recordCount(groups)} of ${count} cases are left`);
  const stream = target === "-" ? "stderr" : "stdout";
  const out = reporter(stream);
  const rows = caseRows(coming, options, out, {
    ceilings,
    paint: verdictPainter(stream),
    room: terminalColumns(stream),
  });
  const shown = caseProgress("case", count - recordCount(groups));
  const features = groupFeatures(groups);
  let described = false;
  const open = async () => {
    const executor = await openExecutor({ ...options, backend }, features, run.planning);
    if (described) return executor;
    described = true;
    const { device, model } = executor;
    const first = {
      ...environmentRecord(device, seed, environment),
      ...tags,
      ...(model === undefined || run.planning?.device !== undefined
        ? {}
        : { model: modelTrait(model) }),
    };
    if (previous === undefined) records.write(first);
    else refuseOtherRun(previous, first);
    return executor;
  };
  const cases: ReadCase[] = [...previous?.cases ?? []];
  const show = (record: ReadCase) => {
    rows.add(record);
    sayFailedCase(record);
  };
  cases.forEach(show);
  using _ = onInterrupt(() => {
    const left = `stopped, ${count - cases.length} of ${count} cases are left`;
    return target === undefined || target === "-"
      ? `${left}; with --jsonl FILE, --resume can continue a run`
      : `${left}; add --resume to the same command to continue`;
  });
  const skipped = new Set<string>();
  const onSkip = (what: string, reason: string) => void skipped.add(`skipped: ${what}: ${reason}`);
  if (groups.length > 0) {
    for await (const record of runSuite(run, groups, open, shown.begin, { ...hooks, onSkip })) {
      records.write(record);
      cases.push(record);
      shown.done();
      show(record);
    }
  }
  shown.done();
  rows.end();
  skipped.forEach((line) => note.message(line));
  onEnd?.();
  endEmptyPart(shard, cases.length);
  if (cases.length === 0) {
    throw new InputTypeError(
      "Cannot bench: nothing ran, the chosen algorithms support none of the problems",
    );
  }
  if (network) {
    for (const own of networksOf(cases, ceilings ?? recordCeilings)) {
      const { columns, rows } = networkTable(own);
      out.line(`\n${textTable(columns, rows, undefined, terminalColumns(stream))}`);
      networkLines(own).forEach((line) => out.line(line));
    }
  } else networkTotals(cases).forEach((line) => out.line(line));
  for (const line of timingNotes(cases, run.protocol.spread)) out.message(line);
  writes.conclude(casesExitCode(cases));
}

/** What the table of a run is going to show. */
export function comingCases(groups: readonly RunGroup[]): ComingCase[] {
  return groups.flatMap(({ subject: { traits }, cases }) => {
    const { problem, op, layout, dtype, outDtype, accumulate } = traits;
    return cases.flatMap(({ algorithm, caches }) =>
      caches.map((cache) => (
        { problem, op, layout, dtype, out_dtype: outDtype, accumulate, algorithm, cache }
      ))
    );
  });
}

/**
 * The exit code of a run: a wrong result, nothing that ran (an empty result takes no run), or a case that did not, never is a
 * success.
 */
function casesExitCode(
  cases: readonly Pick<ReadCase, "verdict" | "accuracy" | "time_ms">[],
): number {
  if (cases.some(isUnproved)) return EXIT.accuracy;
  if (cases.every(({ time_ms }) => time_ms === null)) return EXIT.usage;
  const errors = cases.filter(({ verdict }) => verdict === "error").length;
  return errors > 0 ? EXIT.internal : EXIT.ok;
}
