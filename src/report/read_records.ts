import { join } from "node:path";
import { InputRangeError, InputSyntaxError, InputTypeError } from "../errors.ts";
import { CUT_OFF, parseJson } from "../json.ts";
import { readText, unreadable } from "../read_text.ts";
import { caseLabel } from "./case_key.ts";
import {
  CaseSchema,
  EnvironmentSchema,
  type ReadCase,
  type ReadEnvironment,
  readRecord,
} from "./record_schema.ts";

/** The records of one file or of several, in their order. */
export interface RecordSet {
  readonly environments: readonly ReadEnvironment[];
  readonly cases: readonly ReadCase[];
}

/** The last line of a run that was stopped while it wrote. */
export class CutOffError extends InputSyntaxError {
  constructor(where: string, characters: number) {
    super(`Cannot read ${where}: the last record is cut off after ${characters} characters`);
  }
}

/**
 * Reads the lines of a record stream. Kinds and fields it does not know are ignored. A case without a device
 * has the adapter of the environment above it.
 *
 * @param source The file's name, for messages.
 * @throws {SyntaxError} with file and line, when a line is no JSON or was cut off.
 * @throws {TypeError} with file and line, when a record is not of schema 1.
 */
export function parseRecords(text: string, source: string): RecordSet {
  const records = [...eachRecord(text, source)];
  return {
    environments: records.filter((record) => record.kind === "environment"),
    cases: records.filter((record) => record.kind === "case"),
  };
}

/** The records of {@linkcode parseRecords} one by one: what is before a damaged line comes before its error. */
export function* eachRecord(
  text: string,
  source: string,
): Generator<ReadEnvironment | ReadCase, void> {
  const lines = text.replace(/^\uFEFF/, "").split("\n");
  let adapter = "";
  for (const [index, line] of lines.entries()) {
    if (line.trim() === "") continue;
    const where = `${source}:${index + 1}`;
    const value = parseLine(line, index === lines.length - 1, where);
    if (value.kind === "environment") {
      const environment = readRecord(EnvironmentSchema, value, where);
      ({ adapter } = environment);
      yield environment;
    } else if (value.kind === "case") {
      const record = readRecord(CaseSchema, value, where);
      yield { ...record, device: record.device || adapter };
    }
  }
}

/** One line's object; `last` is a line that no line break ends. */
function parseLine(line: string, last: boolean, where: string): { readonly kind: unknown } {
  const value = parseJson(line, (what) => {
    if (last && what === CUT_OFF) return new CutOffError(where, line.length);
    const shown = what.startsWith("has ") ? "; write null" : `: ${excerpt(line)}`;
    return new InputSyntaxError(`Cannot read ${where}: the line ${what}${shown}`);
  });
  if (typeof value !== "object" || value === null || !("kind" in value)) {
    throw new InputTypeError(`Cannot read ${where}: no record, expected an object with a "kind"`);
  }
  return value;
}

function excerpt(line: string): string {
  return line.length <= 40 ? line.trim() : `${line.slice(0, 40)}…`;
}

/** Puts the sets of a suite's shards together, in order. */
function joinRecords(sets: readonly RecordSet[]): RecordSet {
  return {
    environments: sets.flatMap((set) => set.environments),
    cases: sets.flatMap((set) => set.cases),
  };
}

/** Fields that a word of {@linkcode onlyCases} may name, in the order they are looked through. */
const FIELDS: readonly ((record: ReadCase) => string)[] = [
  ({ op }) => op,
  ({ provider }) => provider,
  ({ algorithm }) => algorithm,
  ({ dtype }) => dtype,
  ({ math = "" }) => math,
  ({ layout }) => layout,
  ({ verdict }) => verdict,
  ({ cache = "" }) => cache,
];

/**
 * The cases that words ask for. A word is an operation, provider, algorithm, dtype, math, layout, verdict or cache;
 * any other is a part of problems' names or descriptors. Words of one kind are alternatives, kinds add up:
 * `fwd,bwd-data,nhwc` are the forward and backward-data cases in nhwc.
 *
 * @throws {RangeError} when no case has a word.
 */
export function onlyCases(cases: readonly ReadCase[], words: readonly string[]): ReadCase[] {
  const byField = Map.groupBy(words, (word) => {
    const field = FIELDS.findIndex((of) => cases.some((record) => of(record) === word));
    if (field >= 0) return field;
    if (cases.some((record) => names(record, word))) return FIELDS.length;
    throw new InputRangeError(`Cannot report: no case has "${word}"`);
  });
  return cases.filter((record) =>
    [...byField].every(([field, choices]) =>
      choices.some((word) =>
        FIELDS[field]?.(record) === word || !FIELDS[field] && names(record, word)
      )
    )
  );
}

function names(record: ReadCase, word: string): boolean {
  return record.problem.includes(word) || caseLabel(record).includes(word);
}

/**
 * Reads record files, in order; a folder stands for the `.jsonl` files in it, by name.
 *
 * @throws {Deno.errors.NotFound} when there is no such file.
 * @throws {TypeError} when a folder has none, or a record is not ours to read.
 * @throws {SyntaxError} with file and line, when a line is malformed or cut off.
 */
export async function readRecordFiles(paths: readonly string[]): Promise<RecordSet> {
  const sets: RecordSet[] = [];
  for (const file of await recordFiles(paths)) sets.push(parseRecords(readText(file), file));
  return joinRecords(sets);
}

/**
 * The record files that paths stand for.
 *
 * @throws {TypeError} when a folder has none.
 */
export async function recordFiles(paths: readonly string[]): Promise<string[]> {
  return (await Promise.all(paths.map(filesOf))).flat();
}

async function filesOf(path: string): Promise<string[]> {
  const info = await Deno.stat(path).catch(() => null);
  if (!info?.isDirectory) return [path];
  const names = await Array.fromAsync(Deno.readDir(path), ({ name }) => name)
    .catch((error) => {
      throw unreadable(error, path);
    });
  const files = names.filter((name) => name.endsWith(".jsonl")).sort();
  if (files.length === 0) throw new InputTypeError(`Cannot read ${path}: it has no .jsonl files`);
  return files.map((name) => join(path, name));
}
