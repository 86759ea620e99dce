import { elementsTrait } from "../../elements/elements.ts";
import {
  type ColumnMatrix,
  im2colKernel,
  matrixElements,
  matrixExtents,
} from "../../kernels/im2col.ts";
import { packedLoader } from "../../kernels/loaders/matrix.ts";
import { moduleBuilder, type SizeMode } from "../../kernels/module.ts";
import { packedElements } from "../../kernels/pack.ts";
import { convEpilogue } from "../conv_epilogue.ts";
import { packFilterPass, productPass } from "../conv_product.ts";
import type { Chunk } from "../chunks.ts";
import type { Cut } from "../cut.ts";
import { cutPasses, type ProductPart } from "../cut_passes.ts";
import { pass } from "../passes.ts";
import type { Pass } from "../plan.ts";
import type { PlanRequest } from "../request.ts";
import type { problemBuffers } from "../tensors.ts";
import { columnLoader, im2colFilter, type Im2colGeometry, loadVector } from "./geometry.ts";

/** A cut product and its chunks. */
export interface Im2colCut {
  readonly cut: Cut;
  readonly chunks: readonly Chunk[];
}

/** What making a plan's passes goes by. */
export interface Im2colContext {
  readonly request: PlanRequest;
  readonly mode: SizeMode;
  readonly geometry: Im2colGeometry;
  readonly cut: Im2colCut;
  readonly tensors: ReturnType<typeof problemBuffers>;
  windows(images: number): ColumnMatrix;
}

/** The pass that writes a matrix; none where it is empty. */
function matrixPass(
  { mode, tensors: { buffers, elements }, request: { limits } }: Im2colContext,
  matrix: ColumnMatrix,
  first: number,
  at: { readonly source: number; readonly matrix: number },
): Pass[] {
  if (matrixElements(matrix) === 0) return [];
  const [from, to] = [buffers.split(at.source), buffers.split(at.matrix)];
  const kernel = im2colKernel(matrix, mode, first, from, to, elements.storage);
  return [pass(kernel, buffers, at, limits)];
}

/** The workspace of a matrix: that of the first chunk, which no other exceeds. */
function matrixBuffer({ cut, tensors, windows }: Im2colContext): number {
  const { buffers, elements: { storage } } = tensors;
  const elements = matrixElements(windows(cut.chunks[0]!.images));
  return buffers.add("im2col matrix", "workspace", elements, storage);
}

/** The packed filter's buffer and pass. */
function packedFilter({ request, geometry, cut, mode, tensors }: Im2colContext) {
  const { buffers, tensor, elements: { storage } } = tensors;
  const shape = im2colFilter(request, geometry, cut.cut.policy);
  const packed = buffers.add("packed filter", "workspace", packedElements(shape), storage);
  const at = { unpacked: tensor.filter, packed };
  return {
    shape,
    packed,
    passes: packFilterPass(shape, mode, buffers, at, request.limits, storage),
  };
}

/** Where results of a chunk begin, where there are several. */
function beginAt({ cut }: Im2colContext, at: number, multiple: number) {
  return cut.chunks.length === 1 ? {} : { begin: { at, multiple } };
}

/** What the products of all chunks share. */
function common({ request, mode, cut, geometry, tensors }: Im2colContext) {
  const { elements } = tensors;
  return {
    name: `im2col_fwd_${elementsTrait(elements)}`,
    accumulate: elements.accumulate,
    trait: `${geometry.inner}_v${loadVector(request)}`,
    mode,
    policy: cut.cut.policy,
    variant: request.variant,
  };
}

/** The product of the packed filter and a matrix. */
function filterProduct(
  context: Im2colContext,
  filter: ReturnType<typeof packedFilter>,
  matrix: ColumnMatrix,
  buffer: number,
  part: Omit<ProductPart, "rows" | "columns" | "batches">,
): Pass {
  const { request, mode, cut: { cut: { policy } }, tensors } = context;
  const { buffers, bias, elements: { storage, tile } } = tensors;
  const { shape, packed } = filter;
  const { rows: depth, columns } = matrixExtents(matrix);
  const module = moduleBuilder(mode);
  const vector = loadVector(request);
  const a = module.tensor("packed", "read", vector, buffers.split(packed), storage, tile);
  const b = module.tensor("matrix", "read", vector, buffers.split(buffer), storage, tile);
  return productPass(
    {
      ...common(context),
      module,
      rows: shape.rows,
      columns,
      depth,
      a: packedLoader(module, "a", a, {
        places: shape.paddedRows,
        depth: shape.depth,
        tileDepth: policy.depth,
      }),
      b: columnLoader(module, b, matrix, policy),
      places: { packed, matrix: buffer, bias },
      operands: [packed, buffer],
      batches: request.problem.groups,
      ...part,
    },
    buffers,
    request.limits,
  );
}

/** The matrix of windows, then the filter times it; and how that is cut. */
export function im2colPasses(context: Im2colContext): { passes: Pass[]; cut: Cut } {
  const { request, mode, geometry, cut, tensors } = context;
  const { tensor, elements } = tensors;
  const filter = packedFilter(context);
  const matrix = matrixBuffer(context);
  const { output, outChannels, spots, interleave } = geometry;
  const stride = output[0]!;
  const target = {
    buffer: tensor.output,
    element: elements.result,
    row: output[1]!,
    outer: interleave * stride,
    inner: output.at(-1)!,
    ...(interleave === 4 ? { interleave: stride } : {}),
    period: interleave * spots,
    group: outChannels * output[1]!,
  };
  const epilogue = convEpilogue(request);
  const chunks = cut.chunks.map(({ first, images }) => {
    const windows = context.windows(images);
    return {
      begin: beginAt(context, first * stride, cut.chunks[0]!.images * stride),
      windows,
      transform: matrixPass(context, windows, first, { source: tensor.input, matrix }),
    };
  });
  if (chunks.length > 1) {
    const product = chunks.flatMap(({ windows, transform, begin }) => [
      ...transform,
      filterProduct(context, filter, windows, matrix, {
        splits: 1,
        target: { ...target, ...begin },
        epilogue,
      }),
    ]);
    return { passes: [...filter.passes, ...product], cut: cut.cut };
  }
  const [{ windows, transform }] = chunks as [typeof chunks[number]];
  const main = cutPasses(
    request,
    mode,
    {
      cut: cut.cut,
      rows: filter.shape.rows,
      columns: matrixExtents(windows).columns,
      target,
    },
    tensors,
    (part) => filterProduct(context, filter, windows, matrix, part),
  );
  return {
    passes: [...filter.passes, ...transform, main.product, ...main.sums],
    cut: main.cut,
  };
}
