import { InputTypeError } from "../errors.ts";
import { dtypeBytes, type FileDType } from "../tensor/dtype.ts";
import { elementCount } from "../tensor/tensor.ts";
import { lockFolder, writeAtomically, type WriteChunk } from "./atomic_write.ts";
import { type ByteSource, openBytes, readExactly } from "./bytes.ts";
import type { ArchiveMember } from "./npz_path.ts";
import {
  encodeSafetensors,
  readSafetensors,
  type Safetensors,
  safetensorsDType,
} from "./safetensors.ts";

const PIECE = 4 << 20;

/** A tensor that is written. */
interface Added {
  readonly dtype: FileDType;
  readonly shape: readonly number[];
}

/**
 * Writes a tensor into a file of safetensors, which is made where it is not there: whole or not at all. Its other tensors
 * and its texts stay; one of the same name is replaced. The widest types come first, as the format's own library has them.
 *
 * @param body Writes the tensor's bytes from front to back.
 * @throws {TypeError} where there is one that may not be replaced. {SyntaxError} where something else is there.
 */
export async function writeSafetensor(
  target: ArchiveMember,
  { dtype, shape }: Added,
  body: (write: WriteChunk) => Promise<void>,
  replace: boolean,
): Promise<void> {
  const { file, member } = target;
  using _ = await lockFolder(await Deno.realPath(file).catch(() => file));
  using there = await openThere(file);
  refuseMember(there, target, replace);
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
export async function proveSafetensor(target: ArchiveMember, replace: boolean): Promise<void> {
  using there = await openThere(target.file);
  refuseMember(there, target, replace);
}

function refuseMember(
  there: Safetensors | undefined,
  { file, member }: ArchiveMember,
  replace: boolean,
): void {
  if (member === "__metadata__") {
    throw new InputTypeError(`Cannot write ${file}:${member}: the format has this name for texts`);
  }
  if (replace || !there?.members.has(member)) return;
  throw new InputTypeError(
    `Cannot write ${file}:${member}: there is a tensor ${member}, --force replaces it`,
  );
}

interface ThereFile extends Safetensors, Disposable {
  readonly source: ByteSource;
}

/** Opens what is there; undefined where that is nothing, an empty file or no file. */
async function openThere(file: string): Promise<ThereFile | undefined> {
  const info = await Deno.stat(file).catch(() => undefined);
  if (!info?.isFile || info.size === 0) return undefined;
  const source = await openBytes(file, { bytes: 0, promised: () => 0, inSequence: () => false });
  try {
    return {
      ...await readSafetensors(source, file),
      source,
      [Symbol.dispose]: () => source.close(),
    };
  } catch (error) {
    source.close();
    throw error;
  }
}
