import { elementsOf, elementsTrait, sumOf } from "../../elements/elements.ts";
import type { Scalar } from "../../elements/scalar.ts";
import { col2imKernel, col2imWorkgroups } from "../../kernels/col2im.ts";
import { NO_STEPS } from "../../kernels/epilogue.ts";
import {
  type ColumnMatrix,
  im2colKernel,
  im2colWorkgroups,
  matrixElements,
  matrixExtents,
} from "../../kernels/im2col.ts";
import { packedLoader } from "../../kernels/loaders/packed.ts";
import { moduleBuilder, type SizeMode } from "../../kernels/module.ts";
import { packedElements } from "../../kernels/pack_strided.ts";
import { convEpilogue } from "../conv_epilogue.ts";
import { packFilterPass, productPass, type ProductTarget } from "../conv_product.ts";
import type { Cut } from "../cut.ts";
import { cutPasses, type ProductPart } from "../cut_passes.ts";
import { pass, reducePass } from "../passes.ts";
import type { Pass } from "../plan.ts";
import type { PlanRequest } from "../request.ts";
import { type problemBuffers, reduceShape, resultElements } from "../tensors.ts";
import type { Im2colCut } from "./cut.ts";
import { columnLoader, im2colFilter, type Im2colGeometry, loadVector } from "./geometry.ts";

/** What making a plan's passes goes by. */
export interface Im2colContext {
  readonly request: PlanRequest;
  readonly mode: SizeMode;
  readonly geometry: Im2colGeometry;
  readonly cut: Im2colCut;
  readonly tensors: ReturnType<typeof problemBuffers>;
  windows(images: number): ColumnMatrix;
  gradient(images: number): ColumnMatrix;
}

/** What the matrix of windows holds: sums that col2im adds up, for backward-data. */
export function windowScalar(request: PlanRequest): Scalar {
  const elements = elementsOf(request);
  return request.problem.op === "bwd-data" ? sumOf(elements) : elements.storage;
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
  return [pass(kernel, buffers, at, im2colWorkgroups(matrix), limits)];
}

/** The workspace of a matrix: that of the first chunk, which no other exceeds. */
function matrixBuffer(
  { cut, tensors }: Im2colContext,
  name: string,
  matrix: (images: number) => ColumnMatrix,
  element: Scalar,
): number {
  const elements = matrixElements(matrix(cut.chunks[0]!.images));
  return tensors.buffers.add(name, "workspace", elements, element);
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

/** What the products of all operations share. */
function common({ request, mode, cut, geometry, tensors }: Im2colContext, trait: string) {
  const { elements } = tensors;
  return {
    name: `im2col_${request.problem.op.replace("-", "_")}_${elementsTrait(elements)}`,
    accumulate: elements.accumulate,
    trait: `${geometry.inner}_v${loadVector(request)}${trait}`,
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
      ...common(context, ""),
      module,
      rows: shape.rows,
      columns,
      depth,
      a: packedLoader(module, "a", a, {
        places: shape.paddedRows,
        depth: shape.depth,
        tileDepth: policy.depth,
      }),
      b: columnLoader(module, "b", b, matrix, policy),
      places: { packed, matrix: buffer, bias },
      operands: [packed, buffer],
      batches: request.problem.groups,
      ...part,
    },
    buffers,
    request.limits,
  );
}

