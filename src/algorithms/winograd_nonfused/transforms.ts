import { elementsOf } from "../../elements/elements.ts";
import { unitDepth } from "../../kernels/matrix_units.ts";
import { type MatrixStack, tensorTiles, type TiledTensor } from "../../kernels/winograd_tiles.ts";
import { patchTransformKernel, patchWorkgroups } from "../../kernels/winograd_transform.ts";
import { resultTensor } from "../../problem/conv_problem.ts";
import { pass } from "../passes.ts";
import type { Pass } from "../plan.ts";
import type { Context } from "./context.ts";
import { operandMarks } from "./split.ts";
import { imageWindow, wholeWindow, type Window } from "./window.ts";
import type { ChunkLayout } from "./workspace.ts";

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
  const workgroups = patchWorkgroups(shape);
  if (workgroups === 0) return [];
  const kernel = patchTransformKernel(shape, mode, {
    patches: window.split,
    matrices: buffers.split(operands[which]),
  }, tensors.elements.storage);
  const places = { patches: window.bindings, matrices: operands[which], marks };
  return [pass(kernel, buffers, places, workgroups, request.limits)];
}
