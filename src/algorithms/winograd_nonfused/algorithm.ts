import { sumOf } from "../../elements/elements.ts";
import { scalarBytes } from "../../elements/scalar.ts";
import { addTensorStep, epilogueTrait, NO_STEPS } from "../../kernels/epilogue.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { loadedTensor, policyVector } from "../../kernels/loader.ts";
import { matrixLoader, packedLoader } from "../../kernels/loaders/matrix.ts";
import { productKernel, productWorkgroups } from "../../kernels/product_kernel.ts";
import { unitDepth } from "../../kernels/matrix_units.ts";
import {
  moduleBuilder,
  type SizeMode,
  splitTensor,
  type TensorSplit,
} from "../../kernels/module.ts";
import { mappedOutput } from "../../kernels/output.ts";
import { filterTransformKernel } from "../../kernels/slices/filter_transform.ts";
import { HALVES } from "../../kernels/split_halves.ts";
import { outputTransformKernel } from "../../kernels/winograd_output.ts";
import { type MatrixStack, tensorTiles, type TiledTensor } from "../../kernels/winograd_tiles.ts";
import { patchTransformKernel } from "../../kernels/winograd_transform.ts";
import { type ConvTensor, directFlops, FLOAT_DTYPES } from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { amplification2d } from "../../winograd/amplification.ts";
import type { Algorithm } from "../algorithm.ts";
import { cutSchedule } from "../cut.ts";
import { cutNotes } from "../cut_notes.ts";
import { ceilTo } from "../geometry.ts";
import { type MathGeometry, planInMath } from "../halves.ts";
import { clearMarksPass, convEpilogue, pass, reducePass } from "../passes.ts";
import type { Pass, Plan, PlanBinding } from "../plan.ts";
import type { Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { flatRow, problemBuffers, resultElements, tensorScalar } from "../tensors.ts";
import { filterShape } from "../winograd_fused/geometry.ts";
import {
  type ChunkLayout,
  type Context,
  nonfusedReason,
  plannedTile,
  type WinogradGeometry,
} from "./geometry.ts";
import {
  type ChunkedGeometry,
  chunkedGeometry,
  nonfusedCandidates,
  nonfusedGeometry,
  nonfusedTime,
} from "./price.ts";
import {
  layOutChunk,
  loadedAlong,
  markPasses,
  operandMarks,
  outputSplit,
  SPLIT_NOTE,
  splitArithmetic,
  splitUnit,
  valuesDeep,
  workspaceOf,
} from "./workspace.ts";

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
function windowOf(
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
function transformPass(context: Context, which: 0 | 1, layout: ChunkLayout, first: number): Pass[] {
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
  const module = moduleBuilder(buffers.mode, splits);
  const kernel = patchTransformKernel(module, shape, elements.storage);
  const places = { patches: window.bindings, matrices: operands[which], marks };
  return kernel.workgroups === 0 ? [] : [pass(kernel, buffers, places)];
}

/** The pass that transforms the filter for the products, as fused Winograd's does; none where it has no elements. */
function filterPass(context: Context, which: 0 | 1, layout: ChunkLayout): Pass[] {
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
    buffers.module(bound),
    tile.trait,
    shape,
    { rows, columns },
    elements.storage,
    tile.stored,
  );
  return kernel.workgroups === 0 ? [] : [pass(kernel, buffers, { ...bound, marks })];
}

/** The pass of the mainloop over a chunk's products. `previous`: products of earlier chunks, to be added. */
function productPass(
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
  const kernel = productKernel(module, {
    traits: `winograd2d_nonfused_${problem.op.replace("-", "_")}_f32_${
      halves ? "f16x3_" : ""
    }${tile.trait}`,
    suffix: `${request.layout}_${a.access.along}_${b.access.along}${splits > 1 ? "_split" : ""}${
      epilogueTrait(steps)
    }${buffers.splitTrait(first, second, target)}`,
    shape,
    policy,
    loaders: [a, b],
    output,
    workgroupBytes: limits.maxComputeWorkgroupStorageSize,
    sums: { chain: halves ? splitUnit(request)?.chain : undefined },
  });
  const places = { a: first, b: second, previous, result: target };
  const share = directFlops(problem) / 2 / Math.max(1, problem.batch);
  return pass(kernel, buffers, places, share * layout.images);
}

function notesOf(
  { request, tile, operands }: WinogradGeometry,
  chunk: ChunkLayout,
  chunks: number,
): string[] {
  const { problem } = request;
  const tiled = operands.find(({ role }) => role !== "filter")!.tensor(problem.batch);
  const [outer, inner] = tiled.axes;
  const spots = problem.op === "bwd-data" ? problem.inputSize : problem.outputSize;
  const covered = outer.tiles * outer.step * inner.tiles * inner.step;
  const tiles = problem.batch * outer.tiles * inner.tiles;
  const waste = covered === 0 ? 0 : Math.round(100 * (1 - elementCount(spots) / covered));
  const direct = elementCount(tile.transforms.map(({ n, r }) => n * r));
  return [
    `tile ${tile.text}: ${tiles} tiles of ${outer.step} x ${inner.step}, ${waste} % of them beyond the edge; ` +
    `${tile.products} products in place of ${direct}`,
    `${chunk.batches} products of ${chunk.rows} x ${chunk.columns} x ${chunk.depth} in ` +
    (chunks === 1 ? "one chunk of the batch" : `${chunks} chunks of ${chunk.images} images`),
    ...(tile.stored === "halves" ? [SPLIT_NOTE] : []),
    ...cutNotes(chunk.cut, productWorkgroups({ ...chunk, splits: 1 }, chunk.cut.policy), request),
  ];
}

/** A request in its math; alone where its result is empty. */
type NonfusedGeometry = MathGeometry<ChunkedGeometry> | { readonly asked: PlanRequest };

/**
 * Plans Winograd in separate passes: transforms of the operands, α0·α1 products a group, transform of the products. Works
 * in chunks of the batch that share their workspace.
 */
function planWinogradNonfused(made: NonfusedGeometry, mode: SizeMode): Planned<Plan> {
  if ("geometry" in made) {
    return planInMath(made, chunkedGeometry, (geometry) => planWinograd(geometry, mode));
  }
  const { asked } = made;
  return problemBuffers(asked).buffers.plan({
    kernel: "winograd2d_nonfused",
    algorithm: "winograd2d-nonfused",
    passes: [],
    multiplications: 0,
    amplification: amplification2d(...plannedTile(asked).transforms),
    arithmetic: {},
    notes: ["an empty result"],
  });
}

/** Plans what says how its products are multiplied. */
function planWinograd({ geometry, chunk }: ChunkedGeometry, mode: SizeMode): Planned<Plan> {
  const { request, tile } = geometry;
  const { problem } = request;
  const { splits, policy } = chunk.cut;
  const perSplit = Math.ceil(chunk.depth / splits);
  const count = chunk.images === 0 ? 1 : Math.ceil(problem.batch / chunk.images);

  const tensors = problemBuffers(request, mode);
  const { buffers, ends, elements } = tensors;
  const sum = sumOf(elements);
  const needs = workspaceOf(geometry, chunk);
  const [a, b] = geometry.operands.map(({ role }, which) =>
    buffers.workspace(`transformed ${role}`, chunk.operandElements[which]!, tile.stored)
  ) as [number, number];
  const products = needs.products === 0
    ? undefined
    : buffers.workspace("products", needs.products, sum);
  const targets = needs.partials === 0
    ? [products!]
    : Array.from({ length: needs.targets }, () =>
      buffers.workspace("partial products", needs.partials, sum));
  const marks = tile.stored === "halves" ? operandMarks(geometry, chunk.depth) : undefined;
  const sums = marks && splitArithmetic(geometry, chunk, marks);
  const context: Context = {
    geometry,
    tensors,
    operands: [a, b],
    marks: marks && buffers.workspace("marks", marks.words, "u32"),
    drift: sums ?? {},
  };

  const passes: Pass[] = marks
    ? [clearMarksPass(buffers, { marks: context.marks! }, marks.words)]
    : [];
  // An operand's largest values are found just before it is transformed, so that the cache still has it.
  const largest = (which: 0 | 1) => markPasses(context, which, chunk.depth);
  const sides = [0, 1] as const;
  const filter = sides.find((which) => geometry.operands[which].role === "filter");
  if (filter !== undefined) passes.push(...largest(filter), ...filterPass(context, filter, chunk));
  let multiplications = 0;
  let kernel = "";
  let last: number | undefined;
  for (let index = 0; index < count; index++) {
    const first = index * chunk.images;
    const images = Math.min(chunk.images, problem.batch - first);
    const layout = images === chunk.images ? chunk : layOutChunk(geometry, images, chunk.cut);
    for (const which of sides) {
      if (which === filter) continue;
      passes.push(
        ...(index === 0 ? largest(which) : []),
        ...transformPass(context, which, layout, first),
      );
    }
    const target = targets[index % targets.length]!;
    const product = productPass(context, layout, target, filter === undefined ? last : undefined);
    passes.push(product);
    last = target;
    kernel ||= canonicalName(product.kernel);
    multiplications += productWorkgroups({ ...layout, splits: 1 }, policy) * policy.rows *
      policy.columns * layout.depth;
    if (filter !== undefined || index === count - 1) passes.push(...finish(layout, first, target));
  }
  return buffers.plan({
    kernel,
    algorithm: "winograd2d-nonfused",
    passes,
    multiplications,
    amplification: amplification2d(...tile.transforms),
    arithmetic: {
      tiles: [{
        axes: tile.transforms.slice(-problem.filterSize.length).map(({ n, r }) => ({ n, r })),
      }],
      ...(sums ?? (splits === 1 ? {} : { chain: perSplit, segment: perSplit })),
    },
    schedule: cutSchedule(chunk.cut, request),
    notes: notesOf(geometry, chunk, count),
  });

  /** Sums the splits of a chunk's products and transforms them. */
  function finish(layout: ChunkLayout, first: number, target: number): Pass[] {
    const source = splits > 1 ? products! : target;
    const summed = splits === 1 ? [] : [
      reducePass(flatRow(layout.resultElements, splits), NO_STEPS, buffers, {
        partials: target,
        result: source,
      }, sum),
    ];
    const { which, tensor, matrices, masked } = geometry.result;
    const images = tensor(layout.images);
    const window = windowOf(context, which, images, first);
    const { split, places } = outputSplit(context, layout.depth, first);
    const shape = {
      name: tile.trait,
      tensor: images,
      matrices,
      masked,
      stack: layout.result,
      start: window.start,
      stored: sum,
      split,
    };
    const named = { matrices: buffers.split(source), result: window.split };
    const module = moduleBuilder(mode, { ...named, ...buffers.splits(places) });
    const kernel = outputTransformKernel(module, shape, convEpilogue(request), elements.result);
    const bound = { matrices: source, result: window.bindings, ...ends, ...places };
    return [...summed, pass(kernel, buffers, bound)];
  }
}

/** Winograd in separate passes. */
export const winogradNonfused: Algorithm<NonfusedGeometry> = {
  name: "winograd2d-nonfused",
  options: ["policy", "splits", "balance", "flush", "tile", "math"],
  dtypes: FLOAT_DTYPES,
  refuse: nonfusedReason,
  candidates: nonfusedCandidates,
  geometry: (asked) => resultElements(asked.problem) === 0 ? { asked } : nonfusedGeometry(asked),
  price: (made) => "geometry" in made ? nonfusedTime(made) : undefined,
  plan: planWinogradNonfused,
};