/** Forward: the matrix of windows, then the filter times it; and how that is cut. */
export function forward(context: Im2colContext): { passes: Pass[]; cut: Cut } {
  const { request, mode, geometry, cut, tensors } = context;
  const { tensor, elements } = tensors;
  const filter = packedFilter(context);
  const matrix = matrixBuffer(context, "im2col matrix", context.windows, windowScalar(request));
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

/** Backward-data: the filter times the gradient gives the matrix of windows, which col2im sums. */
export function backwardData(context: Im2colContext): Pass[] {
  const { request, mode, cut, tensors: { buffers, tensor, elements } } = context;
  const { limits } = request;
  const { storage } = elements;
  const summed = windowScalar(request);
  const filter = packedFilter(context);
  const gradient = matrixBuffer(context, "gradient matrix", context.gradient, storage);
  const matrix = matrixBuffer(context, "im2col matrix", context.windows, windowScalar(request));
  return [
    ...filter.passes,
    ...cut.chunks.flatMap(({ first, images }) => {
      const from = context.gradient(images);
      const windows = context.windows(images);
      const { leading, group, rows, columns } = matrixExtents(windows);
      const target: ProductTarget = windows.inner === "columns"
        ? {
          buffer: matrix,
          element: summed,
          row: leading,
          outer: 0,
          inner: 1,
          period: leading,
          group,
        }
        : {
          buffer: matrix,
          element: summed,
          row: 1,
          outer: 0,
          inner: leading,
          period: columns,
          group,
        };
      if (matrixElements(windows) === 0) return [];
      const kernel = col2imKernel(
        windows,
        mode,
        first,
        buffers.split(matrix),
        buffers.split(tensor.input),
        { matrix: summed, result: elements.result },
      );
      const places = { matrix, result: tensor.input };
      return [
        ...matrixPass(context, from, first, { source: tensor.output, matrix: gradient }),
        ...(rows === 0 ? [] : [
          filterProduct(context, filter, from, gradient, {
            splits: 1,
            target,
            epilogue: NO_STEPS,
          }),
        ]),
        pass(kernel, buffers, places, col2imWorkgroups(windows), limits),
      ];
    }),
  ];
}

/** Backward-filter: the gradient times the windows, both as matrices; chunks leave partial results. */
export function backwardFilter(context: Im2colContext): Pass[] {
  const { request, geometry, mode, cut, tensors } = context;
  const { buffers, tensor, bias, elements: types } = tensors;
  const { storage, tile } = types;
  const { limits } = request;
  const gradient = matrixBuffer(context, "gradient matrix", context.gradient, storage);
  const matrix = matrixBuffer(context, "im2col matrix", context.windows, windowScalar(request));
  const { filter, inChannels, outChannels, taps, rowOrder } = geometry;
  const elements = resultElements(request.problem);
  const partials = cut.partials > 1
    ? buffers.add("partial results", "workspace", cut.partials * elements, sumOf(types))
    : undefined;
  const target = {
    buffer: partials ?? tensor.filter,
    element: partials === undefined ? types.result : sumOf(types),
    row: filter[0]!,
    group: outChannels * filter[0]!,
    ...(rowOrder === "channel"
      ? { period: inChannels, outer: filter.at(-1)!, inner: filter[1]! }
      : { period: taps, outer: filter[1]!, inner: filter.at(-1)! }),
    ...(partials === undefined ? {} : { split: elements }),
  };
  const vector = loadVector(request);
  const products = cut.chunks.flatMap(({ first, images }, index) => {
    const from = context.gradient(images);
    const windows = context.windows(images);
    const module = moduleBuilder(mode);
    const a = module.tensor("gradient", "read", vector, buffers.split(gradient), storage, tile);
    const b = module.tensor("matrix", "read", vector, buffers.split(matrix), storage, tile);
    const { splits } = cut.cut;
    const slot = splits * elements;
    const product = productPass(
      {
        ...common(context, `_${rowOrder}`),
        module,
        rows: outChannels,
        columns: taps * inChannels,
        batches: request.problem.groups,
        splits,
        depth: matrixExtents(windows).columns,
        a: columnLoader(module, "a", a, from, cut.cut.policy, true),
        b: columnLoader(module, "b", b, windows, cut.cut.policy, true),
        places: { gradient, matrix },
        operands: [gradient, matrix],
        target: { ...target, ...beginAt(context, index * slot, slot) },
        epilogue: NO_STEPS,
      },
      buffers,
      limits,
    );
    return [
      ...matrixPass(context, from, first, { source: tensor.output, matrix: gradient }),
      ...matrixPass(context, windows, first, { source: tensor.input, matrix }),
      product,
    ];
  });
  if (partials === undefined) return products;
  const places = { partials, result: tensor.filter, bias };
  const shape = reduceShape(request, cut.partials);
  const epilogue = convEpilogue(request);
  return [...products, reducePass(shape, mode, epilogue, buffers, places, limits, types.result)];
}
