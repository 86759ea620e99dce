import { crc32 } from "node:zlib";
import { InputSyntaxError, InputTypeError } from "../errors.ts";
import { type ByteSource, readExactly, sliceBytes } from "./bytes.ts";

/** Deflate makes at most this many bytes of one. */
const MAX_INFLATION = 1032;

/** Bytes that are read and inflated at once. */
const PIECE = 32 << 10;

/**
 * The `size` bytes that deflated `packed` holds. Reading forward inflates as far as needed and keeps
 * nothing; reading backward starts again.
 */
export function inflatedBytes(packed: ByteSource, size: number, path: string): ByteSource {
  let position = 0;
  let steps = inflate(packed, size, path);
  let current = new Uint8Array(0);
  return {
    size,
    async read(into, offset) {
      if (offset < position) {
        steps = inflate(packed, size, path);
        current = new Uint8Array(0);
        position = 0;
      }
      let count = 0;
      while (true) {
        const part = current.subarray(offset + count - position).subarray(0, into.length - count);
        into.set(part, count);
        count += part.length;
        if (count === into.length) return count;
        position += current.length;
        const { done, value } = await steps.next();
        current = new Uint8Array(0);
        if (done) return count;
        current = value;
      }
    },
    close: () => packed.close(),
  };
}

async function* inflate(
  packed: ByteSource,
  size: number,
  path: string,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  let failure: unknown;
  let at = 0;
  const source = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(pieces) {
      const piece = new Uint8Array(Math.min(PIECE, packed.size - at));
      let count: number;
      try {
        count = await packed.read(piece, at);
      } catch (error) {
        failure = error;
        throw error;
      }
      at += count;
      if (count > 0) pieces.enqueue(piece.subarray(0, count));
      if (count === 0 || at >= packed.size) pieces.close();
    },
  });
  const refused = (text: string) => new InputSyntaxError(`Cannot read ${path}: ${text}`);
  let made = 0;
  const inflated = source.pipeThrough(new DecompressionStream("deflate-raw"))
    [Symbol.asyncIterator]();
  while (true) {
    const { done, value } = await inflated.next().catch((error) => {
      throw failure ?? refused(
        `byte ${made} of the inflated data: expected deflated data, found ${
          error instanceof Error ? error.message : error
        }`,
      );
    });
    if (done) break;
    made += value.length;
    if (made > size) throw refused(`expected ${size} inflated bytes, found more`);
    yield value;
  }
  if (made < size) throw refused(`expected ${size} inflated bytes, found ${made}`);
}

/** A file inside a zip archive, as the central directory describes it. */
export interface ZipEntry {
  readonly name: string;
  readonly method: number;
  readonly encrypted: boolean;
  readonly crc: number;
  readonly compressedSize: number;
  readonly size: number;
  /** Where its local header stands. */
  readonly offset: number;
  /** The system that made it, and the file's attributes there. */
  readonly system: number;
  readonly attributes: number;
  /** When it was last modified, as MS-DOS counts. */
  readonly modified: number;
  readonly comment: string;
}

/** What a zip archive says of its files, and of itself. */
interface ZipDirectory {
  readonly entries: ZipEntry[];
  readonly comment: Uint8Array;
}

const END_BYTES = 22;
const END = 0x06054b50;
const END64_LOCATOR = 0x07064b50;
const END64 = 0x06064b50;
const ENTRY = 0x02014b50;
const LOCAL = 0x04034b50;
/** Bytes of a directory's entry, names and extras aside. */
const ENTRY_BYTES = 46;
/** A directory larger than this is no archive of tensors. */
const MAX_DIRECTORY_BYTES = 64 << 20;

/** Whether `bytes` begin as a zip archive does. */
export async function isZip(bytes: ByteSource): Promise<boolean> {
  const start = new Uint8Array(4);
  return await bytes.read(start, 0) === 4 && isZipStart(start);
}

/** Whether these are the first bytes of a zip archive. */
export function isZipStart(start: Uint8Array): boolean {
  if (start.length < 4) return false;
  const signature = viewOf(start).getUint32(0, true);
  return signature === LOCAL || signature === END;
}

