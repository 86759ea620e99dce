import { InputRangeError, InputSyntaxError, InputTypeError, systemWords } from "../errors.ts";

/** Bytes at rest that can be read from any place: a file, memory, or a part of either. */
export interface ByteSource {
  /** Number of bytes. */
  readonly size: number;
  /** Fills `into` from byte `offset` on; returns the bytes read, fewer only at the end. */
  read(into: Uint8Array, offset: number): Promise<number>;
  close(): void;
}

/** Bytes a single system call reads, which goes on while this thread is busy: less than Linux reads at once. */
const PIECE = 2 ** 30;

/** Most bytes that stdin or a pipe may bring where they are held in memory. */
export const MAX_PIPE_BYTES = 4 * 2 ** 30;
/** A pipe that promises more than this is read once, from front to back, where its format allows that. */
const HELD_BYTES = 256 * 2 ** 20;

/** What a stream's first bytes promise: how many it has in all. Throws where they are those of no file that is read. */
export interface StreamStart {
  /** First bytes that are looked at; fewer where the stream ends before. */
  readonly bytes: number;
  promised(start: Uint8Array): number;
  /** Whether who reads it reads from front to back, but for those first bytes. */
  inSequence(start: Uint8Array): boolean;
}

/**
 * Opens a file, or stdin where `path` is `-`. What cannot be read from any place (stdin, pipes, devices) is
 * read into memory at once, as far as `start` says; a byte more where the stream goes on. What is long is read as it is
 * needed, once, where `start` allows it.
 *
 * @throws {Deno.errors.NotFound} and kin, naming the path, when the file cannot be opened.
 * @throws {TypeError} for a name that no file can have.
 * @throws {RangeError} for streams of more than {@linkcode MAX_PIPE_BYTES}.
 * @throws what `start` throws.
 */
export async function openBytes(path: string, start: StreamStart): Promise<ByteSource> {
  if (path === "-") return await readStream(Deno.stdin.readable, path, start);
  if (path.includes("\0")) {
    throw new InputTypeError("Cannot read a file: its name has a NUL");
  }
  if (path === "") throw new Deno.errors.NotFound('Cannot read a file: its name is ""');
  let file: Deno.FsFile | undefined;
  try {
    file = await Deno.open(path);
    const { isFile, isDirectory, size } = await file.stat();
    if (isDirectory) throw new Deno.errors.IsADirectory("it is a directory");
    if (isFile) return fileBytes(file, size, path);
    const { readable } = file;
    // The stream closes the file, whatever comes of it.
    file = undefined;
    return await readStream(readable, path, start);
  } catch (error) {
    file?.close();
    if (error instanceof Deno.errors.NotFound) {
      error.message = `Cannot read ${path}: there is no such file`;
    }
    refuseRead(path, error);
  }
}

function refuseRead(path: string, error: unknown): never {
  if (error instanceof Error && !error.message.startsWith("Cannot ")) {
    error.message = `Cannot read ${path}: ${systemWords(error)}`;
  }
  throw error;
}

/** Bytes in memory. */
export function memoryBytes(bytes: Uint8Array): ByteSource {
  return {
    size: bytes.length,
    read(into, offset) {
      const part = bytes.subarray(offset, offset + into.length);
      into.set(part);
      return Promise.resolve(part.length);
    },
    close() {},
  };
}

/** A part of `source`, and its owner from now on: closing the part closes the whole. */
export function sliceBytes(source: ByteSource, start: number, size: number): ByteSource {
  return {
    size,
    read(into, offset) {
      return source.read(into.subarray(0, Math.max(0, size - offset)), start + offset);
    },
    close: () => source.close(),
  };
}

/** The same bytes, which another owns: they stay open when this is closed. */
export function unowned(bytes: ByteSource): ByteSource {
  return { size: bytes.size, read: (into, offset) => bytes.read(into, offset), close: () => {} };
}

/**
 * Fills `into` from byte `offset` of `source`.
 *
 * @throws {SyntaxError} when the source ends before.
 */
export async function readExactly(
  source: ByteSource,
  into: Uint8Array,
  offset: number,
  path: string,
): Promise<void> {
  const count = await source.read(into, offset);
  if (count < into.length) {
    throw new InputSyntaxError(
      `Cannot read ${path}: byte ${offset + count}: expected ${into.length - count} more bytes, ` +
        "found the end of the file",
    );
  }
}

