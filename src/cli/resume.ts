import { recordId } from "../bench/bench_plan.ts";
import { readTextBytes } from "../read_text.ts";
import type { CaseRecord, EnvironmentRecord } from "../report/record.ts";

/** What an earlier run left in its file. */
export interface PreviousRun {
  readonly environment: EnvironmentRecord;
  readonly cases: readonly CaseRecord[];
  /** Bytes of its whole lines; what follows is a line cut off. */
  readonly bytes: number;
}

/**
 * Reads what an earlier run wrote. A last line that no line break ends was cut off and does not count.
 *
 * @returns undefined where there is no file, or no whole line in it.
 * @throws {SyntaxError} with file and line, where the file is no record stream.
 */
export function readPreviousRun(path: string): PreviousRun | undefined {
  let data: Uint8Array;
  try {
    data = readTextBytes(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
  const bytes = data.lastIndexOf("\n".charCodeAt(0)) + 1;
  if (bytes === 0) return undefined;
  const lines = new TextDecoder().decode(data.subarray(0, bytes - 1)).split("\n");
  const records = lines.map((line, index) => parseLine(line, `${path}:${index + 1}`));
  const environment = records[0];
  if (environment?.kind !== "environment") {
    throw new SyntaxError(`Cannot resume: ${path}:1: expected the environment of a run`);
  }
  const cases = records.filter((record) => record.kind === "case");
  return { environment: environment as EnvironmentRecord, cases: cases as CaseRecord[], bytes };
}

function parseLine(line: string, place: string): { readonly kind: unknown } {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new SyntaxError(`Cannot resume: ${place}: the line is no JSON`);
  }
  if (!isRecord(value)) throw new SyntaxError(`Cannot resume: ${place}: the line is no record`);
  return value;
}

/** Whether a line has what resuming and the table of results need of it. */
function isRecord(value: unknown): value is { readonly kind: unknown } {
  if (typeof value !== "object" || value === null || !("kind" in value)) return false;
  if (value.kind !== "case") return true;
  const record: Partial<Record<keyof CaseRecord, unknown>> = value;
  return [record.problem, record.op, record.layout, record.algorithm, record.verdict]
    .every((field) => typeof field === "string");
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
export function refuseOtherRun(previous: PreviousRun, now: EnvironmentRecord): void {
  const differences = environmentDifferences(previous.environment, now);
  if (differences.length === 0) return;
  throw new TypeError(`Cannot resume: the run is another one: ${differences.join("; ")}`);
}

/** What makes two runs' figures no part of one file: clauses such as `seed is 2, was 1`. */
export function environmentDifferences(was: EnvironmentRecord, is: EnvironmentRecord): string[] {
  const fields = ["version", "backend", "adapter", "driver", "seed"] as const;
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
