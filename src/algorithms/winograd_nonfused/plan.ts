import { sumOf } from "../../elements/elements.ts";
import { NO_STEPS } from "../../kernels/epilogue.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { unitDepth } from "../../kernels/matrix_units.ts";
import type { SizeMode } from "../../kernels/module.ts";
import { outputTransformKernel } from "../../kernels/winograd_output.ts";
import { directFlops, resultTensor } from "../../problem/conv_problem.ts";
import { amplification2d } from "../../winograd/amplification.ts";
import { convEpilogue } from "../conv_epilogue.ts";
import { planInMath } from "../halves.ts";
import { pass, reducePass } from "../passes.ts";
import type { Pass, Plan } from "../plan.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { problemBuffers, resultElements } from "../tensors.ts";
import type { Context } from "./context.ts";
import { filterPass, transformPass, windowOf } from "./transforms.ts";
import { geometryOf } from "./geometry.ts";
import { inMath } from "./price.ts";
import { notesOf } from "./notes.ts";
import { productKernel } from "./product.ts";
import { markPasses, operandMarks, outputSplit, plainPlaces, splitArithmetic } from "./split.ts";
import { type PlannedTile, plannedTile } from "./tiles.ts";
import {
  chooseChunks,
  type ChunkLayout,
  layOutChunk,
  valuesDeep,
  workspaceOf,
} from "./workspace.ts";

/** Nothing to compute. */
function emptyPlan(request: PlanRequest, tile: PlannedTile): Planned<Plan> {
  return problemBuffers(request).buffers.plan({
    kernel: "winograd2d_nonfused",
    algorithm: "winograd2d-nonfused",
    passes: [],
    multiplications: 0,
    amplification: amplification2d(...tile.transforms),
    arithmetic: {},
    notes: ["an empty result"],
  });
}

/**
 * Plans Winograd in separate passes: transforms of the operands, α0·α1 products a group, transform of the products. Works
 * in chunks of the batch that share their workspace.
 */
export function planWinogradNonfused(asked: PlanRequest, mode: SizeMode): Planned<Plan> {
  if (resultElements(asked.problem) === 0) return emptyPlan(asked, plannedTile(asked));
  return planInMath(asked, inMath(asked), (request) => planWinograd(request, mode));
}

