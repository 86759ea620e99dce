import { splitTensor, type TensorSplit } from "../../kernels/module.ts";
import { type Scalar, scalarBytes } from "../../elements/scalar.ts";
import type { TiledTensor } from "../../kernels/winograd_tiles.ts";
import type { DeviceLimits, PlanBinding } from "../plan.ts";
import type { BufferList } from "../tensors.ts";

/** Part of a tensor's buffer, as a pass binds it. */
export interface Window {
  readonly bindings: readonly PlanBinding[];
  readonly split: TensorSplit;
  /** Elements before the part's first one: bindings begin at multiples of 256 bytes. */
  readonly start: number;
}

const ALIGNMENT = 256;

/** All of a buffer. */
export function wholeWindow(buffers: BufferList, buffer: number): Window {
  return { bindings: buffers.bindings(buffer), split: buffers.split(buffer), start: 0 };
}

/**
 * The images from `first` on that `tensor` says there are. Where images are innermost (chwn) that is all that
 * follows.
 */
export function imageWindow(
  buffers: BufferList,
  buffer: number,
  element: Scalar,
  tensor: TiledTensor,
  first: number,
  limits: DeviceLimits,
): Window {
  const { bytes } = buffers.list[buffer]!;
  const each = scalarBytes(element);
  const from = each * first * tensor.batchStride;
  const offset = Math.floor(from / ALIGNMENT) * ALIGNMENT;
  const end = tensor.batchInner ? bytes : each * (first + tensor.batch) * tensor.batchStride;
  // Whole words, and never too small for one vector, as buffers are not.
  const size = Math.min(bytes, Math.max(Math.ceil(end / 4) * 4, offset + 16)) - offset;
  const split = splitTensor(size, limits.maxStorageBufferBindingSize);
  const bindings = Array.from({ length: split.parts }, (_, part) => ({
    buffer,
    offset: offset + part * split.partBytes,
    size: split.parts === 1 ? size : Math.min(split.partBytes, size - part * split.partBytes),
  }));
  return { bindings, split, start: (from - offset) / each };
}
