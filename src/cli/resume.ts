import { recordId } from "../bench/bench_plan.ts";
import { InputSyntaxError, InputTypeError } from "../errors.ts";
import { parseRecords } from "../report/read_records.ts";
import type { ReadCase, ReadEnvironment } from "../report/record_schema.ts";

/** What an earlier run left in its file. */
export interface PreviousRun {
  readonly environment: ReadEnvironment;
  readonly cases: readonly ReadCase[];
  /** Bytes of its whole lines; what follows is a line cut off. */
  readonly bytes: number;
  /** Whether the last of them is yet to be ended by a line break. */
  readonly unended: boolean;
}

/** What a run must have in common with the one that it goes on with. */
export type RunIdentity = Pick<
  ReadEnvironment,
  "version" | "backend" | "adapter" | "driver" | "model" | "seed" | "options"
>;

/**
 * Reads what an earlier run wrote, by the schema of records. A last line that no line break ends counts where it is
 * whole; else it was cut off.
 *
 * @param source The file's name, for messages.
 * @returns undefined where there is no whole line.
 * @throws {SyntaxError | TypeError} with file and line, where the file is no record stream of this version.
 */
export function readPreviousRun(data: Uint8Array, source: string): PreviousRun | undefined {
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
export function environmentDifferences(was: RunIdentity, is: RunIdentity): string[] {
  const fields = ["version", "backend", "adapter", "driver", "model", "seed"] as const;
  const options = new Set([...Object.keys(was.options ?? {}), ...Object.keys(is.options ?? {})]);
  return [
    ...fields.map((name) => [name, was[name], is[name]] as const),
    ...[...options].map((name) => [`--${name}`, was.options?.[name], is.options?.[name]] as const),
  ]
    .filter(([, before, now]) => before !== now)
    .map(([name, before, now]) => `${name} is ${show(now)}, was ${show(before)}`);
}

function show(value: string | number | undefined): string {
  return value === undefined ? "not given" : `${value}`;
}