/**
 * Reads the central directory of a zip archive (also zip64), nothing else.
 *
 * @throws {SyntaxError} for bytes that are no zip archive.
 */
export async function readZipDirectory(bytes: ByteSource, path: string): Promise<ZipDirectory> {
  const fail = (at: number, expected: string): never => {
    throw new InputSyntaxError(`Cannot read ${path}: byte ${at}: expected ${expected}`);
  };
  const { start, size, count, comment } = await findDirectory(bytes, path);
  if (start + size > bytes.size || size > MAX_DIRECTORY_BYTES) {
    fail(start, `a zip directory inside the file, found one of ${size} bytes`);
  }
  if (count * ENTRY_BYTES > size) {
    fail(start, `a zip directory of ${count} entries, found one of ${size} bytes`);
  }
  if (count > 0) {
    // Looked at before the directory takes memory.
    const first = new Uint8Array(4);
    await readExactly(bytes, first, start, path);
    if (viewOf(first).getUint32(0, true) !== ENTRY) fail(start, "a zip directory");
  }
  const directory = new Uint8Array(size);
  const decoder = new TextDecoder();
  await readExactly(bytes, directory, start, path);
  const view = viewOf(directory);
  const entries: ZipEntry[] = [];
  let at = 0;
  while (entries.length < count) {
    if (at + ENTRY_BYTES > size || view.getUint32(at, true) !== ENTRY) {
      fail(start + at, `entry ${entries.length + 1} of ${count} of the zip directory`);
    }
    const nameEnd = at + ENTRY_BYTES + view.getUint16(at + 28, true);
    const extraEnd = nameEnd + view.getUint16(at + 30, true);
    const end = extraEnd + view.getUint16(at + 32, true);
    if (end > size) fail(start + at, "an entry inside the zip directory");
    const wide = wideFields(directory.subarray(nameEnd, extraEnd));
    const field = (offset: number) => {
      const value = view.getUint32(at + offset, true);
      return value === 0xffffffff ? wide() ?? value : value;
    };
    // The wide fields stand in this order.
    const entrySize = field(24);
    const compressedSize = field(20);
    entries.push({
      name: decoder.decode(directory.subarray(at + ENTRY_BYTES, nameEnd)),
      method: view.getUint16(at + 10, true),
      encrypted: (view.getUint16(at + 8, true) & 1) === 1,
      crc: view.getUint32(at + 16, true),
      size: entrySize,
      compressedSize,
      offset: field(42),
      system: directory[at + 5]!,
      attributes: view.getUint32(at + 38, true),
      modified: view.getUint32(at + 12, true),
      comment: decoder.decode(directory.subarray(extraEnd, end)),
    });
    at = end;
  }
  return { entries, comment };
}

/**
 * The bytes of an archive's file, read from the archive as they are asked for. Owns `bytes`.
 *
 * @throws {SyntaxError} where sizes contradict each other; later, while reading, for data that does not inflate or
 * whose checksum is wrong. {TypeError} for encrypted entries and methods other than stored and deflated.
 */
export async function openZipEntry(
  bytes: ByteSource,
  entry: ZipEntry,
  path: string,
): Promise<ByteSource> {
  const packed = await packedZipEntry(bytes, entry, path);
  const possible = entry.method === 0
    ? entry.size === entry.compressedSize
    : entry.size <= MAX_INFLATION * entry.compressedSize;
  if (!possible) {
    throw new InputSyntaxError(
      refusal(
        entry,
        path,
        `sizes that agree, found ${entry.size} bytes from ${entry.compressedSize}`,
      ),
    );
  }
  if (entry.method === 0) return checkedBytes(packed, entry, path);
  if (entry.method === 8) return checkedBytes(inflatedBytes(packed, entry.size, path), entry, path);
  throw new InputTypeError(
    refusal(entry, path, `a stored or deflated entry, found zip method ${entry.method}`),
  );
}

/**
 * The bytes of an archive's file as they lie there, deflated or not. Owns `bytes`.
 *
 * @throws {SyntaxError} where they are not all there. {TypeError} for encrypted entries.
 */
