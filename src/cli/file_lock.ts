import { reporter } from "./output.ts";

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
