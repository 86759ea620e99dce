import { sumOf } from "../../elements/elements.ts";
import { NO_STEPS } from "../../kernels/epilogue.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { mainLoopWorkgroups } from "../../kernels/main_loop.ts";
import type { SizeMode } from "../../kernels/module.ts";
import { outputTransformKernel } from "../../kernels/winograd_output.ts";
import { FLOAT_DTYPES } from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { amplification2d } from "../../winograd/amplification.ts";
import type { Algorithm } from "../algorithm.ts";
import { cutNotes } from "../cut_note.ts";
import { planInMath } from "../halves.ts";
import { clearMarksPass, convEpilogue, pass, reducePass } from "../passes.ts";
import type { Pass, Plan } from "../plan.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { flatRow, problemBuffers, resultElements } from "../tensors.ts";
import {
  type ChunkLayout,
  type Context,
  geometryOf,
  nonfusedReason,
  plannedTile,
  type WinogradGeometry,
} from "./geometry.ts";
import { inMath, nonfusedCandidates, nonfusedTime } from "./price.ts";
import { markPasses, operandMarks, outputSplit, SPLIT_NOTE, splitArithmetic } from "./split.ts";
import { filterPass, productPass, transformPass, windowOf } from "./transforms.ts";
import { chooseChunks, layOutChunk, workspaceOf } from "./workspace.ts";

/** Why this plan, for `wgconv plan`. */
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
    ...cutNotes(chunk.cut, mainLoopWorkgroups({ ...chunk, splits: 1 }, chunk.cut.policy), request),
  ];
}

/**
 * Plans Winograd in separate passes: transforms of the operands, α0·α1 products a group, transform of the products. Works
 * in chunks of the batch that share their workspace.
 */
function planWinogradNonfused(asked: PlanRequest, mode: SizeMode): Planned<Plan> {
  if (resultElements(asked.problem) > 0) {
    return planInMath(asked, inMath(asked), (request) => planWinograd(request, mode));
  }
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
function planWinograd(request: PlanRequest, mode: SizeMode): Planned<Plan> {
  const { problem } = request;
  const geometry = geometryOf(request);
  const chunk = chooseChunks(geometry);
  if (isRefusal(chunk)) return chunk;
  const { tile } = geometry;
  const { splits, policy } = chunk.cut;
  const perSplit = Math.ceil(chunk.depth / splits);
  const count = chunk.images === 0 ? 1 : Math.ceil(problem.batch / chunk.images);

  const tensors = problemBuffers(request, mode);
  const { buffers, bias, elements } = tensors;
  const sum = sumOf(elements);
  const needs = workspaceOf(geometry, chunk);
  const [a, b] = geometry.operands.map(({ role }, which) =>
    buffers.workspace(`transformed ${role}`, chunk.operandElements[which]!, tile.stored)
  ) as [number, number];
  const products = needs.products === 0
    ? undefined
    : buffers.workspace("products", needs.products, sum);
  const targets = needs.partials === 0 ? [products!] : Array.from(
    { length: needs.targets },
    () => buffers.workspace("partial products", needs.partials, sum),
  );
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
    multiplications += mainLoopWorkgroups({ ...layout, splits: 1 }, policy) * policy.rows *
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
    notes: notesOf(geometry, chunk, count),
  });

  /** Sums the splits of a chunk's products and transforms them. */
  function finish(layout: ChunkLayout, first: number, target: number): Pass[] {
    const source = splits > 1 ? products! : target;
    const summed = splits === 1 ? [] : [
      reducePass(
        flatRow(layout.resultElements, splits),
        NO_STEPS,
        buffers,
        { partials: target, result: source },
        sum,
      ),
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
    const kernel = outputTransformKernel(shape, mode, convEpilogue(request), {
      matrices: buffers.split(source),
      result: window.split,
    }, elements.result);
    const bound = { matrices: source, result: window.bindings, bias, ...places };
    return [...summed, pass(kernel, buffers, bound)];
  }
}

/** Winograd in separate passes. */
export const winogradNonfused: Algorithm = {
  name: "winograd2d-nonfused",
  options: ["policy", "splits", "tile", "math"],
  dtypes: FLOAT_DTYPES,
  refuse: nonfusedReason,
  candidates: nonfusedCandidates,
  price: nonfusedTime,
  plan: planWinogradNonfused,
};
