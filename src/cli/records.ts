import { EXIT } from "../errors.ts";
import { refuseWrite } from "../npy/atomic_write.ts";
import { type DeviceOptions, type GpuDevice, openDevice } from "../gpu/device.ts";
import { caseTable } from "../report/case_report.ts";
import { environmentRecord } from "../report/environment.ts";
import { networkTotals } from "../report/totals.ts";
import { formatDuration } from "../report/format.ts";
import type { CaseRecord, ReportRecord } from "../report/record.ts";
import { ExitCode } from "./failure.ts";
import { printer, progress } from "./output.ts";
import { type PreviousRun, refuseOtherRun } from "./resume.ts";

/** Where records go. */
export interface RecordOptions {
  readonly json?: true | undefined;
  readonly jsonl?: string | undefined;
  readonly seed: number;
}

/** What makes a suite's records: `open` gives the device, `onCase` shows how far it is. */
export type Suite = (
  open: () => Promise<GpuDevice>,
  onCase: (index: number, count: number, what: string) => void,
) => AsyncIterable<CaseRecord>;

/** What a run that can be resumed knows beside its records. */
export interface ResumeOptions {
  /** Goes into the environment; a resumed run must have the same. */
  readonly options: Readonly<Record<string, string | number>>;
  /** What the file holds already. */
  readonly previous?: PreviousRun | undefined;
}

/**
 * Runs a suite: writes each record at once, then prints the table and what went wrong.
 *
 * @throws {ExitCode} unless every case ran and none failed.
 * @throws {TypeError} where no case ran, or the resumed run was another one.
 */
export async function reportSuite(
  options: RecordOptions,
  device: DeviceOptions,
  suite: Suite,
  { options: runOptions, previous }: Partial<ResumeOptions> = {},
): Promise<void> {
  const target = options.json ? "-" : options.jsonl;
  using records = recordSink(target, previous?.bytes);
  const out = printer(target === "-" ? "stderr" : "stdout");
  const shown = progress();
  let described = false;
  const open = async () => {
    const gpu = await openDevice(device);
    if (described) return gpu;
    described = true;
    const environment = environmentRecord(describe(gpu), options.seed, runOptions);
    if (previous === undefined) records.write(environment);
    else refuseOtherRun(previous, environment);
    return gpu;
  };
  const cases: CaseRecord[] = [...previous?.cases ?? []];
  const start = performance.now();
  const onCase = (index: number, count: number, what: string) => {
    const left = (performance.now() - start) / (index - 1) * (count - index + 1);
    const eta = index === 1 ? "" : `, about ${formatDuration(left)} left`;
    shown.update(`case ${index} of ${count}: ${what}${eta}`);
  };
  for await (const record of suite(open, onCase)) {
    records.write(record);
    cases.push(record);
  }
  shown.done();
  if (cases.length === 0) {
    throw new TypeError(
      "Cannot bench: nothing ran, what was asked for supports none of the problems",
    );
  }
  out.line(caseTable(cases));
  for (const line of networkTotals(cases)) out.line(line);
  for (const { problem, op, verdict, message } of cases) {
    if (verdict === "error" || verdict === "fail") {
      out.message(`${verdict}: ${op} ${problem}: ${message}`);
    }
  }
  const code = casesExitCode(cases);
  if (code !== EXIT.ok) throw new ExitCode(code);
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

/**
 * Writes records as lines, each at once; nowhere without a target.
 *
 * @param keep Bytes of the file that stay.
 */
export function recordSink(
  target: string | undefined,
  keep = 0,
): Disposable & { write(r: ReportRecord): void } {
  if (target === undefined) return { write: () => {}, [Symbol.dispose]: () => {} };
  if (target === "-") {
    const out = printer("stdout");
    return { write: (record) => out.line(JSON.stringify(record)), [Symbol.dispose]: () => {} };
  }
  const file = openForRecords(target, keep);
  return {
    write(record) {
      const bytes = new TextEncoder().encode(`${JSON.stringify(record)}\n`);
      try {
        for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
      } catch (error) {
        refuseWrite(target, error);
      }
    },
    [Symbol.dispose]: () => file.close(),
  };
}

function openForRecords(path: string, keep: number): Deno.FsFile {
  try {
    const file = Deno.openSync(path, { write: true, create: true, truncate: keep === 0 });
    if (keep > 0) {
      file.truncateSync(keep);
      file.seekSync(keep, Deno.SeekMode.Start);
    }
    return file;
  } catch (error) {
    refuseWrite(path, error);
  }
}