export async function packedZipEntry(
  bytes: ByteSource,
  entry: ZipEntry,
  path: string,
): Promise<ByteSource> {
  if (entry.encrypted) {
    throw new InputTypeError(refusal(entry, path, "an entry that is not encrypted"));
  }
  const local = new Uint8Array(30);
  if (entry.offset + local.length > bytes.size) {
    throw new InputSyntaxError(
      refusal(entry, path, "a zip local header, found the end of the file"),
    );
  }
  await readExactly(bytes, local, entry.offset, path);
  const view = viewOf(local);
  if (view.getUint32(0, true) !== LOCAL) {
    throw new InputSyntaxError(refusal(entry, path, "a zip local header"));
  }
  const start = entry.offset + 30 + view.getUint16(26, true) + view.getUint16(28, true);
  if (start + entry.compressedSize > bytes.size) {
    throw new InputSyntaxError(
      refusal(entry, path, `${entry.compressedSize} bytes of data, found the end of the file`),
    );
  }
  return sliceBytes(bytes, start, entry.compressedSize);
}

function refusal(entry: ZipEntry, path: string, expected: string): string {
  return `Cannot read ${path}: byte ${entry.offset}: expected ${expected}`;
}

/** Where the central directory is: at the end of the file, behind a comment of up to 64 KiB. */
async function findDirectory(bytes: ByteSource, path: string) {
  const tail = new Uint8Array(Math.min(bytes.size, END_BYTES + 0xffff));
  const tailStart = bytes.size - tail.length;
  await readExactly(bytes, tail, tailStart, path);
  const view = viewOf(tail);
  let end = tail.length - END_BYTES;
  while (end >= 0 && view.getUint32(end, true) !== END) end--;
  if (end < 0) {
    throw new InputSyntaxError(
      `Cannot read ${path}: byte ${tailStart}: expected the end record of a zip archive`,
    );
  }
  const comment = tail.slice(end + END_BYTES, end + END_BYTES + view.getUint16(end + 20, true));
  const locator = end - 20;
  if (locator >= 0 && view.getUint32(locator, true) === END64_LOCATOR) {
    const at = Number(view.getBigUint64(locator + 8, true));
    const record = new Uint8Array(56);
    await readExactly(bytes, record, Math.min(at, bytes.size), path);
    const wide = viewOf(record);
    if (wide.getUint32(0, true) !== END64) {
      throw new InputSyntaxError(`Cannot read ${path}: byte ${at}: expected a zip64 end record`);
    }
    const [count, size, start] = [32, 40, 48].map((i) => Number(wide.getBigUint64(i, true)));
    return { count: count!, size: size!, start: start!, comment };
  }
  return {
    count: view.getUint16(end + 10, true),
    size: view.getUint32(end + 12, true),
    start: view.getUint32(end + 16, true),
    comment,
  };
}

/** Takes the 64-bit fields of an entry's zip64 extra one after the other. */
function wideFields(extra: Uint8Array): () => number | undefined {
  const view = viewOf(extra);
  let next = 0;
  let end = 0;
  for (let at = 0; at + 4 <= extra.length;) {
    const length = view.getUint16(at + 2, true);
    if (view.getUint16(at, true) === 1) {
      next = at + 4;
      end = Math.min(extra.length, next + length);
    }
    at += 4 + length;
  }
  return () => {
    if (next + 8 > end) return undefined;
    next += 8;
    return Number(view.getBigUint64(next - 8, true));
  };
}

/** Compares the checksum once everything was read from front to back, however often parts were. */
function checkedBytes(bytes: ByteSource, entry: ZipEntry, path: string): ByteSource {
  let checked = 0;
  let crc = 0;
  return {
    size: bytes.size,
    async read(into, offset) {
      const count = await bytes.read(into, offset);
      if (offset <= checked && offset + count > checked) {
        crc = crc32(into.subarray(checked - offset, count), crc);
        checked = offset + count;
        if (checked === bytes.size && crc !== entry.crc) {
          throw new InputSyntaxError(
            `Cannot read ${path}: byte ${entry.offset}: expected data with the checksum ` +
              `${hex(entry.crc)}, found ${hex(crc)}`,
          );
        }
      }
      return count;
    },
    close: () => bytes.close(),
  };
}

function hex(value: number): string {
  return value.toString(16).padStart(8, "0");
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
