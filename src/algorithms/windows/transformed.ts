/** Products of an input that is written once more before: as a matrix (im2col), or in window order (im2win). */
import { elementsOf, elementsTrait } from "../../elements/elements.ts";
import { type Scalar, scalarBytes } from "../../elements/scalar.ts";
import { im2colKernel, matrixElements, matrixExtents } from "../../kernels/im2col.ts";
import { im2winKernel, windowElements } from "../../kernels/im2win.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import type { TileLoader } from "../../kernels/loader.ts";
import { windowLoader, windowVector } from "../../kernels/loaders/im2win.ts";
import { matrixLoader, packedLoader } from "../../kernels/loaders/matrix.ts";
import {
  type ModuleBuilder,
  moduleBuilder,
  type SizeMode,
  type TensorAccess,
} from "../../kernels/module.ts";
import type { SizedKernel } from "../../kernels/sized_kernel.ts";
import { packedElements, type PackShape } from "../../kernels/pack.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import {
  cutPasses,
  cutTiles,
  packedFilter,
  type ProductPart,
  productPass,
  streamsOf,
} from "../conv_product.ts";
import { type Cut, cutArithmetic, cutProduct, cutSchedule, partialResultElements } from "../cut.ts";
import { cutNotes } from "../cut_notes.ts";
import { deviceOf } from "../device/h200.ts";
import { copyTime, moveTime, productTime } from "../device/model.ts";
import { packedShape } from "../geometry.ts";
import { convEpilogue, pass } from "../passes.ts";
import type { Plan } from "../plan.ts";
import { type Product, stepsOf } from "../product.ts";
import { expectPlanned, isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import {
  operandBytes,
  partialBytes,
  problemBuffers,
  resultBytes,
  resultElements,
  tensorElements,
  wholeBytes,
} from "../tensors.ts";
import {
  batchChunks,
  type Chunk,
  chunkBufferBytes,
  fourElseOne,
  im2colGeometry,
  windowFilter,
  type WindowGeometry,
  windowGeometry,
  windowMatrix,
  windowShape,
  windowTarget,
} from "./geometry.ts";

/** A way to write the input once more. */
interface Transform {
  readonly algorithm: "im2col" | "im2win";
  /** Names of the input's buffer and of what is written, and those by which kernels bind them. */
  readonly buffers: { readonly filter: string; readonly written: string };
  readonly bound: { readonly input: string; readonly written: string };
  /** In a plan's notes, before chunks. */
  note(request: PlanRequest, geometry: WindowGeometry, columns: number): string;
  geometry(request: PlanRequest): WindowGeometry;
  filter(request: PlanRequest, geometry: WindowGeometry, policy: TilePolicy): PackShape;
  /** What is written of so many images, in chunks or at once. */
  of(request: PlanRequest, geometry: WindowGeometry, images: number, chunked: boolean): Written;
}

/** An input as it is written. */
interface Written {
  readonly elements: number;
  kernel(module: ModuleBuilder, first: number, element: Scalar): SizedKernel;
  /** How the product reads both its operands. */
  readonly a: Product["a"];
  readonly b: Product["b"];
  /** Elements of a load. */
  readonly vector: 1 | 4;
  readonly trait: string;
  loader(module: ModuleBuilder, access: TensorAccess, tileDepth: number): TileLoader;
}

/** The matrix of all windows. */
export const IM2COL: Transform = {
  algorithm: "im2col",
  buffers: { filter: "packed filter", written: "im2col matrix" },
  bound: { input: "source", written: "matrix" },
  note: () => "explicit matrices",
  geometry: im2colGeometry,
  filter: (request, { channels }, policy) => packedShape(request, policy, channels),
  of(request, geometry, images, chunked) {
    const matrix = windowMatrix(request, geometry, images, chunked);
    const { lines, leading, group } = matrixExtents(matrix);
    const { tile: value } = elementsOf(request);
    const lies = matrix.inner === "columns"
      ? { along: "place", places: leading, depth: lines, batchStride: group } as const
      : { along: "depth", places: lines, depth: leading, batchStride: group } as const;
    return {
      elements: matrixElements(matrix),
      kernel: (module, ...to) => im2colKernel(module, matrix, ...to),
      a: { along: "place", vector: 4, value },
      // The matrix is padded to vectors of four either way.
      b: { along: lies.along, vector: 4, value },
      vector: 4,
      trait: `${matrix.inner}_v4`,
      loader: (module, access, tileDepth) =>
        matrixLoader(module, "b", access, { ...lies, vector: 4, tileDepth }),
    };
  },
};

/** The input in window order: windows are read as they lie. */
export const IM2WIN: Transform = {
  algorithm: "im2win",
  buffers: { filter: "filter in window order", written: "input in window order" },
  bound: { input: "input", written: "windows" },
  note({ problem: { groups } }, { interleave, rows, taps, channels }, columns) {
    return `windows of ${interleave === 4 ? "four images a vector" : "single images"}, ` +
      `a product of ${rows} x ${columns} x ${taps * channels}` +
      (groups > 1 ? ` for each of ${groups} groups` : "");
  },
  geometry: windowGeometry,
  filter: windowFilter,
  of(request, geometry, images, chunked) {
    const { interleave } = geometry;
    const shape = windowShape(request, geometry, images, chunked);
    const vector = windowVector(shape);
    return {
      elements: windowElements(shape),
      kernel: (module, ...to) => im2winKernel(module, shape, ...to),
      a: { along: "place", vector: 4 },
      b: {
        along: "depth",
        vector,
        ...(interleave === 4 ? { vectorAlong: "place" } : {}),
      },
      vector,
      trait: `i${interleave}b${vector}`,
      loader: (module, access, tileDepth) =>
        windowLoader(module, access, shape, { tileDepth, vector }),
    };
  },
};

/** A request's product, cut in chunks of the batch. */
export interface TransformedCut {
  readonly request: PlanRequest;
  readonly transform: Transform;
  readonly geometry: WindowGeometry;
  readonly cut: Cut;
  readonly chunks: readonly Chunk[];
}

function productOf(
  request: PlanRequest,
  transform: Transform,
  geometry: WindowGeometry,
  images: number,
): Product {
  const { rows, taps, channels, spots } = geometry;
  const { a, b } = transform.of(request, geometry, images, false);
  return {
    rows,
    columns: images * spots,
    batches: request.problem.groups,
    ...stepsOf(() => taps * channels, request.schedule),
    elements: resultElements(request.problem),
    streams: streamsOf(request),
    a,
    b,
  };
}

/**
 * Chooses order, policy, cut and chunks: single images where four exceed a limit. The depth is split only where the
 * batch is not.
 */
export function cutTransformed(
  request: PlanRequest,
  transform: Transform,
): Planned<TransformedCut> {
  const geometry = transform.geometry(request);
  return fourElseOne(
    geometry.interleave,
    (interleave) => chunkedCut(request, transform, { ...geometry, interleave }),
  );
}

/** The cut of the whole batch, where that fits, else one that takes chunks. */
function chunkedCut(
  request: PlanRequest,
  transform: Transform,
  geometry: WindowGeometry,
): Planned<TransformedCut> {
  const { problem: { batch }, limits, maxWorkspaceBytes } = request;
  const each = scalarBytes(elementsOf(request).storage);
  const bytes = (images: number) =>
    wholeBytes(each * transform.of(request, geometry, images, false).elements);
  const maxBufferBytes = chunkBufferBytes(limits, bytes(geometry.interleave));
  const filterBytes = (policy: TilePolicy) =>
    operandBytes(request) * packedElements(transform.filter(request, geometry, policy));
  const product = {
    ...productOf(request, transform, geometry, batch),
    workspaceBytes: (policy: TilePolicy) => filterBytes(policy) + bytes(batch),
  };
  const fixedBytes = (cut: Cut) =>
    filterBytes(cut.policy) + partialBytes(request) * partialResultElements(cut, product);
  const best = cutProduct(request, product);
  if (isRefusal(best)) return best;
  const whole = bytes(batch) <= maxBufferBytes &&
    fixedBytes(best) + bytes(batch) <= (maxWorkspaceBytes ?? Infinity);
  const cut = whole || best.splits === 1 ? best : cutProduct(
    { ...request, schedule: { ...request.schedule, splits: 1, balance: "none" } },
    product,
  );
  if (isRefusal(cut)) return cut;
  const chunks = batchChunks(transform.algorithm, {
    batch,
    multiple: geometry.interleave,
    bytes,
    fixedBytes: fixedBytes(cut),
    maxBufferBytes,
    maxWorkspaceBytes,
  });
  return isRefusal(chunks) ? chunks : { request, transform, geometry, cut, chunks };
}

/** Plans a product of a transformed input, in chunks of the batch where that exceeds a limit. */
export function planTransformed(
  { request, transform, geometry, cut, chunks }: TransformedCut,
  mode: SizeMode,
): Planned<Plan> {
  const { problem: { groups }, schedule } = request;
  const { policy } = cut;
  const { rows, taps, channels, spots, output } = geometry;
  const depth = taps * channels;
  const chunked = chunks.length > 1;
  const largest = chunks[0]!.images;
  const columns = largest * spots;
  const writtenOf = (images: number) => transform.of(request, geometry, images, chunked);

  const tensors = problemBuffers(request, mode);
  const { buffers, tensor, ends, elements: types } = tensors;
  const filter = transform.filter(request, geometry, policy);
  const { packed, passes: pack } = packedFilter(filter, tensors, transform.buffers.filter);
  const { storage, tile, accumulate } = types;
  const buffer = buffers.workspace(transform.buffers.written, writtenOf(largest).elements, storage);
  const target = { ...windowTarget(geometry), buffer: tensor.output, element: types.result };
  const shape = { cut, rows, columns, target };
  const epilogue = convEpilogue(request);
  const alike = {
    rows,
    batches: groups,
    splits: 1,
    policy,
    variant: schedule,
    accumulate,
    epilogue,
  };
  const multiple = largest * output[0]!;
  const whole = chunked
    ? undefined
    : cutPasses(request, shape, tensors, (part) => product(largest, part));
  const passes = whole
    ? [...transformed(chunks[0]!), whole.product, ...whole.sums]
    : chunks.flatMap((chunk) => {
      const begin = { at: chunk.first * output[0]!, multiple };
      const columns = chunk.images * spots;
      const part = { ...alike, columns, ends, target: { ...target, begin } };
      return [...transformed(chunk), product(chunk.images, part)];
    });
  const used = whole?.cut ?? cut;
  const main = passes.find(({ multiplications }) => multiplications > 0) ?? passes.at(-1)!;
  return buffers.plan({
    kernel: canonicalName(main.kernel),
    algorithm: transform.algorithm,
    passes: resultElements(request.problem) === 0 ? [] : [...pack, ...passes],
    multiplications: passes.reduce((sum, one) => sum + one.multiplications, 0),
    arithmetic: cutArithmetic(used, Math.ceil(depth / policy.depth)),
    schedule: cutSchedule(used, request),
    notes: [
      transform.note(request, geometry, columns) +
      (chunked ? `, in ${chunks.length} chunks of the batch` : ""),
      ...cutNotes(used, cutTiles(shape, groups), request),
    ],
  });

  /** The pass that writes images; none where there is nothing to write. */
  function transformed({ first, images }: Chunk) {
    const written = writtenOf(images);
    if (written.elements === 0) return [];
    const places = { [transform.bound.input]: tensor.input, [transform.bound.written]: buffer };
    const kernel = written.kernel(buffers.module(places), first, storage);
    return [pass(kernel, buffers, places)];
  }

  /** The product of the packed filter and what is written of so many images. */
  function product(images: number, part: ProductPart) {
    const module = moduleBuilder(mode);
    const written = writtenOf(images);
    const read = (name: string, vector: 1 | 4, buffer: number) =>
      module.tensor(name, "read", vector, buffers.split(buffer), storage, tile);
    const a = read("packed", 4, packed);
    const b = read(transform.bound.written, written.vector, buffer);
    const lies = { places: filter.paddedRows, depth: filter.depth, tileDepth: policy.depth };
    return productPass({
      name: `${transform.algorithm}_fwd_${elementsTrait(types)}`,
      trait: written.trait,
      module,
      depth,
      a: packedLoader(module, "a", a, lies),
      b: written.loader(module, b, policy.depth),
      places: { packed, [transform.bound.written]: buffer },
      ...part,
    }, buffers);
  }
}

/**
 * Microseconds of the same: the filter is packed, then in each chunk, which ends with a wave of its own, the input is transformed and
 * multiplied.
 *
 * @param rate TB/s at which the input is written.
 */
export function transformedTime(
  { request, transform, geometry, cut, chunks }: TransformedCut,
  rate: number,
): number {
  const { problem } = request;
  const { rates, times } = deviceOf(request);
  const chunk = productOf(request, transform, geometry, chunks[0]!.images);
  const alike = {
    ...request,
    schedule: { ...request.schedule, policy: cut.policy.name, splits: 1, balance: "none" },
  } as const;
  // What fits the whole batch fits a chunk.
  const cost = chunks.length === 1
    ? cut.cost
    : chunks.length * expectPlanned(cutProduct(alike, chunk)).cost;
  const bytes = operandBytes(request);
  const filter = packedElements(transform.filter(request, geometry, cut.policy));
  const packing = copyTime(bytes * 2 * filter, rates.filterStream, deviceOf(request));
  const { elements } = transform.of(request, geometry, problem.batch, false);
  const input = tensorElements(problem, "input");
  const product = Math.max(
    productTime(cost, rates.packed),
    moveTime(bytes * elements + resultBytes(request) * resultElements(problem), rates.stream),
  );
  return packing + moveTime(bytes * (input + elements), rate) + product +
    2 * chunks.length * times.dispatch;
}
