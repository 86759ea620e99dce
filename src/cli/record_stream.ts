import { recordId } from "../bench/bench_plan.ts";
import { InputSyntaxError, InputTypeError } from "../errors.ts";
import { followLinks, refuseWrite, writeError } from "../npy/atomic_write.ts";
import { textBytesOf } from "../read_text.ts";
import { parseRecords } from "../report/read_records.ts";
import type { ReportRecord } from "../report/record.ts";
import type { ReadCase, ReadEnvironment } from "../report/record_schema.ts";
import type { Writes } from "./failure.ts";
import { isLatest, statOf, tryLock } from "./kept_files.ts";
import { printer } from "./output.ts";

/** Where records go, each as a line of its own as soon as it is known. */
interface RecordStream extends Disposable {
  /** What an earlier run left there, where it is gone on with. */
  readonly previous: PreviousRun | undefined;
  /** Writes a record; a failure is told to the {@linkcode Writes} of the command. */
  write(record: ReportRecord): void;
}

export interface StreamOptions {
  /** Goes on with what is there; not given by commands that cannot. */
  readonly resume?: boolean;
  readonly force?: boolean | undefined;
}

/**
 * Opens a stream of records: of a file, of stdout (`-`), or of nothing without a target. The file is locked against
 * other programs, and stays as it is until the first record; one that is made here goes again if none comes.
 *
 * @throws {TypeError} where the file holds something and no option says what is to become of it.
 * @throws {Deno.errors.Busy} where another program writes records to it.
 * @throws as {@linkcode readPreviousRun}.
 */
export function openRecords(
  target: string | undefined,
  writes: Writes,
  options: StreamOptions = {},
): RecordStream {
  const nothing = { previous: undefined, [Symbol.dispose]: () => {} };
  if (target === undefined) return { ...nothing, write: () => {} };
  if (target === "-") {
    const out = printer("stdout");
    return { ...nothing, write: (record) => out.line(JSON.stringify(record)) };
  }
  const { file, made, special } = openFile(target);
  try {
    if (special && options.resume) {
      throw new InputTypeError(
        `Cannot resume: ${target} is not a file, so it holds no earlier run`,
      );
    }
    const previous = special ? undefined : previousRun(file, target, options);
    return fileStream(target, file, { made, special, previous, writes });
  } catch (error) {
    if (made) Deno.removeSync(followLinks(target));
    file.close();
    throw error;
  }
}

interface OpenFile {
  readonly file: Deno.FsFile;
  /** Whether it was not there before. */
  readonly made: boolean;
  readonly special: boolean;
}

/** As {@linkcode statOf}; what fails is said as that of a write. */
function whatIsAt(path: string): Deno.FileInfo | undefined {
  try {
    return statOf(path);
  } catch (error) {
    refuseWrite(path, error);
  }
}

function openFile(path: string): OpenFile {
  while (true) {
    const there = whatIsAt(path);
    const made = there === undefined;
    const special = there !== undefined && !there.isFile;
    let file: Deno.FsFile;
    try {
      file = Deno.openSync(made ? followLinks(path) : path, {
        write: true,
        read: !special,
        createNew: made,
      });
    } catch (error) {
      // Another program made it, or removed it, since it was looked for.
      const gone = made ? Deno.errors.AlreadyExists : Deno.errors.NotFound;
      if (error instanceof gone && whatIsAt(path) !== undefined === made) continue;
      refuseWrite(path, error);
    }
    if (special) return { file, made, special };
    if (!tryLock(file, path)) {
      file.close();
      throw new Deno.errors.Busy(`Cannot write ${path}: another program is writing records to it`);
    }
    if (isLatest(file, path)) return { file, made, special };
    file.close();
  }
}

function previousRun(
  file: Deno.FsFile,
  path: string,
  { resume, force }: StreamOptions,
): PreviousRun | undefined {
  const { size } = file.statSync();
  if (size === 0 || (force && !resume)) return undefined;
  if (!resume) {
    const goOn = resume === undefined ? "" : "--resume continues it, ";
    throw new InputTypeError(`Cannot write ${path}: it is not empty, ${goOn}--force overwrites it`);
  }
  return readPreviousRun(textBytesOf(file, path), path);
}

