import { dirname } from "#path";

/** Takes the next bytes of a file; resolves when they are written. */
export type WriteChunk = (chunk: Uint8Array) => Promise<void>;

/** Bytes a single system call writes: small enough that signals are answered in between. */
const PIECE = 4 << 20;
const SIGNALS: readonly (readonly [signal: Deno.Signal, exitCode: number])[] =
  Deno.build.os === "windows" ? [["SIGINT", 130]] : [["SIGINT", 130], ["SIGTERM", 143]];

/** Temporary files that a signal must not leave behind. */
const pending = new Set<string>();
let removeListeners: () => void = () => {};

/**
 * Writes a file whole or not at all: `body` writes to a temporary file in the same directory, which is
 * flushed and takes the place of `path` when `body` is done. An error, SIGINT or SIGTERM removes the
 * temporary; the signals then end the process with 130 or 143. A device or pipe at `path` is written
 * to as it is.
 *
 * @throws {Deno.errors.WriteZero} when the disk is full.
 */
export async function writeAtomically(
  path: string,
  body: (write: WriteChunk) => Promise<void>,
): Promise<void> {
  const { target, mode, special } = await describeTarget(path);
  if (special) {
    using file = await Deno.open(target, { write: true }).catch((error) =>
      refuseWrite(path, error)
    );
    return await body((chunk) => writeAll(file, chunk, path));
  }
  const random = crypto.getRandomValues(new Uint32Array(1))[0]!.toString(36);
  const temporary = `${target}.tmp-${Deno.pid}-${random}`;
  keep(temporary);
  try {
    {
      using file = await Deno.open(temporary, { write: true, createNew: true, mode })
        .catch((error) => refuseWrite(path, error));
      await body((chunk) => writeAll(file, chunk, path));
      await file.sync().catch((error) => refuseWrite(path, error));
    }
    await Deno.rename(temporary, target).catch((error) => refuseWrite(path, error));
  } catch (error) {
    removeQuietly(temporary);
    throw error;
  } finally {
    release(temporary);
  }
}

/** {@linkcode writeAtomically}, or to stdout where `path` is `-`. */
export async function writeOutput(
  path: string,
  body: (write: WriteChunk) => Promise<void>,
): Promise<void> {
  if (path !== "-") return await writeAtomically(path, body);
  await body((chunk) => writeAll(Deno.stdout, chunk, "stdout"));
}

/** Follows links, so that a link stays one, and tells files from devices and pipes. */
async function describeTarget(path: string) {
  try {
    const { isFile, isDirectory, mode } = await Deno.stat(path);
    if (isDirectory) throw new Deno.errors.IsADirectory(`Cannot write ${path}: it is a directory`);
    const target = isFile ? await Deno.realPath(path) : path;
    return { target, mode: mode === null ? undefined : mode & 0o777, special: !isFile };
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) {
      if (error instanceof Error && error.message.startsWith("Cannot ")) throw error;
      refuseWrite(path, error);
    }
    const directory = dirname(path);
    const parent = await Deno.stat(directory).catch(() => undefined);
    if (!parent?.isDirectory) {
      throw new Deno.errors.NotFound(`Cannot write ${path}: there is no directory ${directory}`);
    }
    return { target: path, mode: undefined, special: false };
  }
}

interface Writable {
  write(chunk: Uint8Array): Promise<number>;
}

async function writeAll(file: Writable, chunk: Uint8Array, path: string): Promise<void> {
  for (let offset = 0; offset < chunk.length;) {
    const piece = chunk.subarray(offset, offset + PIECE);
    offset += await file.write(piece).catch((error) => refuseWrite(path, error));
  }
}

/** Says what could not be written, keeping the error's class but for a full disk, which has none. */
export function refuseWrite(path: string, error: unknown): never {
  if (!(error instanceof Error)) throw error;
  const { code } = error as { code?: unknown };
  if (code === "ENOSPC" || code === "EDQUOT") {
    throw new Deno.errors.WriteZero(`Cannot write ${path}: the disk is full`);
  }
  // Deno's message ends with the call and its path, which is the temporary's.
  error.message = `Cannot write ${path}: ${error.message.split(": ")[0]}`;
  throw error;
}

function keep(temporary: string): void {
  if (pending.size === 0) {
    const listeners = SIGNALS.map(([signal, code]) => {
      const onSignal = () => {
        pending.forEach(removeQuietly);
        Deno.exit(code);
      };
      Deno.addSignalListener(signal, onSignal);
      return () => Deno.removeSignalListener(signal, onSignal);
    });
    removeListeners = () => listeners.forEach((remove) => remove());
  }
  pending.add(temporary);
}

function release(temporary: string): void {
  pending.delete(temporary);
  if (pending.size === 0) removeListeners();
}

function removeQuietly(path: string): void {
  try {
    Deno.removeSync(path);
  } catch {
    // It was never made, or it has taken its place already.
  }
}
