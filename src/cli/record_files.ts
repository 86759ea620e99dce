import { join } from "node:path";
import { InputTypeError } from "../errors.ts";
import { readText, unreadable } from "../read_text.ts";
import { joinRecords, parseRecords, type RecordSet } from "../report/read_records.ts";

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
