import { InputRangeError, InputSyntaxError, InputTypeError, isInputError } from "../errors.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type ByteSource, MAX_PIPE_BYTES, openBytes, unowned } from "./bytes.ts";
import { type HeaderOptions, isNpy, MAX_HEADER_BYTES, parseNpyHeader } from "./header.ts";
import { memberName, splitPath } from "./npz_path.ts";
import { headerOf, isSafetensors, readSafetensors } from "./safetensors.ts";
import { headedSource, npyFileBytes, npySource, type TensorSource } from "./source.ts";
import { isZip, isZipStart, openZipEntry, readZipDirectory, type ZipEntry } from "./zip.ts";

/**
 * Opens a tensor and reads its header, not its data. `path` is a `.npy` file, `-` for stdin,
 * `file.npz:member`, `file.safetensors:tensor`, or such a file with a single member.
 *
 * @throws {SyntaxError | TypeError | RangeError} for files that are malformed, hold what no tensor can, or
 * have short or trailing data; {RangeError} for a member that is not there; {Deno.errors.NotFound} and kin.
 */
export async function openNpy(path: string, options: HeaderOptions = {}): Promise<TensorSource> {
  const { file, member } = splitPath(path);
  const bytes = await openFile(file, options);
  try {
    if (await holdsSafetensors(bytes, file)) {
      const { members } = await readSafetensors(bytes, file);
      const header = headerOf(findMember(members, member, file), path);
      return headedSource(bytes, path, header);
    }
    if (member === undefined && !await isZip(bytes)) return await npySource(bytes, path, options);
    const { members } = await readMembers(bytes, file);
    return await openMember(bytes, findMember(members, member, file), path, options);
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
export async function readNpy(path: string, options: HeaderOptions = {}): Promise<Tensor> {
  using source = await openNpy(path, options);
  return await source.read();
}

/** What an archive has beside tensors. */
export interface OtherMember {
  /** Its name in the archive. */
  readonly name: string;
  /** The archive's path and its name, as messages have them. */
  readonly path: string;
  /** Of its contents. */
  readonly bytes: number;
  /** Why no tensor holds it. */
  readonly message: string;
  /** The error of a damaged tensor. */
  readonly fault?: Error;
}

/** What {@linkcode openEach} comes to. */
export type EachMember =
  | { readonly name?: string; readonly source: TensorSource }
  | { readonly other: OtherMember };

/**
 * Opens every tensor that `path` stands for, one after the other: all members of an `.npz` file, with their names, or the
 * one that {@linkcode openNpy} opens. A source can be read until the next one is asked for. Of members that are no
 * tensors (texts, pickles) it says what they are, of damaged ones what is wrong.
 *
 * @throws {SyntaxError | TypeError | RangeError} as {@linkcode openNpy}.
 */
export async function* openEach(path: string): AsyncGenerator<EachMember, void, undefined> {
  if (splitPath(path).member !== undefined) {
    using source = await openNpy(path);
    return yield { source };
  }
  const bytes = await openFile(path);
  try {
    if (await holdsSafetensors(bytes, path)) return yield* eachSafetensor(bytes, path);
    if (!await isZip(bytes)) return yield { source: await npySource(bytes, path) };
    for (const [name, entry] of (await readMembers(bytes, path)).members) {
      yield await describeMember(bytes, entry, name, `${path}:${name}`);
    }
  } finally {
    bytes.close();
  }
}

async function* eachSafetensor(bytes: ByteSource, file: string): AsyncGenerator<EachMember, void> {
  for (const [name, entry] of (await readSafetensors(bytes, file)).members) {
    const path = `${file}:${name}`;
    const { header, said } = entry;
    yield header === undefined
      ? { other: { name, path, bytes: entry.bytes, message: `a tensor of ${said.dtype}` } }
      : { name, source: headedSource(unowned(bytes), path, header) };
  }
}

/** Whether bytes are a file of safetensors, by their path or their start. */
async function holdsSafetensors(bytes: ByteSource, path: string): Promise<boolean> {
  const start = new Uint8Array(Math.min(9, bytes.size));
  await bytes.read(start, 0);
  return isSafetensors(path, start);
}

async function describeMember(
  bytes: ByteSource,
  entry: ZipEntry,
  name: string,
  path: string,
): Promise<EachMember> {
  const { size } = entry;
  const other = (message: string, fault?: Error) => ({
    other: { name, path, bytes: size, message, ...(fault === undefined ? {} : { fault }) },
  });
  if (entry.name.endsWith("/")) return other("a folder");
  try {
    const packed = await openZipEntry(unowned(bytes), entry, path);
    if (!await isNpy(packed)) return other("no .npy file");
    return { name, source: await npySource(packed, path) };
  } catch (error) {
    if (!isInputError(error)) throw error;
    // Of another type than what tensors hold, or packed in another way: nothing is wrong with it.
    const fault = error instanceof InputTypeError ? undefined : error;
    return other(error.message.replace(`Cannot read ${path}: `, ""), fault);
  }
}

/**
 * Reads all tensors of an `.npz` file; what else it has is left out.
 *
 * @throws {SyntaxError | TypeError | RangeError} as {@linkcode openNpy}.
 * @example
 * ```ts
 * import { readNpz, tensor, writeNpz } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const path = await Deno.makeTempFile({ suffix: ".npz" });
 * await writeNpz(path, { x: tensor("f32", [2], new Float32Array([1, 2])) });
 * const { x } = await readNpz(path);
 * assert.deepEqual([x!.shape, [...x!.data]], [[2], [1, 2]]);
 * await Deno.remove(path);
 * ```
 */
export async function readNpz(path: string): Promise<Record<string, Tensor>> {
  const tensors: [string, Tensor][] = [];
  for await (const one of openEach(path)) {
    if ("other" in one) {
      if (one.other.fault !== undefined) throw one.other.fault;
      continue;
    }
    const { name, source } = one;
    if (name === undefined) {
      throw new InputSyntaxError(`Cannot read ${path}: it is no .npz archive`);
    }
    tensors.push([name, await source.read()]);
  }
  return Object.fromEntries(tensors);
}

/** Opens a file of either kind; of a stream no more is read than its beginning promises. */
function openFile(path: string, options: HeaderOptions = {}): Promise<ByteSource> {
  return openBytes(path, {
    bytes: MAX_HEADER_BYTES,
    promised: (start) =>
      isZipStart(start) || isSafetensors(path, start)
        ? MAX_PIPE_BYTES
        : npyFileBytes(parseNpyHeader(start, path, options)),
    inSequence: (start) => !isZipStart(start) && !isSafetensors(path, start),
  });
}

/** Members of an archive by the names of their tensors: without `.npy`. */
type Members = ReadonlyMap<string, ZipEntry>;

/** @throws {SyntaxError} where two members have one name: readers would not agree on which it is. */
export async function readMembers(
  bytes: ByteSource,
  path: string,
): Promise<{ readonly members: Members; readonly comment: Uint8Array }> {
  const members = new Map<string, ZipEntry>();
  const { entries, comment } = await readZipDirectory(bytes, path);
  for (const entry of entries) {
    const name = memberName(entry.name);
    if (members.has(name)) {
      throw new InputSyntaxError(`Cannot read ${path}: it has two members ${name}`);
    }
    members.set(name, entry);
  }
  return { members, comment };
}

const MOST_LISTED = 12;

function findMember<Entry>(
  members: ReadonlyMap<string, Entry>,
  member: string | undefined,
  file: string,
): Entry {
  const names = [...members.keys()];
  const list = names.length > MOST_LISTED
    ? `${names.slice(0, 4).join(", ")} and ${
      names.length - 4
    } others (wgconv tensor info lists them)`
    : names.join(", ") || "none";
  if (member === undefined) {
    if (names.length === 1) return members.get(names[0]!)!;
    if (names.some((name) => name.endsWith("/data.pkl"))) {
      throw new InputTypeError(
        `Cannot read ${file}: it is a checkpoint of PyTorch: convert it by ` +
          'safetensors.torch.save_file(torch.load("file.pt"), "file.safetensors") in Python',
      );
    }
    if (!/\.(npz|safetensors)$/i.test(file)) {
      throw new InputRangeError(
        `Cannot read ${file}: it is an archive of ${names.length} members: rename it to end in .npz, ` +
          "and name a member as in file.npz:member",
      );
    }
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
  options: HeaderOptions,
): Promise<TensorSource> {
  return await npySource(await openZipEntry(bytes, entry, path), path, options);
}
