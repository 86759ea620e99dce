import { Zip, ZipPassThrough } from "fflate";
import { InputRangeError, InputSyntaxError } from "../errors.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { writeOutput } from "./atomic_write.ts";
import { type ByteSource, MAX_PIPE_BYTES, openBytes } from "./bytes.ts";
import { encodeNpyHeader, MAX_HEADER_BYTES, parseNpyHeader } from "./header.ts";
import { npyFileBytes, npySource, type TensorSource } from "./source.ts";
import { npyBytes } from "./write.ts";
import { isZip, isZipStart, openZipEntry, readZipDirectory, type ZipEntry } from "./zip.ts";

/** Where `file.npz:member` says to look. */
interface NpyPath {
  readonly file: string;
  readonly member?: string;
}

/** Largest archive without zip64, which is not written. */
const MAX_ARCHIVE_BYTES = 0xffffffff;

/**
 * Opens a tensor and reads its header, not its data. `path` is a `.npy` file, `-` for stdin,
 * `file.npz:member`, or an `.npz` file with a single member.
 *
 * @throws {SyntaxError | TypeError | RangeError} for files that are malformed, hold what no tensor can, or
 * have short or trailing data; {RangeError} for a member that is not there; {Deno.errors.NotFound} and kin.
 */
export async function openNpy(path: string): Promise<TensorSource> {
  const { file, member } = splitPath(path);
  const bytes = await openFile(file);
  try {
    if (member === undefined && !await isZip(bytes)) return await npySource(bytes, path);
    const members = await readMembers(bytes, file);
    return await openMember(bytes, findMember(members, member, file), path);
  } catch (error) {
    bytes.close();
    throw error;
  }
}

/**
 * Reads the tensor that {@linkcode openNpy} opens.
 *
 * @example
 * ```ts
 * import { readNpy, tensor, writeNpy } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const path = await Deno.makeTempFile({ suffix: ".npy" });
 * await writeNpy(path, tensor("f32", [2], new Float32Array([1, 2])));
 * assert.deepEqual([...(await readNpy(path)).data], [1, 2]);
 * await Deno.remove(path);
 * ```
 */
export async function readNpy(path: string): Promise<Tensor> {
  using source = await openNpy(path);
  return await source.read();
}

/**
 * Opens every tensor that `path` stands for, one after the other: all members of an `.npz` file, with their names, or the
 * one that {@linkcode openNpy} opens. A source can be read until the next one is asked for.
 *
 * @throws {SyntaxError | TypeError | RangeError} as {@linkcode openNpy}.
 */
export async function* openEach(
  path: string,
): AsyncGenerator<{ readonly name?: string; readonly source: TensorSource }, void, undefined> {
  if (splitPath(path).member !== undefined) {
    using source = await openNpy(path);
    return yield { source };
  }
  const bytes = await openFile(path);
  try {
    if (!await isZip(bytes)) return yield { source: await npySource(bytes, path) };
    for (const [name, entry] of await readMembers(bytes, path)) {
      yield { name, source: await openMember(bytes, entry, `${path}:${name}`) };
    }
  } finally {
    bytes.close();
  }
}

/**
 * Reads all tensors of an `.npz` file.
 *
 * @throws {SyntaxError | TypeError | RangeError} as {@linkcode openNpy}.
 */
export async function readNpz(path: string): Promise<Record<string, Tensor>> {
  const tensors: [string, Tensor][] = [];
  for await (const { name, source } of openEach(path)) {
    if (name === undefined) {
      throw new InputSyntaxError(`Cannot read ${path}: it is no .npz archive`);
    }
    tensors.push([name, await source.read()]);
  }
  return Object.fromEntries(tensors);
}

/**
 * Writes tensors as an `.npz` file, stored, whole or not at all; `-` is stdout.
 *
 * @throws {RangeError} for archives of 4 GiB and more.
 */
export async function writeNpz(path: string, tensors: Record<string, Tensor>): Promise<void> {
  const members = Object.entries(tensors);
  const size = members.reduce((sum, [name, { dtype, shape, data }]) => {
    // Local header, data descriptor, directory entry and end record are less than this.
    return sum + data.byteLength + encodeNpyHeader(dtype, shape).length + 6 * name.length + 256;
  }, 0);
  if (size > MAX_ARCHIVE_BYTES) {
    throw new InputRangeError(
      `Cannot write ${path}: ${size} bytes are more than an .npz of 4 GiB holds`,
    );
  }
  await writeOutput(path, async (write) => {
    const ready: Uint8Array[] = [];
    const zip = new Zip((error, data) => {
      if (error) throw error;
      ready.push(data);
    });
    const flush = async () => {
      for (const data of ready.splice(0)) await write(data);
    };
    for (const [name, value] of members) {
      const file = new ZipPassThrough(`${name}.npy`);
      // As NumPy: the same tensors make the same bytes on every day.
      file.mtime = new Date(1980, 0, 1);
      zip.add(file);
      for (const piece of npyBytes(value)) {
        file.push(piece);
        await flush();
      }
      file.push(new Uint8Array(0), true);
    }
    zip.end();
    await flush();
  });
}

/** Splits at the first `.npz:`, the one place where a colon says more than a name does. */
/** The file of a tensor's path, which may name a member of an archive. */
export function npyFile(path: string): string {
  return splitPath(path).file;
}

function splitPath(path: string): NpyPath {
  const match = /^(.*?\.npz):(.+)$/is.exec(path);
  return match ? { file: match[1]!, member: match[2]! } : { file: path };
}

/** Opens a file of either kind; of a stream no more is read than its beginning promises. */
function openFile(path: string): Promise<ByteSource> {
  return openBytes(path, {
    bytes: MAX_HEADER_BYTES,
    promised: (start) =>
      isZipStart(start) ? MAX_PIPE_BYTES : npyFileBytes(parseNpyHeader(start, path)),
    inSequence: (start) => !isZipStart(start),
  });
}

/** Members of an archive by the names of their tensors: without `.npy`. */
type Members = ReadonlyMap<string, ZipEntry>;

/** @throws {SyntaxError} where two members have one name: readers would not agree on which it is. */
async function readMembers(bytes: ByteSource, path: string): Promise<Members> {
  const members = new Map<string, ZipEntry>();
  for (const entry of await readZipDirectory(bytes, path)) {
    const name = memberName(entry.name);
    if (members.has(name)) {
      throw new InputSyntaxError(`Cannot read ${path}: it has two members ${name}`);
    }
    members.set(name, entry);
  }
  return members;
}

function memberName(name: string): string {
  return name.replace(/\.npy$/, "");
}

function findMember(members: Members, member: string | undefined, file: string): ZipEntry {
  const names = [...members.keys()];
  const list = names.join(", ") || "none";
  if (member === undefined) {
    if (names.length === 1) return members.get(names[0]!)!;
    throw new InputRangeError(
      `Cannot read ${file}: expected one member, found ${names.length}: name one of ` +
        `${list}, as in ${file}:${names[0] ?? "x"}`,
    );
  }
  const found = members.get(member) ?? members.get(memberName(member));
  if (found === undefined) {
    throw new InputRangeError(`Cannot read ${file}: there is no member ${member}, only: ${list}`);
  }
  return found;
}

async function openMember(
  bytes: ByteSource,
  entry: ZipEntry,
  path: string,
): Promise<TensorSource> {
  return await npySource(await openZipEntry(bytes, entry, path), path);
}
