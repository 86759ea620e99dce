import { elementsOf, elementsTrait } from "../../elements/elements.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { im2winKernel, windowElements } from "../../kernels/im2win.ts";
import { windowLoader, windowVector } from "../../kernels/loaders/im2win.ts";
import { packedLoader } from "../../kernels/loaders/matrix.ts";
import { fullVariant } from "../../kernels/main_loop_variant.ts";
import { moduleBuilder, type SizeMode } from "../../kernels/module.ts";
import { packedElements } from "../../kernels/pack.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import { convEpilogue } from "../conv_epilogue.ts";
import { packFilterPass, productPass } from "../conv_product.ts";
import { type Cut, cutArithmetic, cutProduct, partialResultElements } from "../cut.ts";
import { cutNotes } from "../cut_note.ts";
import { cutPasses, cutTiles, type ProductPart, streamsOf } from "../cut_passes.ts";
import { pass } from "../passes.ts";
import type { Pass, Plan } from "../plan.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import {
  operandBytes,
  partialBytes,
  problemBuffers,
  resultElements,
  wholeBytes,
} from "../tensors.ts";
import {
  windowBytes,
  windowColumns,
  windowDepth,
  windowFilter,
  type WindowGeometry,
  windowGeometry,
  windowShape,
  windowTarget,
} from "./geometry.ts";
import { batchChunks, type Chunk, chunkBufferBytes, fourElseOne } from "../chunks.ts";
import { type Product, stepsOf } from "../product.ts";

/**
 * Plans the im2win convolution (forward): the input in window order, then the product of the filter and of
 * windows that are read as they lie. In chunks of the batch where the transformed tensor exceeds a limit.
 */
export function planIm2win(request: PlanRequest, mode: SizeMode): Planned<Plan> {
  const { problem, limits } = request;
  const windowCut = cutWindows(request);
  if (isRefusal(windowCut)) return windowCut;
  const { geometry, cut, chunks } = windowCut;
  const { policy } = cut;
  const { rows, interleave } = geometry;
  const depth = windowDepth(geometry);
  const chunked = chunks.length > 1;
  const shapeOf = (images: number) => windowShape(request, geometry, images, chunked);
  const { vectorLoads } = fullVariant(request.variant);
  const vector = vectorLoads ? windowVector(shapeOf(interleave)) : 1;
  const columns = windowColumns(geometry, chunks[0]!.images);

  const tensors = problemBuffers(request);
  const { buffers, tensor, bias, elements } = tensors;
  const filter = windowFilter(request, geometry, policy);
  const packed = buffers.add(
    "filter in window order",
    "workspace",
    packedElements(filter),
    elements.storage,
  );
  const largest = shapeOf(chunks[0]!.images);
  const windows = buffers.add(
    "input in window order",
    "workspace",
    windowElements(largest),
    elements.storage,
  );
  const target = { ...windowTarget(geometry), buffer: tensor.output, element: elements.result };
  const shape = { cut, rows, columns, target };
  const pack = packFilterPass(
    filter,
    mode,
    buffers,
    { unpacked: tensor.filter, packed },
    limits,
    elements.storage,
  );
  const passes: Pass[] = [];
  let used = cut;
  if (chunked) {
    const epilogue = convEpilogue(request);
    const multiple = chunks[0]!.images * geometry.output[0]!;
    for (const { first, images } of chunks) {
      const columns = windowColumns(geometry, images);
      const begin = { at: first * geometry.output[0]!, multiple };
      const part = { rows, columns, batches: problem.groups, splits: 1 };
      passes.push(
        ...transform(first, images),
        product(images, { ...part, target: { ...target, begin }, epilogue }),
      );
    }
  } else {
    const { images } = chunks[0]!;
    const make = (part: ProductPart) => product(images, part);
    const main = cutPasses(request, mode, shape, tensors, make);
    passes.push(...transform(0, images), main.product, ...main.sums);
    used = main.cut;
  }
  const main = passes.find(({ multiplications }) => multiplications > 0) ?? passes.at(-1)!;
  return buffers.plan({
    kernel: canonicalName(main.kernel),
    algorithm: "im2win",
    passes: resultElements(problem) === 0 ? [] : [...pack, ...passes],
    multiplications: passes.reduce((sum, one) => sum + one.multiplications, 0),
    arithmetic: chunked ? {} : cutArithmetic(used, Math.ceil(depth / policy.depth)),
    notes: [
      `windows of ${interleave === 4 ? "four images a vector" : "single images"}, ` +
      `a product of ${rows} x ${columns} x ${depth}` +
      (problem.groups > 1 ? ` for each of ${problem.groups} groups` : "") +
      (chunked ? `, in ${chunks.length} chunks of the batch` : ""),
      ...cutNotes(used, cutTiles(shape, problem.groups), request),
    ],
  });

  /** The pass that writes images in window order; none where there is nothing to write. */
  function transform(first: number, images: number): Pass[] {
    const shape = shapeOf(images);
    if (windowElements(shape) === 0) return [];
    const [from, to] = [buffers.split(tensor.input), buffers.split(windows)];
    const kernel = im2winKernel(shape, mode, first, from, to, elements.storage);
    const places = { input: tensor.input, windows };
    return [pass(kernel, buffers, places, limits)];
  }

  function product(images: number, part: ProductPart): Pass {
    const module = moduleBuilder(mode);
    const { storage, tile } = elements;
    const read = (name: string, vector: 1 | 4, buffer: number) =>
      module.tensor(name, "read", vector, buffers.split(buffer), storage, tile);
    const a = read("packed", vectorLoads ? 4 : 1, packed);
    const b = read("windows", vector, windows);
    return productPass(
      {
        name: `im2win_fwd_${elementsTrait(elements)}`,
        accumulate: elements.accumulate,
        trait: `i${interleave}b${vector}`,
        mode,
        module,
        policy,
        variant: request.variant,
        depth,
        a: packedLoader(module, "a", a, {
          places: filter.paddedRows,
          depth: filter.depth,
          tileDepth: policy.depth,
        }),
        b: windowLoader(module, b, shapeOf(images), { tileDepth: policy.depth, vector }),
        places: { packed, windows, bias },
        operands: [packed, windows],
        ...part,
      },
      buffers,
      limits,
    );
  }
}

