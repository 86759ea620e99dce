import type { Tensor } from "../tensor/tensor.ts";
import { memoryBytes } from "./bytes.ts";
import { npySource } from "./source.ts";

/**
 * Reads the tensor of a `.npy` file that is in memory, as a page has it of a file that a user chose.
 *
 * @param name What messages call the file.
 * @throws {SyntaxError | TypeError | RangeError} where it is no `.npy` file, or holds what no tensor does.
 * @example
 * ```ts
 * import { parseNpy } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }".padEnd(117) + "\n";
 * const start = [0x93, ...new TextEncoder().encode("NUMPY"), 1, 0, 118, 0];
 * const bytes = Uint8Array.from([...start, ...new TextEncoder().encode(header), 0, 0, 0x80, 0x3f]);
 * const { shape, data } = await parseNpy(bytes);
 * assert.deepEqual([shape, [...data]], [[1], [1]]);
 * ```
 */
export async function parseNpy(bytes: Uint8Array, name = "the file"): Promise<Tensor> {
  using source = await npySource(memoryBytes(bytes), name);
  return await source.read();
}
