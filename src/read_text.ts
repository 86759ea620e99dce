import { InputRangeError, InputTypeError, systemWords } from "./errors.ts";

/** Bytes of the longest text that is read: suites, records, baselines, caches, limits. */
export const MAX_TEXT_BYTES = 64 << 20;

/**
 * Reads a text file, a pipe, or stdin (`-`), of at most {@linkcode MAX_TEXT_BYTES}.
 *
 * @throws {Deno.errors.NotFound} and kin, naming the path, when the file cannot be read.
 * @throws {TypeError} for bytes that are no text, {RangeError} for too many of them.
 */
export function readText(path: string): string {
  const decoder = new TextDecoder();
  if (path === "-") return decoder.decode(textBytesOf(Deno.stdin, "stdin"));
  try {
    using file = Deno.openSync(path);
    return decoder.decode(textBytesOf(file, path));
  } catch (error) {
    throw unreadable(error, path);
  }
}

/** The bytes of {@linkcode readText}, of a file that is open, from where it stands. */
export function textBytesOf(
  file: Pick<Deno.FsFile, "readSync"> & Partial<Pick<Deno.FsFile, "statSync">>,
  path: string,
): Uint8Array<ArrayBuffer> {
  const tooLong = () =>
    new InputRangeError(
      `Cannot read ${path}: it is longer than the ${MAX_TEXT_BYTES >> 20} MiB of a text`,
    );
  try {
    const stat = file.statSync?.();
    if (stat?.isDirectory) throw new Deno.errors.IsADirectory("it is a directory");
    if (stat !== undefined && stat.size > MAX_TEXT_BYTES) throw tooLong();
    const pieces: Uint8Array[] = [];
    let length = 0;
    const piece = new Uint8Array(64 << 10);
    for (let count = file.readSync(piece); count !== null; count = file.readSync(piece)) {
      const bytes = piece.slice(0, count);
      if (length === 0 && isUtf16(bytes)) {
        throw new InputTypeError(
          `Cannot read ${path}: it is UTF-16, as PowerShell's > writes; save it as UTF-8, ` +
            "or have it written by --output or --jsonl",
        );
      }
      // No text has a zero in it; a device that gives nothing else is known by its first bytes.
      if (bytes.includes(0)) throw new InputTypeError(`Cannot read ${path}: it is no text`);
      length += count;
      if (length > MAX_TEXT_BYTES) throw tooLong();
      pieces.push(bytes);
    }
    const bytes = new Uint8Array(length);
    pieces.reduce((offset, part) => (bytes.set(part, offset), offset + part.length), 0);
    return bytes;
  } catch (error) {
    throw unreadable(error, path);
  }
}

/** Whether bytes begin with a byte order mark of UTF-16. */
function isUtf16([first, second]: Uint8Array): boolean {
  return first === 0xff && second === 0xfe || first === 0xfe && second === 0xff;
}

/** An error of the system's with a sentence that names the file, not the call. */
export function unreadable(error: unknown, path: string): unknown {
  if (!(error instanceof Error) || error.message.startsWith("Cannot ")) return error;
  if (path.includes("\0")) return new InputTypeError("Cannot read a file: its name has a NUL");
  if (path === "") return new Deno.errors.NotFound('Cannot read a file: its name is ""');
  if (error instanceof Deno.errors.NotFound) {
    return new Deno.errors.NotFound(`Cannot read ${path}: there is no such file`);
  }
  error.message = `Cannot read ${path}: ${systemWords(error)}`;
  return error;
}
