import { InputTypeError } from "../errors.ts";
import { type DType, dtypeBytes, type TensorData } from "../tensor/dtype.ts";
import { storedBytes } from "../tensor/convert.ts";
import { elementCount, type Tensor } from "../tensor/tensor.ts";
import {
  lockFolder,
  proveWritable,
  writeAtomically,
  type WriteChunk,
  writeOutput,
} from "./atomic_write.ts";
import { type ByteSource, readExactly } from "./bytes.ts";
import { encodeNpyHeader, npyBytes } from "./header.ts";
import { type ArchiveMember, isSafetensorsPath, memberToWrite, npyFile } from "./npz_path.ts";
import {
  encodeSafetensors,
  readSafetensors,
  type Safetensors,
  safetensorsDType,
} from "./safetensors.ts";
import { openThere, proveMember, proveMemberSize, refuseMember, writeMember } from "./write_npz.ts";

const PIECE = 4 << 20;

/** A tensor that is written. */
interface Added {
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/**
 * Writes a tensor into a file of safetensors, which is made where it is not there: whole or not at all. Its other tensors
 * and its texts stay; one of the same name is replaced. The widest types come first, as the format's own library has them.
 *
 * @param body Writes the tensor's bytes from front to back.
 * @throws {TypeError} where there is one that may not be replaced. {SyntaxError} where something else is there.
 */
async function writeSafetensor(
  target: ArchiveMember,
  { dtype, shape }: Added,
  body: (write: WriteChunk) => Promise<void>,
  replace: boolean,
): Promise<void> {
  const { file, member } = target;
  using _ = await lockFolder(await Deno.realPath(file).catch(() => file));
  using there = await openThere(file, readSafetensors);
  refuseTensor(there, target, replace);
  const added = {
    dtype: safetensorsDType(dtype),
    shape,
    bytes: shape.includes(0) ? 0 : elementCount(shape) * dtypeBytes(dtype),
    width: dtypeBytes(dtype),
    begin: undefined,
  };
  const kept = [...there?.members ?? []].filter(([name]) => name !== member)
    .map(([name, { said, begin, bytes, header }]) =>
      [name, { ...said, begin, bytes, width: header ? dtypeBytes(header.dtype) : 1 }] as const
    );
  const members = [...kept, [member, added] as const]
    .sort(([one, { width: a }], [other, { width: b }]) => b - a || (one < other ? -1 : 1));
  await writeAtomically(file, async (write) => {
    await write(encodeSafetensors(members, there?.metadata, file));
    for (const [, { begin, bytes }] of members) {
      if (begin === undefined) await body(write);
      else await copyBytes(there!.source, begin, bytes, write, file);
    }
  });
}

async function copyBytes(
  source: ByteSource,
  begin: number,
  bytes: number,
  write: WriteChunk,
  path: string,
): Promise<void> {
  const piece = new Uint8Array(Math.min(PIECE, bytes));
  for (let done = 0; done < bytes; done += piece.length) {
    const part = piece.subarray(0, Math.min(piece.length, bytes - done));
    await readExactly(source, part, begin + done, path);
    await write(part);
  }
}

/**
 * Finds out whether a tensor can be added to what is there.
 *
 * @throws as {@linkcode writeSafetensor}.
 */
async function proveSafetensor(target: ArchiveMember, replace: boolean): Promise<void> {
  using there = await openThere(target.file, readSafetensors);
  refuseTensor(there, target, replace);
}

function refuseTensor(
  there: Safetensors | undefined,
  target: ArchiveMember,
  replace: boolean,
): void {
  const { file, member } = target;
  if (member === "__metadata__") {
    throw new InputTypeError(`Cannot write ${file}:${member}: the format has this name for texts`);
  }
  refuseMember(there, target, { replace, what: "tensor" });
}

/**
 * Writes a tensor as `np.save` does, whole or not at all; `-` is stdout. `file.npz:member` makes an archive as `np.savez`
 * does, or becomes a member of the one that is there, whose others stay; so does `file.safetensors:tensor`.
 *
 * @throws {TypeError} for a path of another format, for an archive without a member, and for a member that is there where
 *   `replace` is false.
 * @throws {RangeError} for archives of 4 GiB and more.
 * @throws {Deno.errors.WriteZero} when the disk is full.
 * @example
 * ```ts
 * import { readNpy, tensor, writeNpy } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const folder = await Deno.makeTempDir();
 * const matrix = tensor("f32", [2, 2], new Float32Array([1, 2, 3, 4]));
 * await writeNpy(`${folder}/x.npz:first`, matrix);
 * await writeNpy(`${folder}/x.npz:second`, matrix);
 * assert.deepEqual((await readNpy(`${folder}/x.npz:second`)).shape, [2, 2]);
 * await Deno.remove(folder, { recursive: true });
 * ```
 */
export function writeNpy(path: string, tensor: Tensor, options: WriteOptions = {}): Promise<void> {
  return writeTensor(path, tensor, async (write) => {
    for (const piece of npyBytes(tensor)) await write(piece);
  }, options);
}

/** When a file takes its place, and whose. */
export interface WriteOptions {
  /** What has to go well before the file is there. */
  readonly until?: Promise<unknown> | undefined;
  /** Whether a member of an archive may be replaced; a file of its own always is. On where absent. */
  readonly replace?: boolean | undefined;
}

/** Writes a part of a tensor's file: `count` entries of its axis from `first` on, of `data` with `size` entries. */
export type NpyPart = (
  data: TensorData,
  part: { readonly first: number; readonly count: number; readonly size: number },
) => Promise<void>;

/**
 * As {@linkcode writeNpy}, of a tensor that comes in parts along an axis: `body` gives them one after the other. Where
 * the axis is the outermost they follow each other in the file, which may be a pipe or a member of an archive then.
 *
 * @throws as {@linkcode writeNpy}; {TypeError} for a member of an archive whose parts do not follow each other.
 */
export async function writeNpyParts(
  path: string,
  { dtype, shape, axis }: {
    readonly dtype: DType;
    readonly shape: readonly number[];
    readonly axis: number;
  },
  body: (write: NpyPart) => Promise<void>,
  options: Pick<WriteOptions, "replace"> = {},
): Promise<void> {
  const header = encodeNpyHeader(dtype, shape);
  const inner = shape.slice(axis + 1).reduce((product, size) => product * size, 1);
  const rows = shape.slice(0, axis).reduce((product, size) => product * size, 1);
  const width = inner * dtypeBytes(dtype);
  if (rows > 1 && !canSeek(path)) {
    throw new InputTypeError(`Cannot write ${path} in parts that do not follow each other`);
  }
  await writeTensor(path, { dtype, shape }, async (write) => {
    await write(header);
    await body(async (data, { first, count, size }) => {
      for (let row = 0; row < rows; row++) {
        const begin = row * size * inner;
        const own = storedBytes(dtype, data.subarray(begin, begin + count * inner));
        const at = header.length + (row * shape[axis]! + first) * width;
        await write(own, rows === 1 ? undefined : at);
      }
    });
  }, options);
}

/** Formats of tensors and pictures that are not written as such. */
const OTHER_FORMATS = /\.(png|jpe?g|gif|webp|bmp|csv|tsv|txt|json|pt|pth|onnx)$/i;

/** Whether parts of a tensor may be written in any order: neither to stdout nor into an archive. */
export function canSeek(path: string): boolean {
  return path !== "-" && memberToWrite(path) === undefined;
}

/** @param body Writes a `.npy` file's bytes. */
async function writeTensor(
  path: string,
  described: { readonly dtype: DType; readonly shape: readonly number[] },
  body: (write: WriteChunk) => Promise<void>,
  { until, replace = true }: WriteOptions,
): Promise<void> {
  refuseOtherFormats(path);
  const member = memberToWrite(path);
  if (member === undefined) return await writeOutput(path, body, until);
  const whole = async (write: WriteChunk) => {
    await body(write);
    await until;
  };
  if (!isSafetensorsPath(member.file)) return await writeMember(member, whole, replace);
  const header = encodeNpyHeader(described.dtype, described.shape).length;
  const dataAlone = (write: WriteChunk) => whole(withoutStart(write, header));
  await writeSafetensor(member, described, dataAlone, replace);
}

/** Leaves out the first bytes of what is written. */
function withoutStart(write: WriteChunk, count: number): WriteChunk {
  let left = count;
  return async (chunk) => {
    const skipped = Math.min(left, chunk.length);
    left -= skipped;
    if (skipped < chunk.length) await write(chunk.subarray(skipped));
  };
}

/** @throws {TypeError} for a path of another format. */
function refuseOtherFormats(path: string): void {
  const format = OTHER_FORMATS.exec(path)?.[0].toLowerCase();
  if (format === undefined || memberToWrite(path) !== undefined) return;
  const own = path.slice(0, -format.length) + ".npy";
  const next = format === ".png" ? `, then wgconv tensor show ${own} ${path} pictures it` : "";
  throw new InputTypeError(`Cannot write ${path}: tensors are .npy files, write ${own}${next}`);
}

/**
 * Finds out before any work whether a tensor can be written to a path, and changes nothing.
 *
 * @param replace Whether a member of an archive may be replaced; a file of its own always is.
 * @throws as {@linkcode writeNpy}; {TypeError} for a member that is there.
 */
export async function proveNpy(path: string, replace: boolean): Promise<void> {
  refuseOtherFormats(path);
  const member = memberToWrite(path);
  const prove = isSafetensorsPath(npyFile(path)) ? proveSafetensor : proveMember;
  if (member !== undefined) await prove(member, replace);
  await proveWritable(npyFile(path));
}

/**
 * Finds out before any work whether an archive can hold a tensor too.
 *
 * @throws {RangeError} for archives of 4 GiB and more.
 */
export async function proveRoom(
  path: string,
  { dtype, shape }: { readonly dtype: DType; readonly shape: readonly number[] },
): Promise<void> {
  const member = memberToWrite(path);
  if (member === undefined || isSafetensorsPath(member.file)) return;
  const data = shape.includes(0) ? 0 : elementCount(shape) * dtypeBytes(dtype);
  await proveMemberSize(member, encodeNpyHeader(dtype, shape).length + data);
}
