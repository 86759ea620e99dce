import type { BenchGroup } from "../bench/bench_plan.ts";
import { EXIT, InputTypeError } from "../errors.ts";
import { type DeviceOptions, type GpuDevice, openDevice } from "../gpu/device.ts";
import { printDescriptor } from "../problem/descriptor.ts";
import { caseTable, type ComingCase } from "../report/case_report.ts";
import { environmentRecord } from "../report/environment.ts";
import { networkTotals } from "../report/totals.ts";
import { formatDuration } from "../report/format.ts";
import type { CaseRecord } from "../report/record.ts";
import type { ReadCase } from "../report/record_schema.ts";
import type { Writes } from "./failure.ts";
import { printer, progress } from "./output.ts";
import type { RecordStream } from "./record_stream.ts";
import { refuseOtherRun } from "./resume.ts";

/** What makes a suite's records: `open` gives the device, `onCase` shows how far it is. */
export type Suite = (
  open: () => Promise<GpuDevice>,
  onCase: (index: number, count: number, what: string) => void,
) => AsyncIterable<CaseRecord>;

/** Where a run's records go, and what is known of it before. */
export interface RunOptions {
  readonly records: RecordStream;
  readonly writes: Writes;
  /** Whether the records are on stdout, which leaves stderr for the report. */
  readonly onStdout: boolean;
  readonly seed: number;
  /** The cases to come and those of the run that is gone on with. */
  readonly coming: readonly ComingCase[];
  /** Goes into the environment; a resumed run must have the same. */
  readonly options?: Readonly<Record<string, string | number>>;
}

/**
 * Runs a suite: writes each record and its row of the table at once, then totals.
 *
 * @throws {ExitCode} unless every case ran and none failed.
 * @throws {TypeError} where no case ran, or the resumed run was another one.
 */
export async function reportSuite(
  { records, writes, onStdout, seed, coming, options }: RunOptions,
  device: DeviceOptions,
  suite: Suite,
): Promise<void> {
  const { previous } = records;
  const out = printer(onStdout ? "stderr" : "stdout");
  const shown = progress();
  let described = false;
  const open = async () => {
    const gpu = await openDevice(device);
    if (described) return gpu;
    described = true;
    const environment = environmentRecord(describe(gpu), seed, options);
    if (previous === undefined) records.write(environment);
    else refuseOtherRun(previous, environment);
    return gpu;
  };
  const row = caseTable(coming);
  const cases: (CaseRecord | ReadCase)[] = [...previous?.cases ?? []];
  cases.forEach((record) => out.line(row(record)));
  const start = performance.now();
  const onCase = (index: number, count: number, what: string) => {
    const left = (performance.now() - start) / (index - 1) * (count - index + 1);
    const eta = index === 1 ? "" : `, about ${formatDuration(left)} left`;
    shown.update(`case ${index} of ${count}: ${what}${eta}`);
  };
  for await (const record of suite(open, onCase)) {
    records.write(record);
    cases.push(record);
    shown.done();
    out.line(row(record));
  }
  shown.done();
  if (cases.length === 0) {
    throw new InputTypeError(
      "Cannot bench: nothing ran, what was asked for supports none of the problems",
    );
  }
  for (const line of networkTotals(cases)) out.line(line);
  writes.conclude(casesExitCode(cases));
}

/** What the table of a run is going to show. */
export function comingCases(groups: readonly BenchGroup[]): ComingCase[] {
  return groups.flatMap(({ problem, layout, cases }) =>
    cases.flatMap(({ caches }) =>
      caches.map((cache) => ({ problem: printDescriptor(problem), op: problem.op, layout, cache }))
    )
  );
}

/** The exit code of a run: a wrong result, nothing that ran, or a case that did not, never is a success. */
export function casesExitCode(cases: readonly Pick<CaseRecord, "verdict">[]): number {
  if (cases.some(({ verdict }) => verdict === "fail")) return EXIT.accuracy;
  const errors = cases.filter(({ verdict }) => verdict === "error").length;
  if (errors === cases.length) return EXIT.usage;
  return errors > 0 ? EXIT.internal : EXIT.ok;
}

/** A device as the first line of a stream describes it. */
export function describe({ info, limits }: GpuDevice) {
  return {
    backend: info.backend,
    adapter: info.adapter,
    driver: info.driver ?? "",
    limits: { ...limits },
  };
}
