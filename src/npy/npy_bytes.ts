import type { Tensor } from "../tensor/tensor.ts";
import { encodeNpyHeader } from "./header.ts";

const PIECE = 4 << 20;

/** The bytes of a tensor's `.npy` file in pieces of some MiB; the data is not copied. */
export function* npyBytes({ dtype, shape, data }: Tensor): Generator<Uint8Array> {
  yield encodeNpyHeader(dtype, shape);
  for (let offset = 0; offset < data.byteLength; offset += PIECE) {
    const length = Math.min(PIECE, data.byteLength - offset);
    yield new Uint8Array(data.buffer, data.byteOffset + offset, length);
  }
}
