import { dirname, join } from "node:path";
import { InputSyntaxError } from "../errors.ts";
import { followLinks, refuseWrite, writeAtomically } from "../npy/atomic_write.ts";
import { textBytesOf } from "../read_text.ts";
import { reporter } from "./output.ts";

/** A file of ours in the user's cache directory; undefined where there is no such place, or it may not be known. */
export function cachePath(...names: readonly string[]): string | undefined {
  const folder = Deno.build.os === "windows"
    ? variable("LOCALAPPDATA")
    : variable("XDG_CACHE_HOME") ?? under(variable("HOME"), ".cache");
  return under(folder, join("wgconv", ...names));
}

function variable(name: string): string | undefined {
  const { state } = Deno.permissions.querySync({ name: "env", variable: name });
  return state === "granted" ? Deno.env.get(name) || undefined : undefined;
}

function under(folder: string | undefined, path: string): string | undefined {
  return folder === undefined ? undefined : join(folder, path);
}

/** How long another program's merge is waited for, and how often it is looked for. */
const PATIENCE_MS = 10_000;
const POLL_MS = 20;

/**
 * Puts what `merge` makes of a file's text in its place, whole or not at all; of a file that is not there, of no text.
 * Of several programs that do so at the same time each waits for the one before.
 *
 * @throws {Deno.errors.Busy} where another program keeps the file locked.
 * @throws {SyntaxError} where the file is no text.
 * @throws what `merge` throws; the file then stays as it is.
 */
export async function mergeFile(path: string, merge: (text: string) => string): Promise<void> {
  const folder = dirname(path);
  await Deno.mkdir(folder, { recursive: true }).catch((error) => refuseWrite(folder, error));
  const end = performance.now() + PATIENCE_MS;
  while (true) {
    using file = await Deno.open(path, { read: true, write: true, create: true })
      .catch((error) => refuseWrite(path, error));
    // Its successor is to be merged with, where another program has put one in its place.
    if (tryLock(file, path) && isLatest(file, path)) {
      const before = decode(textBytesOf(file, path), path);
      try {
        const after = new TextEncoder().encode(merge(before));
        return await writeAtomically(path, (write) => write(after));
      } catch (error) {
        // It was made to be locked.
        if (before === "") Deno.removeSync(followLinks(path));
        throw error;
      }
    }
    if (performance.now() > end) {
      throw new Deno.errors.Busy(`Cannot write ${path}: another program is writing to it`);
    }
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

function decode(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new InputSyntaxError(
      `Cannot write ${path}: it holds something other than text, which would be lost`,
    );
  }
}

/**
 * Locks a file against other programs of ours, until it is closed or the program ends in whatever way; false where one
 * of them has it. Where files cannot be locked a note says so, and that counts as locked.
 */
export function tryLock(file: Deno.FsFile, path: string): boolean {
  try {
    return file.tryLockSync(true);
  } catch {
    reporter("stderr").message(
      `wgconv: note: ${path} cannot be locked where it is, no other program may write to it now`,
    );
    return true;
  }
}

/** Whether a file is still the one that its path leads to: it may have been replaced or removed before it was locked. */
export function isLatest(file: Deno.FsFile, path: string): boolean {
  const now = statOf(path);
  const own = file.statSync();
  return now !== undefined && own.ino === now.ino && own.dev === now.dev;
}

/**
 * What is at a path; undefined where nothing is.
 *
 * @throws the system's error where that cannot be told, as of links that lead in a circle.
 */
export function statOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
