import { toBf16 } from "../tensor/bf16.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { encodeNpyHeader } from "./header.ts";

const PIECE = 4 << 20;

/**
 * The bytes of a tensor's `.npy` file in pieces of some MiB; the data is not copied.
 *
 * @param as Rounds the values to this type, which is of files alone.
 */
export function* npyBytes(
  { dtype, shape, data }: Tensor,
  as?: "bf16",
): Generator<Uint8Array> {
  yield encodeNpyHeader(as ?? dtype, shape);
  if (as !== undefined) {
    for (let start = 0; start < data.length; start += PIECE / 2) {
      yield new Uint8Array(toBf16(data.subarray(start, start + PIECE / 2)).buffer);
    }
    return;
  }
  for (let offset = 0; offset < data.byteLength; offset += PIECE) {
    const length = Math.min(PIECE, data.byteLength - offset);
    yield new Uint8Array(data.buffer, data.byteOffset + offset, length);
  }
}