/** Plans what says how its products are multiplied. */
function planWinograd(request: PlanRequest, mode: SizeMode): Planned<Plan> {
  const { problem, limits } = request;
  const tile = plannedTile(request);
  const geometry = geometryOf(request, tile);
  const chunk = chooseChunks(request, geometry, tile);
  if (isRefusal(chunk)) return chunk;
  const { splits, policy } = chunk.cut;
  const perSplit = Math.ceil(chunk.depth / splits);
  const count = chunk.images === 0 ? 1 : Math.ceil(problem.batch / chunk.images);
  const chunks = Array.from({ length: count }, (_, index) => {
    const first = index * chunk.images;
    const images = Math.min(chunk.images, problem.batch - first);
    const layout = images === chunk.images
      ? chunk
      : layOutChunk(request, geometry, tile, images, chunk.cut);
    return { first, layout };
  });

  const tensors = problemBuffers(request);
  const { buffers, tensor, bias, elements } = tensors;
  const sum = sumOf(elements);
  const needs = workspaceOf(request, chunk);
  const names = geometry.operands.map(({ role }) => `transformed ${role}`);
  const operands = [
    buffers.add(names[0]!, "workspace", needs.operands[0], tile.stored),
    buffers.add(names[1]!, "workspace", needs.operands[1], tile.stored),
  ] as const;
  const products = needs.products === 0
    ? undefined
    : buffers.add("products", "workspace", needs.products, sum);
  const targets = needs.partials === 0 ? [products!] : Array.from(
    { length: needs.targets },
    () => buffers.add("partial products", "workspace", needs.partials, sum),
  );
  const splitMarks = tile.stored === "halves" ? operandMarks(request, geometry, chunk) : undefined;
  const marks = splitMarks && buffers.add("marks", "workspace", splitMarks.words, "u32");
  const sums = splitMarks && splitArithmetic(request, geometry, chunk, splitMarks);
  const context: Context = {
    ...{ request, mode, tile, geometry, buffers, tensors, operands, marks },
    drift: sums ?? {},
  };

  const passes: Pass[] = [];
  let kernel = "";
  let multiplications = 0;
  const [a, b] = geometry.operands.map(({ which }) => tensor[which]) as [number, number];
  const marking = splitMarks &&
    markPasses(request, mode, geometry, splitMarks, buffers, { marks: marks!, tensors: [a, b] });
  if (marking !== undefined) passes.push(marking.clear);
  // An operand's largest values are found just before it is transformed, so that the cache still has it.
  const maximaOf = (which: number) => marking?.maxima[which] ?? [];
  const filterFirst = geometry.operands.findIndex(({ role }) => role === "filter");
  if (filterFirst >= 0) {
    const [rows, columns] = geometry.operands[filterFirst]!.matrices;
    const places = {
      filter: tensor.filter,
      transformed: operands[filterFirst]!,
      ...(marks === undefined ? {} : { marks }),
    };
    const extent = filterFirst === 0 ? policy.rows : policy.columns;
    const padded = { extent, depth: valuesDeep(policy) };
    const split = splitMarks &&
      { marks: splitMarks.marks[filterFirst]!, unitDepth: unitDepth(policy.matrix!.unit) };
    passes.push(
      ...maximaOf(filterFirst),
      ...filterPass(request, mode, tile, { rows, columns }, padded, buffers, places, split),
    );
  }
  const share = directFlops(problem) / 2 / Math.max(1, problem.batch);
  let last = targets[0]!;
  for (const [index, { first, layout }] of chunks.entries()) {
    for (const which of [0, 1] as const) {
      if (which === filterFirst) continue;
      passes.push(
        ...(index === 0 ? maximaOf(which) : []),
        ...transformPass(context, which, layout, first),
      );
    }
    const adds = filterFirst < 0 && index > 0;
    const target = targets[index % targets.length]!;
    const product = productKernel(context, layout, target, adds ? last : undefined);
    const places = {
      a: operands[0],
      b: operands[1],
      previous: adds ? last : undefined,
      result: target,
    };
    passes.push(pass(product, buffers, places, limits, share * layout.images));
    last = target;
    if (index === 0) kernel = canonicalName(product.kernel);
    multiplications += product.workgroups / splits * policy.rows * policy.columns * layout.depth;
    if (filterFirst >= 0 || index === chunks.length - 1) {
      passes.push(...finish(layout, first, target));
    }
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
    notes: notesOf(request, tile, geometry, chunk, count),
  });

  /** Sums the splits of a chunk's products and transforms them. */
  function finish(layout: ChunkLayout, first: number, target: number): Pass[] {
    const made: Pass[] = [];
    let source = target;
    if (splits > 1) {
      const elements = layout.resultElements;
      const shape = {
        elements,
        splits,
        rows: 1,
        rowStride: elements,
        columns: elements,
        columnStride: 1,
      };
      made.push(
        reducePass(
          shape,
          mode,
          NO_STEPS,
          buffers,
          { partials: target, result: products! },
          limits,
          sumOf(tensors.elements),
        ),
      );
      source = products!;
    }
    const result = tensor[resultTensor(problem.op)];
    const images = geometry.result.tensor(layout.images);
    const window = windowOf(context, result, images, first);
    const shape = {
      name: tile.trait,
      tensor: images,
      matrices: geometry.result.matrices,
      masked: geometry.result.masked,
      stack: layout.result,
      start: window.start,
      stored: sum,
      split: marks === undefined ? undefined : outputSplit(context, layout, first),
    };
    const kernel = outputTransformKernel(shape, mode, convEpilogue(request), {
      matrices: buffers.split(source),
      result: window.split,
    }, tensors.elements.result);
    const places = { matrices: source, result: window.bindings, bias, ...plainPlaces(context) };
    made.push(pass(kernel, buffers, places, limits));
    return made;
  }
}
