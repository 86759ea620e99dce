import { scalarBytes } from "../../elements/scalar.ts";
import { addTensorStep, epilogueTrait } from "../../kernels/epilogue.ts";
import { loadedTensor, policyVector } from "../../kernels/loader.ts";
import { matrixLoader, packedLoader } from "../../kernels/loaders/matrix.ts";
import { mainLoopKernel } from "../../kernels/main_loop.ts";
import { unitDepth } from "../../kernels/matrix_units.ts";
import { moduleBuilder, splitTensor, type TensorSplit } from "../../kernels/module.ts";
import { mappedOutput } from "../../kernels/output.ts";
import { filterTransformKernel } from "../../kernels/slices/filter_transform.ts";
import { HALVES } from "../../kernels/split_halves.ts";
import { type MatrixStack, tensorTiles, type TiledTensor } from "../../kernels/winograd_tiles.ts";
import { patchTransformKernel } from "../../kernels/winograd_transform.ts";
import { type ConvTensor, directFlops } from "../../problem/conv_problem.ts";
import { ceilTo } from "../geometry.ts";
import { pass } from "../passes.ts";
import type { Pass, PlanBinding } from "../plan.ts";
import { tensorScalar } from "../tensors.ts";
import { filterShape } from "../winograd_fused/geometry.ts";
import type { ChunkLayout, Context } from "./geometry.ts";
import { operandMarks, splitUnit } from "./split.ts";
import { loadedAlong, valuesDeep } from "./workspace.ts";

/** Part of a tensor's buffer, as a pass binds it. */
interface Window {
  readonly bindings: readonly PlanBinding[];
  readonly split: TensorSplit;
  /** Elements before the part's first one: bindings begin at multiples of 256 bytes. */
  readonly start: number;
}

const ALIGNMENT = 256;

/**
 * All of a tensor's buffer where there is one chunk; else the images from `first` on that `tensor` says there are. Where images are
 * innermost (chwn) that is all that follows.
 */
export function windowOf(
  { geometry: { request }, tensors: { buffers, tensor: places } }: Context,
  which: ConvTensor,
  tensor: TiledTensor,
  first: number,
): Window {
  const buffer = places[which];
  if (which === "filter" || tensor.batch >= request.problem.batch) {
    return { bindings: buffers.bindings(buffer), split: buffers.split(buffer), start: 0 };
  }
  const { bytes } = buffers.list[buffer]!;
  const each = scalarBytes(tensorScalar(request, which));
  const from = each * first * tensor.batchStride;
  const offset = Math.floor(from / ALIGNMENT) * ALIGNMENT;
  const end = tensor.batchInner ? bytes : each * (first + tensor.batch) * tensor.batchStride;
  // Whole words, and never too small for one vector, as buffers are not.
  const size = Math.min(bytes, Math.max(Math.ceil(end / 4) * 4, offset + 16)) - offset;
  const split = splitTensor(size, request.limits.maxStorageBufferBindingSize);
  const bindings = Array.from({ length: split.parts }, (_, part) => ({
    buffer,
    offset: offset + part * split.partBytes,
    size: split.parts === 1 ? size : Math.min(split.partBytes, size - part * split.partBytes),
  }));
  return { bindings, split, start: (from - offset) / each };
}

/** The pass that transforms images or a gradient of a chunk; none where it has no elements. */
export function transformPass(
  context: Context,
  which: 0 | 1,
  layout: ChunkLayout,
  first: number,
): Pass[] {
  const { geometry, tensors: { buffers, elements }, operands, marks, drift } = context;
  const { tile, operands: { [which]: operand } } = geometry;
  const tensor = operand.tensor(layout.images);
  const stack = layout.stacks[which];
  const window = windowOf(context, operand.which, tensor, first);
  // Pairs of halves are whole.
  const together = tile.stored === "halves" ? 2 : 1;
  const whole = (count: number, along: MatrixStack["along"]) =>
    operand.depth === along
      ? layout.depth
      : stack.along === along
      ? ceilTo(count, together)
      : count;
  const shape = {
    name: `${operand.role}_${tile.trait}`,
    tensor,
    matrices: operand.matrices,
    stack,
    threads: {
      tiles: whole(tensorTiles(tensor), "tile"),
      channels: whole(tensor.channels, "channel"),
    },
    start: window.start,
    stored: tile.stored,
    split: marks === undefined ? undefined : {
      marks: operandMarks(geometry, layout.depth, first).marks[which],
      depth: operand.depth,
      unitDepth: unitDepth(layout.cut.policy.matrix!.unit),
      rounding: (operand.role === "data" ? drift.highs : undefined) ?? "nearest",
    },
  };
  const splits = { patches: window.split, matrices: buffers.split(operands[which]) };
  const kernel = patchTransformKernel(shape, buffers.mode, splits, elements.storage);
  const places = { patches: window.bindings, matrices: operands[which], marks };
  return kernel.workgroups === 0 ? [] : [pass(kernel, buffers, places)];
}

