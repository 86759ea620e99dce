import { dirname, isAbsolute, join, resolve } from "node:path";
import { InputTypeError, systemWords } from "../errors.ts";

/** Takes the next bytes of a file, or those from byte `at` on; resolves when they are written. */
export type WriteChunk = (chunk: Uint8Array, at?: number) => Promise<void>;

/** Bytes a single system call writes: small enough that signals are answered in between. */
const PIECE = 4 << 20;
const SIGNALS: readonly (readonly [signal: Deno.Signal, exitCode: number])[] =
  Deno.build.os === "windows"
    ? [["SIGINT", 130]]
    : [["SIGHUP", 129], ["SIGINT", 130], ["SIGTERM", 143]];

/** Signals that would end the process where its write can fail: a file beyond `ulimit -f`. */
const FAILING: readonly Deno.Signal[] = Deno.build.os === "windows" ? [] : ["SIGXFSZ"];

/** Links that Linux follows from one path. */
const MOST_LINKS = 40;

/** Files that a signal must not leave behind. */
const pending = new Set<string>();
let removeListeners: () => void = () => {};

/**
 * Writes a file whole or not at all: `body` writes to a temporary file in the same directory, which is
 * flushed and takes the place of `path` when `body` is done. An error, SIGHUP, SIGINT or SIGTERM removes
 * the temporary; the signals then end the process with 129, 130 or 143. A device or pipe at `path` is
 * written to as it is.
 *
 * @param until What has to go well before the file is there; nothing goes to a device or pipe before that.
 * @throws {Deno.errors.WriteZero} when the disk is full.
 */
export async function writeAtomically(
  path: string,
  body: (write: WriteChunk) => Promise<void>,
  until?: Promise<unknown>,
): Promise<void> {
  // It may fail before it is waited for.
  until?.catch(() => {});
  const { target, mode, special } = await describeTarget(path);
  if (special) {
    await until;
    using file = await Deno.open(target, { write: true }).catch((error) =>
      refuseWrite(path, error)
    );
    return await body((chunk, at) => writeAll(file, chunk, at, path));
  }
  const temporary = temporaryBeside(target);
  removeOnSignal(temporary);
  try {
    {
      using file = makeTemporary(temporary, path, mode);
      await body((chunk, at) => writeAll(file, chunk, at, path));
      await file.sync().catch((error) => refuseWrite(path, error));
    }
    await until;
    await Deno.rename(temporary, target).catch((error) => refuseWrite(path, error));
  } catch (error) {
    removeQuietly(temporary);
    throw error;
  } finally {
    await keepOnSignal(temporary);
  }
}

/**
 * Finds out whether {@linkcode writeAtomically} could write `path`, by making a temporary file beside it, which
 * goes at once. What is at `path` stays as it is; a device or pipe is not opened.
 *
 * @throws as {@linkcode writeAtomically}.
 */
export async function proveWritable(path: string): Promise<void> {
  const { target, special } = await describeTarget(path);
  if (!special) await makeAndRemove(temporaryBeside(target), path);
}

/**
 * Finds out whether files can be written into a folder, which may have to be made first, as {@linkcode proveWritable}
 * does; nothing is left.
 *
 * @throws {Deno.errors.NotADirectory} where something else has its name.
 */
export async function proveFolder(path: string): Promise<void> {
  for (let folder = resolve(path);; folder = dirname(folder)) {
    const info = await Deno.stat(folder).catch((error) => {
      if (!isAbsent(error) || folder === dirname(folder)) refuseWrite(path, error);
    });
    if (info === undefined) continue;
    if (info.isDirectory) return await makeAndRemove(temporaryBeside(join(folder, "wgconv")), path);
    throw new Deno.errors.NotADirectory(`Cannot write ${path}: ${folder} is no directory`);
  }
}

async function makeAndRemove(temporary: string, path: string): Promise<void> {
  removeOnSignal(temporary);
  try {
    makeTemporary(temporary, path).close();
  } finally {
    removeQuietly(temporary);
    await keepOnSignal(temporary);
  }
}

/** At once: what a signal ends while the file is still to be made would leave it behind. */
function makeTemporary(temporary: string, path: string, mode?: number): Deno.FsFile {
  const options = { write: true, createNew: true, ...(mode === undefined ? {} : { mode }) };
  try {
    return Deno.openSync(temporary, options);
  } catch (error) {
    refuseWrite(path, error);
  }
}

function temporaryBeside(target: string): string {
  const random = crypto.getRandomValues(new Uint32Array(1))[0]!.toString(36);
  return `${target}.tmp-${Deno.pid}-${random}`;
}

/** {@linkcode writeAtomically}, or to stdout where `path` is `-`. */
export async function writeOutput(
  path: string,
  body: (write: WriteChunk) => Promise<void>,
  until?: Promise<unknown>,
): Promise<void> {
  if (path !== "-") return await writeAtomically(path, body, until);
  await until;
  await body((chunk, at) => writeAll(Deno.stdout, chunk, at, "stdout"));
}

