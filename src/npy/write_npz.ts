import { Zip, type ZipInputFile, ZipPassThrough } from "../deps/fflate.ts";
import { InputRangeError, InputSyntaxError, InputTypeError } from "../errors.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { lockFolder, writeAtomically, type WriteChunk, writeOutput } from "./atomic_write.ts";
import { type ByteSource, openBytes } from "./bytes.ts";
import { encodeNpyHeader, npyBytes } from "./header.ts";
import { readMembers } from "./npz.ts";
import type { ArchiveMember } from "./npz_path.ts";
import { isZip, packedZipEntry, type ZipEntry } from "./zip.ts";

/** Largest archive without zip64, which is not written, and most members of one. */
const MAX_ARCHIVE_BYTES = 0xffffffff;
const MAX_MEMBERS = 0xffff;

/** Bytes of a file in an archive beside its data: local header, data descriptor, entry of the directory. */
const ENTRY_BYTES = 30 + 16 + 46;
const END_BYTES = 22;
/** Bytes of the directory's entry, its name aside. */
const DIRECTORY_ENTRY_BYTES = 46;

const PIECE = 4 << 20;

/** As NumPy: the same tensors make the same bytes on every day. */
const DAY = new Date(1980, 0, 1);

const encoder = new TextEncoder();

interface Sized {
  readonly name: string;
  readonly compressedSize: number;
  readonly comment?: string;
}

/**
 * Writes tensors as an `.npz` file, stored, whole or not at all; `-` is stdout.
 *
 * @throws {RangeError} for archives of 4 GiB and more.
 * @example
 * ```ts
 * import { readNpz, tensor, writeNpz } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const path = await Deno.makeTempFile({ suffix: ".npz" });
 * const bias = tensor("f16", [4], new Float16Array(4));
 * await writeNpz(path, { bias, scale: tensor("f32", [1], new Float32Array([0.5])) });
 * assert.deepEqual(Object.keys(await readNpz(path)), ["bias", "scale"]);
 * await Deno.remove(path);
 * ```
 */
export async function writeNpz(path: string, tensors: Record<string, Tensor>): Promise<void> {
  const members = Object.entries(tensors).map(([name, value]) => ({
    name: `${name}.npy`,
    compressedSize: encodeNpyHeader(value.dtype, value.shape).length + value.data.byteLength,
    value,
  }));
  refuseLarge(path, members);
  await writeOutput(path, async (write) => {
    const archive = openArchive(write);
    for (const { name, value } of members) {
      await archive.add(name, async (take) => {
        for (const piece of npyBytes(value)) await take(piece);
      });
    }
    await archive.end();
  });
}

/**
 * Writes a `.npy` file into an archive, which is made where it is not there: whole or not at all. Its other members stay
 * as they are; one of the same name is replaced. What other programs of ours add at the same time stays too.
 *
 * @param body Writes the file from front to back.
 * @param replace Whether one of the same name may be, also one that has come meanwhile.
 * @throws {TypeError} where there is one that may not. {SyntaxError} where something else than an archive is there.
 * @throws {RangeError} for archives of 4 GiB and more.
 */
export async function writeMember(
  { file, member }: ArchiveMember,
  body: (write: WriteChunk) => Promise<void>,
  replace = true,
): Promise<void> {
  using held = new DisposableStack();
  await writeAtomically(file, async (write) => {
    const archive = openArchive(write);
    const name = `${member}.npy`;
    // First, since it may take long to come: the lock is held no longer than the others are copied.
    const compressedSize = await archive.add(name, body);
    held.use(await lockFolder(await Deno.realPath(file).catch(() => file)));
    using there = await openThere(file, readArchive);
    refuseMember(there, { file, member }, { replace, what: "member" });
    const kept = others(there, member);
    refuseLarge(file, [...kept, { name, compressedSize }], there?.comment);
    for (const entry of kept) {
      await archive.copy(entry, await packedZipEntry(there!.source, entry, file));
    }
    await archive.end({ firstLast: true, ...(there && { comment: there.comment }) });
  });
}

/**
 * Finds out whether a member can be added to the archive that is there.
 *
 * @param replace Whether a member of the same name may be.
 * @throws {TypeError} where there is one. {SyntaxError} where something else than an archive is there.
 */
export async function proveMember(
  { file, member }: ArchiveMember,
  replace: boolean,
): Promise<void> {
  using there = await openThere(file, readArchive);
  refuseMember(there, { file, member }, { replace, what: "member" });
  for (const entry of others(there, member)) await packedZipEntry(there!.source, entry, file);
}

/** @throws {TypeError} where there is one that may not be replaced. */
export function refuseMember(
  there: { readonly members: ReadonlyMap<string, unknown> } | undefined,
  { file, member }: ArchiveMember,
  { replace, what }: { readonly replace: boolean; readonly what: "member" | "tensor" },
): void {
  if (replace || !there?.members.has(member)) return;
  throw new InputTypeError(
    `Cannot write ${file}:${member}: there is a ${what} ${member}, --force replaces it`,
  );
}

/** @throws {RangeError} where the archive could not hold a member's file of so many bytes. */
export async function proveMemberSize(
  { file, member }: ArchiveMember,
  bytes: number,
): Promise<void> {
  using there = await openThere(file, readArchive);
  const added = { name: `${member}.npy`, compressedSize: bytes };
  refuseLarge(file, [...others(there, member), added], there?.comment);
}