function fileStream(
  path: string,
  file: Deno.FsFile,
  { made, special, previous, writes }: Omit<OpenFile, "file"> & {
    readonly previous: PreviousRun | undefined;
    readonly writes: Writes;
  },
): RecordStream {
  let begun = false;
  let lead = previous?.unended ? "\n" : "";
  /** Where whole lines end, while something else may follow them: what was there, or a line that failed. */
  let end: number | undefined = special ? undefined : previous?.bytes ?? 0;
  const cut = () => {
    if (end !== undefined) file.truncateSync(end);
    end = undefined;
  };
  return {
    previous,
    write(record) {
      const bytes = new TextEncoder().encode(`${lead}${JSON.stringify(record)}\n`);
      try {
        cut();
        const start = special ? undefined : file.seekSync(0, Deno.SeekMode.End);
        begun = true;
        end = start;
        for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
        end = undefined;
        lead = "";
      } catch (error) {
        writes.failed(writeError(path, error));
      }
    },
    [Symbol.dispose]() {
      try {
        if (begun) cut();
        else if (made) Deno.removeSync(followLinks(path));
      } catch {
        // Nothing more can be done, and what ends the command is to be said.
      }
      file.close();
    },
  };
}

/** What an earlier run left in its file. */
interface PreviousRun {
  readonly environment: ReadEnvironment;
  readonly cases: readonly ReadCase[];
  /** Bytes of its whole lines; what follows is a line cut off. */
  readonly bytes: number;
  /** Whether the last of them is yet to be ended by a line break. */
  readonly unended: boolean;
}

/** What a run must have in common with the one that it goes on with. */
type RunIdentity = Pick<
  ReadEnvironment,
  "version" | "backend" | "adapter" | "driver" | "model" | "seed" | "options" | "tags"
>;

/**
 * Reads what an earlier run wrote, by the schema of records. A last line that no line break ends counts where it is
 * whole; else it was cut off.
 *
 * @param source The file's name, for messages.
 * @returns undefined where there is no whole line.
 * @throws {SyntaxError | TypeError} with file and line, where the file is no record stream of this version.
 */
function readPreviousRun(data: Uint8Array, source: string): PreviousRun | undefined {
  const ended = data.lastIndexOf("\n".charCodeAt(0)) + 1;
  const unended = ended < data.length && isWhole(data.subarray(ended));
  const bytes = unended ? data.length : ended;
  if (bytes === 0) return undefined;
  const text = new TextDecoder().decode(data.subarray(0, bytes));
  const { environments, cases } = parseRecords(text, source);
  const [environment] = environments;
  if (environment === undefined) {
    throw new InputSyntaxError(`Cannot resume: ${source}:1: expected the environment of a run`);
  }
  return { environment, cases, bytes, unended };
}

function isWhole(line: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder().decode(line));
    return true;
  } catch {
    return false;
  }
}

/** The ids of the cases that have a record. */
export function finishedIds({ cases }: PreviousRun): Set<string> {
  return new Set(cases.map(recordId));
}

/**
 * Refuses to put records of one run into the file of another.
 *
 * @throws {TypeError} that says what differs.
 */
export function refuseOtherRun(previous: PreviousRun, now: RunIdentity): void {
  const differences = environmentDifferences(previous.environment, now);
  if (differences.length === 0) return;
  throw new InputTypeError(`Cannot resume: the earlier run differs: ${differences.join("; ")}`);
}

/** What makes two runs' figures no part of one file: clauses such as `seed is 2, was 1`. */
function environmentDifferences(was: RunIdentity, is: RunIdentity): string[] {
  const fields = ["version", "backend", "adapter", "driver", "model", "seed"] as const;
  const named = (
    what: (name: string) => string,
    before: RunIdentity["options"] = {},
    now: RunIdentity["options"] = {},
  ) =>
    Object.keys({ ...before, ...now }).map((name) =>
      [what(name), before[name], now[name]] as const
    );
  return [
    ...fields.map((name) => [name, was[name], is[name]] as const),
    ...named((name) => `--${name}`, was.options, is.options),
    ...named((name) => `--tag ${name}`, was.tags, is.tags),
  ]
    .filter(([, before, now]) => before !== now)
    .map(([name, before, now]) => `${name} is ${show(now)}, was ${show(before)}`);
}

function show(value: string | number | undefined): string {
  return value === undefined ? "not given" : `${value}`;
}