/** The pass that transforms the filter for the products, as fused Winograd's does; none where it has no elements. */
export function filterPass(context: Context, which: 0 | 1, layout: ChunkLayout): Pass[] {
  const { geometry, tensors: { buffers, tensor, elements }, operands, marks } = context;
  const { request, tile, operands: { [which]: operand } } = geometry;
  const { policy } = layout.cut;
  const [rows, columns] = operand.matrices;
  const runs = request.problem.filterSize.map((r) => ({ n: 1, r, first: 0, count: 1 }));
  const extent = which === 0 ? policy.rows : policy.columns;
  const shape = {
    ...filterShape(request, runs, extent, valuesDeep(policy), "slice"),
    split: marks === undefined ? undefined : {
      marks: operandMarks(geometry, layout.depth).marks[which],
      unitDepth: unitDepth(policy.matrix!.unit),
    },
  };
  const bound = { filter: tensor.filter, transformed: operands[which] };
  const kernel = filterTransformKernel(
    tile.trait,
    shape,
    { rows, columns },
    buffers.mode,
    buffers.splits(bound),
    elements.storage,
    tile.stored,
  );
  return kernel.workgroups === 0 ? [] : [pass(kernel, buffers, { ...bound, marks })];
}

/** The pass of the main loop over a chunk's products. `previous`: products of earlier chunks, to be added. */
export function productPass(
  { geometry, tensors: { buffers }, operands: [first, second] }: Context,
  layout: ChunkLayout,
  target: number,
  previous: number | undefined,
): Pass {
  const { request, tile } = geometry;
  const { problem, limits } = request;
  const { cut: { policy, splits }, rows, columns, batches, resultColumns, resultElements } = layout;
  const module = moduleBuilder(buffers.mode);
  const halves = tile.stored === "halves";
  const depth = halves ? 2 * layout.depth : layout.depth;
  const loader = (which: 0 | 1) => {
    const name = which === 0 ? "a" as const : "b" as const;
    const vector = policyVector(policy, 4, []);
    const split = buffers.split(which === 0 ? first : second);
    const access = halves
      ? loadedTensor(module, name, vector, split, HALVES)
      : module.tensor(name, "read", 4, split, tile.stored);
    const { tiles, channels } = layout.stacks[which];
    const operand = geometry.operands[which];
    const places = operand.depth === "tile" ? channels : tiles;
    const shape = { places, depth, tileDepth: policy.depth, vector };
    if (loadedAlong(operand) === "place") return packedLoader(module, name, access, shape);
    const lies = { ...shape, along: "depth", batchStride: places * depth } as const;
    return matrixLoader(module, name, access, lies);
  };
  const [a, b] = [loader(0), loader(1)];
  const shape = { rows, columns, depth, batches, splits };
  const out = module.tensor("result", "write", 4, buffers.split(target));
  const steps = previous === undefined ? [] : [
    addTensorStep("previous", module.tensor("previous", "read", 4, buffers.split(previous)), 1),
  ];
  const width = module.size("out_columns", resultColumns);
  const output = mappedOutput(out, {
    rows: module.size("out_rows", rows),
    columns: width,
    rowStride: width,
    period: width,
    outerStride: module.size("zero", 0),
    innerStride: module.size("one", 1),
    base: `group * ${module.size("out_group", rows * resultColumns)}${
      splits > 1 ? ` + split * ${module.size("out_split", resultElements)}` : ""
    }`,
    vector: "columns",
  }, steps);
  const kernel = mainLoopKernel(
    `winograd2d_nonfused_${problem.op.replace("-", "_")}_f32_${
      halves ? "f16x3_" : ""
    }${tile.trait}`,
    `${request.layout}_${a.along}_${b.along}${splits > 1 ? "_split" : ""}${epilogueTrait(steps)}${
      buffers.splitTrait(first, second, target)
    }`,
    module,
    shape,
    policy,
    a,
    b,
    output,
    halves ? { chain: splitUnit(request)?.chain, room: limits.maxComputeWorkgroupStorageSize } : {},
  );
  const places = { a: first, b: second, previous, result: target };
  const share = directFlops(problem) / 2 / Math.max(1, problem.batch);
  return pass(kernel, buffers, places, share * layout.images);
}