/** An archive to which a member is added. */
interface ThereArchive {
  readonly members: ReadonlyMap<string, ZipEntry>;
  readonly comment: Uint8Array;
}

async function readArchive(source: ByteSource, file: string): Promise<ThereArchive> {
  if (await isZip(source)) return await readMembers(source, file);
  throw new InputSyntaxError(
    `Cannot write ${file}: what is there is no .npz archive, and would be lost`,
  );
}

/** Opens and reads what is there; undefined where that is nothing, an empty file or no file. */
export async function openThere<There>(
  file: string,
  read: (source: ByteSource, file: string) => Promise<There>,
): Promise<There & { readonly source: ByteSource } & Disposable | undefined> {
  const info = await Deno.stat(file).catch(() => undefined);
  if (!info?.isFile || info.size === 0) return undefined;
  const source = await openBytes(file, { bytes: 0, promised: () => 0, inSequence: () => false });
  try {
    return { ...await read(source, file), source, [Symbol.dispose]: () => source.close() };
  } catch (error) {
    source.close();
    throw error;
  }
}

/** @throws {SyntaxError} for names in letters that are not UTF-8, which could not be kept. */
function others(there: ThereArchive | undefined, member: string): ZipEntry[] {
  const kept = [...there?.members ?? []].filter(([name]) => name !== member);
  return kept.map(([name, entry]) => {
    if (name.includes("\ufffd")) {
      throw new InputSyntaxError(`Cannot keep the member ${name}: its name is not UTF-8`);
    }
    return entry;
  });
}

function refuseLarge(path: string, members: readonly Sized[], { length = 0 } = {}): void {
  const size = members.reduce((sum, { name, compressedSize, comment = "" }) => {
    const texts = 2 * encoder.encode(name).length + encoder.encode(comment).length;
    return sum + compressedSize + texts + ENTRY_BYTES;
  }, END_BYTES + length);
  if (size > MAX_ARCHIVE_BYTES) {
    throw new InputRangeError(
      `Cannot write ${path}: ${size} bytes are more than an .npz of 4 GiB holds, write .npy files`,
    );
  }
  if (members.length > MAX_MEMBERS) {
    throw new InputRangeError(
      `Cannot write ${path}: an .npz holds ${MAX_MEMBERS} members, not ${members.length}`,
    );
  }
}

interface ArchiveWriter {
  add(name: string, body: (write: WriteChunk) => Promise<void>): Promise<number>;
  /** Writes a file as it lies in another archive. */
  copy(entry: ZipEntry, packed: ByteSource): Promise<void>;
  /** Writes the directory, in which the file that was written first may stand last, and the archive's comment. */
  end(
    options?: { readonly firstLast?: boolean; readonly comment?: Uint8Array },
  ): Promise<void>;
}

function openArchive(write: WriteChunk): ArchiveWriter {
  const ready: Uint8Array[] = [];
  const names: string[] = [];
  const zip = new Zip((error, data) => {
    if (error) throw error;
    ready.push(data);
  });
  const flush = async () => {
    for (const data of ready.splice(0)) await write(data);
  };
  return {
    async add(name, body) {
      const file = new ZipPassThrough(name);
      file.mtime = DAY;
      zip.add(file);
      names.push(name);
      await body(async (piece) => {
        file.push(piece as Uint8Array<ArrayBuffer>);
        await flush();
      });
      file.push(new Uint8Array(0), true);
      await flush();
      return file.size;
    },
    async copy(entry, packed) {
      const { name, crc, size, method, system, attributes, comment } = entry;
      const file: ZipInputFile = {
        ...{ filename: name, crc, size, compression: method, mtime: dateOf(entry) },
        ...{ os: system, attrs: attributes },
        // One that is not UTF-8 cannot be kept.
        ...(comment === "" || comment.includes("\ufffd") ? {} : { comment }),
      };
      zip.add(file);
      names.push(name);
      const piece = new Uint8Array(Math.min(PIECE, packed.size));
      for (let offset = 0; offset < packed.size; offset += piece.length) {
        const count = await packed.read(piece, offset);
        file.ondata!(null, piece.subarray(0, count), false);
        await flush();
      }
      file.ondata!(null, new Uint8Array(0), true);
      await flush();
    },
    async end({ firstLast = false, comment = new Uint8Array(0) } = {}) {
      zip.end();
      const [directory] = ready.splice(0);
      const end = directory!.length - END_BYTES;
      const first = firstLast ? DIRECTORY_ENTRY_BYTES + encoder.encode(names[0]!).length : 0;
      await write(directory!.subarray(first, end));
      await write(directory!.subarray(0, first));
      new DataView(directory!.buffer, directory!.byteOffset).setUint16(
        end + END_BYTES - 2,
        comment.length,
        true,
      );
      await write(directory!.subarray(end));
      await write(comment);
    },
  };
}

/** When a file of an archive was last modified; where that is no date, the day that NumPy writes. */
function dateOf({ modified }: ZipEntry): Date {
  const [year, month, day] = [modified >>> 25, (modified >>> 21) & 15, (modified >>> 16) & 31];
  const [hour, minute, second] = [(modified >>> 11) & 31, (modified >>> 5) & 63, modified & 31];
  const date = new Date(1980 + year, month - 1, day, hour, minute, 2 * second);
  return year < 120 && date.getFullYear() === 1980 + year && date.getMonth() === month - 1
    ? date
    : DAY;
}
