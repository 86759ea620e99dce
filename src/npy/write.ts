import { InputTypeError } from "../errors.ts";
import { type DType, dtypeBytes, type TensorData } from "../tensor/dtype.ts";
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
  refuseOtherFormats(path);
  await writeOutput(path, async (write) => {
    for (const piece of npyBytes(tensor)) await write(piece);
  });
}

/** Writes a part of a tensor's file: `count` entries of its axis from `first` on, of `data` with `size` entries. */
export type NpyPart = (
  data: TensorData,
  part: { readonly first: number; readonly count: number; readonly size: number },
) => Promise<void>;

/**
 * As {@linkcode writeNpy}, of a tensor that comes in parts along an axis: `body` gives them one after the other. Where
 * the axis is the outermost they follow each other in the file, which may be a pipe then.
 *
 * @throws as {@linkcode writeNpy}.
 */
export async function writeNpyParts(
  path: string,
  { dtype, shape, axis }: {
    readonly dtype: DType;
    readonly shape: readonly number[];
    readonly axis: number;
  },
  body: (write: NpyPart) => Promise<void>,
): Promise<void> {
  refuseOtherFormats(path);
  const header = encodeNpyHeader(dtype, shape);
  const inner = shape.slice(axis + 1).reduce((product, size) => product * size, 1);
  const rows = shape.slice(0, axis).reduce((product, size) => product * size, 1);
  const width = inner * dtypeBytes(dtype);
  await writeOutput(path, async (write) => {
    await write(header);
    await body(async (data, { first, count, size }) => {
      for (let row = 0; row < rows; row++) {
        const own = new Uint8Array(
          data.buffer,
          data.byteOffset + row * size * width,
          count * width,
        );
        const at = header.length + (row * shape[axis]! + first) * width;
        await write(own, rows === 1 ? undefined : at);
      }
    });
  });
}

/** Formats of tensors and pictures that are not written as such. */
const OTHER_FORMATS = /\.(png|jpe?g|gif|webp|bmp|csv|tsv|txt|json|pt|pth|onnx|safetensors)$/i;

/** @throws {TypeError} for a path of an archive, or of a member of one, or of another format. */
export function refuseOtherFormats(path: string): void {
  if (/\.npz(:|$)/i.test(path)) {
    throw new InputTypeError(`Cannot write ${path}: expected a .npy path, archives are only read`);
  }
  const format = OTHER_FORMATS.exec(path)?.[0].toLowerCase();
  if (format === undefined) return;
  const own = path.slice(0, -format.length) + ".npy";
  const next = format === ".png" ? `, then wgconv tensor show ${own} ${path} pictures it` : "";
  throw new InputTypeError(`Cannot write ${path}: tensors are .npy files, write ${own}${next}`);
}

/** The bytes of a tensor's `.npy` file in pieces of some MiB; the data is not copied. */
export function* npyBytes({ dtype, shape, data }: Tensor): Generator<Uint8Array> {
  yield encodeNpyHeader(dtype, shape);
  for (let offset = 0; offset < data.byteLength; offset += PIECE) {
    const length = Math.min(PIECE, data.byteLength - offset);
    yield new Uint8Array(data.buffer, data.byteOffset + offset, length);
  }
}
