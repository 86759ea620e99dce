/** Reading and writing of `.npy` and `.npz` files. */
export { encodeNpyHeader, type HeaderOptions, type NpyHeader, parseNpyHeader } from "./header.ts";
export { type EachMember, openEach, openNpy, type OtherMember, readNpy, readNpz } from "./npz.ts";
export { parseNpy, type ReadOptions, type TensorPart, type TensorSource } from "./source.ts";
export { type NpyPart, writeNpy, writeNpyParts, type WriteOptions } from "./write.ts";
export { writeNpz } from "./write_npz.ts";
export { writeAtomically, type WriteChunk, writeOutput } from "./atomic_write.ts";
