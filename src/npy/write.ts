import { InputTypeError } from "../errors.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { writeOutput } from "./atomic_write.ts";
import { encodeNpyHeader } from "./header.ts";

const PIECE = 4 << 20;

/**
 * Writes a tensor as `np.save` does, whole or not at all; `-` is stdout.
 *
 * @throws {TypeError} for a path of an archive, which nothing is added to.
 * @throws {Deno.errors.WriteZero} when the disk is full.
 */
export async function writeNpy(path: string, tensor: Tensor): Promise<void> {
  refuseArchive(path);
  await writeOutput(path, async (write) => {
    for (const piece of npyBytes(tensor)) await write(piece);
  });
}

/** @throws {TypeError} for a path of an archive, or of a member of one. */
export function refuseArchive(path: string): void {
  if (/\.npz(:|$)/i.test(path)) {
    throw new InputTypeError(`Cannot write ${path}: expected a .npy path, archives are only read`);
  }
}

/** The bytes of a tensor's `.npy` file in pieces of some MiB; the data is not copied. */
export function* npyBytes({ dtype, shape, data }: Tensor): Generator<Uint8Array> {
  yield encodeNpyHeader(dtype, shape);
  for (let offset = 0; offset < data.byteLength; offset += PIECE) {
    const length = Math.min(PIECE, data.byteLength - offset);
    yield new Uint8Array(data.buffer, data.byteOffset + offset, length);
  }
}