function fileBytes(file: Deno.FsFile, size: number, path: string): ByteSource {
  let open = true;
  let turn: Promise<unknown> = Promise.resolve();
  /** Where the file stands; undefined where a call failed. */
  let at: number | undefined = 0;
  const readAt = async (into: Uint8Array, offset: number) => {
    let count = 0;
    while (count < into.length) {
      const from = offset + count;
      const there = at === from;
      at = undefined;
      // At once, so that reading begins before the caller keeps this thread busy.
      if (!there) file.seekSync(from, Deno.SeekMode.Start);
      const read = await file.read(into.subarray(count, count + PIECE));
      at = from + (read ?? 0);
      if (read === null) break;
      count += read;
    }
    return count;
  };
  return {
    size,
    // Seek and read stay together: readers of one file wait for each other.
    read(into, offset) {
      const result = turn.then(() => readAt(into, offset)).catch((error) =>
        refuseRead(path, error)
      );
      turn = result.catch(() => {});
      return result;
    },
    close() {
      if (open) file.close();
      open = false;
    },
  };
}

async function* piecesOf(
  readable: ReadableStream<Uint8Array>,
  path: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* readable;
  } catch (error) {
    refuseRead(path === "-" ? "stdin" : path, error);
  }
}

/** The bytes of a stream, in memory that grows with what has come, and with no more than is promised; or as they come. */
async function readStream(
  readable: ReadableStream<Uint8Array>,
  path: string,
  start: StreamStart,
): Promise<ByteSource> {
  const stream: AsyncIterator<Uint8Array> = piecesOf(readable, path);
  let chunks: Uint8Array[] = [];
  let size = 0;
  let most: number | undefined;
  let handedOn = false;
  try {
    for (let next = await stream.next(); !next.done; next = await stream.next()) {
      chunks.push(next.value);
      size += next.value.length;
      if (most === undefined && size >= start.bytes) {
        chunks = [concatenate(chunks, size)];
        const first = chunks[0]!.subarray(0, start.bytes);
        most = start.promised(first);
        if (most > Math.max(HELD_BYTES, size) && start.inSequence(first)) {
          handedOn = true;
          return streamedBytes(stream, chunks[0]!, most, path);
        }
      }
      if (Math.max(size, most ?? 0) > MAX_PIPE_BYTES) {
        throw new InputRangeError(
          `Cannot read ${path}: a pipe may bring ${MAX_PIPE_BYTES} bytes, this one has ` +
            `${Math.max(size, most ?? 0)} or more`,
        );
      }
      if (size > (most ?? Infinity)) break;
    }
  } finally {
    if (!handedOn) await stream.return?.();
  }
  return memoryBytes(concatenate(chunks, size));
}

/**
 * The `size` bytes of a stream whose first ones have come. They are read once, each from where the last one ended or
 * further on; the first ones again until others were read.
 */
function streamedBytes(
  stream: AsyncIterator<Uint8Array>,
  first: Uint8Array,
  size: number,
  path: string,
): ByteSource {
  let current = first;
  let position = 0;
  return {
    size,
    async read(into, offset) {
      if (offset < position) {
        throw new InputTypeError(`Cannot read ${path} twice: it is a pipe of ${size} bytes`);
      }
      let count = 0;
      while (true) {
        const part = current.subarray(Math.max(0, offset + count - position))
          .subarray(0, into.length - count);
        into.set(part, count);
        count += part.length;
        if (count === into.length) break;
        position += current.length;
        const { done, value } = await stream.next();
        current = done ? new Uint8Array(0) : value;
        if (done) return count;
      }
      if (offset + count === size) await refuseMore(position + current.length);
      return count;
    },
    close: () => void stream.return?.(),
  };

  /** The last byte was read: nothing may follow it. */
  async function refuseMore(come: number): Promise<void> {
    const more = come > size || !(await stream.next()).done;
    if (!more) return;
    throw new InputSyntaxError(
      `Cannot read ${path}: byte ${size}: expected the end of the file, found more bytes`,
    );
  }
}

function concatenate(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}
