import { elementsOf } from "../../elements/elements.ts";
import { unitDepth } from "../../kernels/matrix_units.ts";
import { type MatrixStack, tensorTiles, type TiledTensor } from "../../kernels/winograd_tiles.ts";
import { patchTransformKernel } from "../../kernels/winograd_transform.ts";
import { type SizeMode, splitTensor, type TensorSplit } from "../../kernels/module.ts";
import { type FilterSplit, filterTransformKernel } from "../../kernels/slices/filter_transform.ts";
import type { PatchTransform } from "../../kernels/slices/patch.ts";
import { resultTensor } from "../../problem/conv_problem.ts";
import { pass } from "../passes.ts";
import type { DeviceLimits, Pass, PlanBinding } from "../plan.ts";
import type { Context } from "./context.ts";
import { operandMarks } from "./split.ts";
import type { ChunkLayout } from "./workspace.ts";
import { type Scalar, scalarBytes } from "../../elements/scalar.ts";
import type { BufferList } from "../tensors.ts";
import type { PlanRequest } from "../request.ts";
import { filterShape } from "../winograd_fused/geometry.ts";
import type { PlannedTile } from "./tiles.ts";

/** Images of a chunk, or all of the buffer where there is one chunk. */
export function windowOf(
  { request, buffers }: Context,
  buffer: number,
  tensor: TiledTensor,
  first: number,
): Window {
  const activations = buffers.list[buffer]!.role !== "filter";
  const { storage, result } = elementsOf(request);
  const written = buffers.list[buffer]!.role === resultTensor(request.problem.op);
  return activations && tensor.batch < request.problem.batch
    ? imageWindow(buffers, buffer, written ? result : storage, tensor, first, request.limits)
    : wholeWindow(buffers, buffer);
}

/** The pass that transforms an operand; none where it has no elements. */
export function transformPass(
  context: Context,
  which: 0 | 1,
  layout: ChunkLayout,
  first: number,
): Pass[] {
  const { request, mode, tile, geometry, buffers, tensors, operands, marks, drift } = context;
  const operand = geometry.operands[which];
  const tensor = operand.tensor(layout.images);
  const stack = layout.stacks[which];
  const source = tensors.tensor[operand.which];
  const window = windowOf(context, source, tensor, first);
  const tiles = tensorTiles(tensor);
  // Pairs of halves are whole.
  const together = tile.stored === "halves" ? 2 : 1;
  const whole = (count: number, along: MatrixStack["along"]) =>
    stack.along === along ? together * Math.ceil(count / together) : count;
  const shape = {
    name: `${operand.role}_${tile.trait}`,
    tensor,
    matrices: operand.matrices,
    stack,
    threads: {
      tiles: operand.depth === "tile" ? layout.depth : whole(tiles, "tile"),
      channels: operand.depth === "channel" ? layout.depth : whole(tensor.channels, "channel"),
    },
    start: window.start,
    stored: tile.stored,
    split: marks === undefined ? undefined : {
      marks: operandMarks(request, geometry, layout, first).marks[which],
      depth: operand.depth,
      unitDepth: unitDepth(layout.cut.policy.matrix!.unit),
      rounding: (operand.role === "data" ? drift.highs : undefined) ?? "nearest",
    },
  };
  const kernel = patchTransformKernel(shape, mode, {
    patches: window.split,
    matrices: buffers.split(operands[which]),
  }, tensors.elements.storage);
  const places = { patches: window.bindings, matrices: operands[which], marks };
  return kernel.workgroups === 0 ? [] : [pass(kernel, buffers, places, request.limits)];
}

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

/**
 * The pass that transforms the filter for the products, as fused Winograd's does; none where it has no elements.
 *
 * @param padded What places and channels are padded to multiples of.
 * @param split Of halves; `places` then has their marks.
 */
export function filterPass(
  request: PlanRequest,
  mode: SizeMode,
  { trait, stored }: PlannedTile,
  transform: PatchTransform,
  padded: { readonly extent: number; readonly depth: number },
  buffers: BufferList,
  places: { readonly filter: number; readonly transformed: number; readonly marks?: number },
  split?: FilterSplit,
): Pass[] {
  const runs = request.problem.filterSize.map((r) => ({ n: 1, r, first: 0, count: 1 }));
  const shape = {
    ...filterShape(request, runs, padded.extent, padded.depth, "slice"),
    split,
  };
  const kernel = filterTransformKernel(
    trait,
    shape,
    transform,
    mode,
    {
      filter: buffers.split(places.filter),
      transformed: buffers.split(places.transformed),
    },
    elementsOf(request).storage,
    stored,
  );
  return kernel.workgroups === 0 ? [] : [pass(kernel, buffers, places, request.limits)];
}