/** A product of windows, cut, and the chunks of the batch. */
export interface WindowCut {
  readonly geometry: WindowGeometry;
  readonly cut: Cut;
  readonly chunks: readonly Chunk[];
}

/**
 * Chooses order, policy, cut and chunks: single images where four exceed a limit. The depth is split only where the
 * batch is not.
 */
export function cutWindows(request: PlanRequest): Planned<WindowCut> {
  const geometry = windowGeometry(request);
  return fourElseOne(
    geometry.interleave,
    (interleave) => chunked(request, { ...geometry, interleave }),
  );
}

/** The product of so many images' windows. */
export function windowProduct(
  request: PlanRequest,
  geometry: WindowGeometry,
  images: number,
): Product {
  const depth = windowDepth(geometry);
  return {
    rows: geometry.rows,
    columns: windowColumns(geometry, images),
    batches: request.problem.groups,
    ...stepsOf(() => depth, request.variant),
    elements: resultElements(request.problem),
    streams: streamsOf(request),
    a: { along: "place", vector: 4 },
    b: windowAccess(request, geometry),
  };
}

/** The cut of the whole batch, where that fits, else one that takes chunks. */
function chunked(request: PlanRequest, geometry: WindowGeometry): Planned<WindowCut> {
  const { problem, limits, maxWorkspaceBytes } = request;
  const { storage } = elementsOf(request);
  const bytes = (images: number) =>
    wholeBytes(windowBytes(windowShape(request, geometry, images, false), storage));
  const maxBufferBytes = chunkBufferBytes(limits, [bytes(geometry.interleave)]);
  const filterBytes = (policy: TilePolicy) =>
    operandBytes(request) * packedElements(windowFilter(request, geometry, policy));
  const product = {
    ...windowProduct(request, geometry, problem.batch),
    workspaceBytes: (policy: TilePolicy) => filterBytes(policy) + bytes(problem.batch),
  };
  const fixedBytes = (cut: Cut) =>
    filterBytes(cut.policy) + partialBytes(request) * partialResultElements(cut, product);
  const best = cutProduct(request, product);
  if (isRefusal(best)) return best;
  const whole = bytes(problem.batch) <= maxBufferBytes &&
    fixedBytes(best) + bytes(problem.batch) <= (maxWorkspaceBytes ?? Infinity);
  const cut = whole || best.splits === 1
    ? best
    : cutProduct({ ...request, splits: 1, balance: "none" }, product);
  if (isRefusal(cut)) return cut;
  const chunks = batchChunks({
    algorithm: "im2win",
    batch: problem.batch,
    multiple: geometry.interleave,
    bytes: (images) => [bytes(images)],
    fixedBytes: fixedBytes(cut),
    maxBufferBytes,
    maxWorkspaceBytes,
  });
  return isRefusal(chunks) ? chunks : { geometry, cut, chunks };
}

function windowAccess(request: PlanRequest, geometry: WindowGeometry) {
  return geometry.interleave === 4
    ? { along: "depth", vector: 4, vectorAlong: "place" } as const
    : {
      along: "depth",
      vector: windowVector(windowShape(request, geometry, 1, false)),
    } as const;
}