/** {@linkcode writeOutput} of a text. */
export async function writeText(path: string, text: string): Promise<void> {
  await writeOutput(path, (write) => write(new TextEncoder().encode(text)));
}

/** Where a path leads by links, also where nothing is there yet: what is written there leaves them as they are. */
export function followLinks(path: string): string {
  let target = path;
  // Links that lead in a circle are refused by whoever opens them.
  for (let count = 0; count < MOST_LINKS; count++) {
    try {
      const link = Deno.readLinkSync(target);
      // Not joined: what ".." leads to is the system's to say.
      target = isAbsolute(link) ? link : `${dirname(target)}/${link}`;
    } catch {
      break;
    }
  }
  return target;
}

/** Follows links, so that a link stays one, and tells files from devices and pipes. */
async function describeTarget(path: string) {
  if (path === "") throw new InputTypeError('Cannot write a file: its name is ""');
  try {
    const { isFile, isDirectory, mode } = await Deno.stat(path);
    if (isDirectory) throw new Deno.errors.IsADirectory(`Cannot write ${path}: it is a directory`);
    const target = isFile ? await Deno.realPath(path) : path;
    return { target, mode: mode === null ? undefined : mode & 0o777, special: !isFile };
  } catch (error) {
    if (!isAbsent(error)) {
      if (error instanceof Error && error.message.startsWith("Cannot ")) throw error;
      refuseWrite(path, error);
    }
    const target = followLinks(path);
    const directory = dirname(target);
    const parent = await Deno.stat(directory).catch(() => undefined);
    if (!parent?.isDirectory) {
      throw new Deno.errors.NotFound(`Cannot write ${path}: there is no directory ${directory}`);
    }
    return { target, mode: undefined, special: false };
  }
}

function isAbsent(error: unknown): boolean {
  return error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory;
}

interface Writable {
  write(chunk: Uint8Array): Promise<number>;
  seek?(offset: number, whence: Deno.SeekMode): Promise<number>;
}

async function writeAll(
  file: Writable,
  chunk: Uint8Array,
  at: number | undefined,
  path: string,
): Promise<void> {
  if (at !== undefined) {
    await file.seek?.(at, Deno.SeekMode.Start).catch((error) => refuseWrite(path, error));
  }
  for (let offset = 0; offset < chunk.length;) {
    const piece = chunk.subarray(offset, offset + PIECE);
    offset += await file.write(piece).catch((error) => refuseWrite(path, error));
  }
}

/** Throws what {@linkcode writeError} gives. */
export function refuseWrite(path: string, error: unknown): never {
  throw writeError(path, error);
}

/** Says what could not be written, keeping the error's class but for a full disk and a file that grows too large, which have none. */
export function writeError(path: string, error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code } = error as { code?: unknown };
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new Deno.errors.WriteZero(`Cannot write ${path}: the disk is full`);
  }
  // Deno gives it no code.
  if (/^File too large\b/.test(error.message)) {
    return new Deno.errors.WriteZero(
      `Cannot write ${path}: it is larger than a file may be here (ulimit -f)`,
    );
  }
  error.message = `Cannot write ${path}: ${systemWords(error)}`;
  return error;
}

/** From here on a signal removes the file. */
function removeOnSignal(path: string): void {
  if (pending.size === 0) {
    const listeners = SIGNALS.map(([signal, code]) => {
      const onSignal = () => {
        pending.forEach(removeQuietly);
        Deno.exit(code);
      };
      Deno.addSignalListener(signal, onSignal);
      return () => Deno.removeSignalListener(signal, onSignal);
    });
    for (const signal of FAILING) {
      const onSignal = () => {};
      Deno.addSignalListener(signal, onSignal);
      listeners.push(() => Deno.removeSignalListener(signal, onSignal));
    }
    removeListeners = () => listeners.splice(0).forEach((remove) => remove());
  }
  pending.add(path);
}

/** Ends what {@linkcode removeOnSignal} began. A signal that has come by now is heard first, lest nobody hears it. */
async function keepOnSignal(path: string): Promise<void> {
  await new Promise((done) => setTimeout(done, 0));
  pending.delete(path);
  if (pending.size === 0) removeListeners();
}

function removeQuietly(path: string): void {
  try {
    Deno.removeSync(path);
  } catch {
    // It was never made, or it has taken its place already.
  }
}

/**
 * Waits until no other program of ours holds the folder of a file, and holds it until what is given back is disposed of,
 * or the program ends in whatever way. Where folders cannot be locked (Windows, some network drives) nothing is held.
 */
export async function lockFolder(path: string): Promise<Disposable> {
  let folder: Deno.FsFile | undefined;
  try {
    folder = await Deno.open(dirname(path));
    await folder.lock(true);
  } catch {
    // Writes stay whole without it; of two at the same time the later one counts.
  }
  return { [Symbol.dispose]: () => folder?.close() };
}
