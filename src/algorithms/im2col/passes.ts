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
import { type ConvProduct, packPass, productPass, type ProductTarget } from "../conv_product.ts";
import { pass } from "../passes.ts";
import type { Pass } from "../plan.ts";
import type { PlanRequest } from "../request.ts";
import type { problemBuffers } from "../tensors.ts";
import type { Im2colCut } from "./cut.ts";
import { columnLoader, im2colFilter, type Im2colGeometry, loadVector } from "./geometry.ts";

/** What making a plan's passes goes by. */
export interface Im2colContext {
  readonly request: PlanRequest;
  readonly mode: SizeMode;
  readonly geometry: Im2colGeometry;
  readonly cut: Im2colCut;
  /** Of the result. */
  readonly elements: number;
  readonly tensors: ReturnType<typeof problemBuffers>;
  windows(images: number): ColumnMatrix;
  gradient(images: number): ColumnMatrix;
}

/** The pass that writes a matrix; none where it is empty. */
function matrixPass(
  { mode, tensors: { buffers }, request: { limits } }: Im2colContext,
  matrix: ColumnMatrix,
  first: number,
  at: { readonly source: number; readonly matrix: number },
): Pass[] {
  if (matrixElements(matrix) === 0) return [];
  const [from, to] = [buffers.split(at.source), buffers.split(at.matrix)];
  const kernel = im2colKernel(matrix, mode, first, from, to);
  return [pass(kernel, buffers, at, im2colWorkgroups(matrix), limits)];
}

/** The workspace of a matrix: that of the first chunk, which no other exceeds. */
function matrixBuffer(
  { cut, tensors }: Im2colContext,
  name: string,
  matrix: (images: number) => ColumnMatrix,
): number {
  return tensors.buffers.add(name, "workspace", matrixElements(matrix(cut.chunks[0]!.images)));
}

/** The packed filter's buffer and pass. */
function packedFilter({ request, geometry, cut, mode, tensors }: Im2colContext) {
  const { buffers, tensor } = tensors;
  const shape = im2colFilter(request, geometry, cut.policy);
  const packed = buffers.add("packed filter", "workspace", packedElements(shape));
  const at = { unpacked: tensor.filter, packed };
  return { shape, packed, passes: packPass(shape, mode, buffers, at, request.limits) };
}

/** Where results of a chunk begin, where there are several. */
function beginAt({ cut }: Im2colContext, at: number, multiple: number) {
  return cut.chunks.length === 1 ? {} : { begin: { at, multiple } };
}

/** What the products of all operations share. */
function common({ request, mode, cut, geometry }: Im2colContext, trait: string) {
  return {
    name: `im2col_${request.problem.op.replace("-", "_")}_f32`,
    trait: `${geometry.inner}_v${loadVector(request)}${trait}`,
    mode,
    policy: cut.policy,
    variant: request.variant,
    batches: request.problem.groups,
    splits: cut.splits,
  };
}

/** The product of the packed filter and a matrix. */
function filterProduct(
  context: Im2colContext,
  filter: ReturnType<typeof packedFilter>,
  matrix: ColumnMatrix,
  buffer: number,
  rest: Pick<ConvProduct, "target" | "epilogue">,
): Pass {
  const { request, mode, cut: { policy }, tensors: { buffers, bias } } = context;
  const { shape, packed } = filter;
  const module = moduleBuilder(mode);
  const vector = loadVector(request);
  const a = module.tensor("packed", "read", vector, buffers.split(packed));
  const b = module.tensor("matrix", "read", vector, buffers.split(buffer));
  return productPass(
    {
      ...common(context, ""),
      module,
      rows: shape.rows,
      columns: matrixExtents(matrix).columns,
      steps: shape.depth / policy.depth,
      a: packedLoader(module, "a", a, {
        places: shape.paddedRows,
        depth: shape.depth,
        tileDepth: policy.depth,
      }),
      b: columnLoader(module, "b", b, matrix, policy),
      places: { packed, matrix: buffer, bias },
      operands: [packed, buffer],
      ...rest,
    },
    buffers,
    request.limits,
  );
}

/** Forward: the matrix of windows, then the filter times it. */
export function forward(context: Im2colContext, partials: number | undefined): Pass[] {
  const { request, geometry, cut, tensors: { tensor }, elements } = context;
  const filter = packedFilter(context);
  const matrix = matrixBuffer(context, "im2col matrix", context.windows);
  const { output, outChannels, spots, interleave } = geometry;
  const stride = output[0]!;
  const target = {
    buffer: partials ?? tensor.output,
    row: output[1]!,
    outer: interleave * stride,
    inner: output.at(-1)!,
    ...(interleave === 4 ? { interleave: stride } : {}),
    period: interleave * spots,
    group: outChannels * output[1]!,
    ...(partials === undefined ? {} : { split: elements }),
  };
  const epilogue = partials === undefined ? convEpilogue(request.epilogue) : NO_STEPS;
  return [
    ...filter.passes,
    ...cut.chunks.flatMap(({ first, images }) => {
      const windows = context.windows(images);
      const begin = beginAt(context, first * stride, cut.chunks[0]!.images * stride);
      return [
        ...matrixPass(context, windows, first, { source: tensor.input, matrix }),
        filterProduct(context, filter, windows, matrix, {
          target: { ...target, ...begin },
          epilogue,
        }),
      ];
    }),
  ];
}

/** Backward-data: the filter times the gradient gives the matrix of windows, which col2im sums. */
export function backwardData(context: Im2colContext): Pass[] {
  const { mode, cut, tensors: { buffers, tensor }, request: { limits } } = context;
  const filter = packedFilter(context);
  const gradient = matrixBuffer(context, "gradient matrix", context.gradient);
  const matrix = matrixBuffer(context, "im2col matrix", context.windows);
  return [
    ...filter.passes,
    ...cut.chunks.flatMap(({ first, images }) => {
      const from = context.gradient(images);
      const windows = context.windows(images);
      const { leading, group, rows, columns } = matrixExtents(windows);
      const target: ProductTarget = windows.inner === "columns"
        ? { buffer: matrix, row: leading, outer: 0, inner: 1, period: leading, group }
        : { buffer: matrix, row: 1, outer: 0, inner: leading, period: columns, group };
      if (matrixElements(windows) === 0) return [];
      const kernel = col2imKernel(
        windows,
        mode,
        first,
        buffers.split(matrix),
        buffers.split(tensor.input),
      );
      const places = { matrix, result: tensor.input };
      return [
        ...matrixPass(context, from, first, { source: tensor.output, matrix: gradient }),
        ...(rows === 0
          ? []
          : [filterProduct(context, filter, from, gradient, { target, epilogue: NO_STEPS })]),
        pass(kernel, buffers, places, col2imWorkgroups(windows), limits),
      ];
    }),
  ];
}

/** Backward-filter: the gradient times the windows, both as matrices; chunks leave partial results. */
export function backwardFilter(context: Im2colContext, partials: number | undefined): Pass[] {
  const { request, geometry, mode, cut, elements, tensors: { buffers, tensor } } = context;
  const { limits } = request;
  const gradient = matrixBuffer(context, "gradient matrix", context.gradient);
  const matrix = matrixBuffer(context, "im2col matrix", context.windows);
  const { filter, inChannels, outChannels, taps, rowOrder } = geometry;
  const target = {
    buffer: partials ?? tensor.filter,
    row: filter[0]!,
    group: outChannels * filter[0]!,
    ...(rowOrder === "channel"
      ? { period: inChannels, outer: filter.at(-1)!, inner: filter[1]! }
      : { period: taps, outer: filter[1]!, inner: filter.at(-1)! }),
    ...(partials === undefined ? {} : { split: elements }),
  };
  const vector = loadVector(request);
  return cut.chunks.flatMap(({ first, images }, index) => {
    const from = context.gradient(images);
    const windows = context.windows(images);
    const module = moduleBuilder(mode);
    const a = module.tensor("gradient", "read", vector, buffers.split(gradient));
    const b = module.tensor("matrix", "read", vector, buffers.split(matrix));
    const slot = cut.splits * elements;
    const product = productPass(
      {
        ...common(context, `_${rowOrder}`),
        module,
        rows: outChannels,
        columns: taps * inChannels,
        steps: Math.ceil(matrixExtents(windows).columns / cut.policy.depth),
        a: columnLoader(module, "a", a, from, cut.policy, true),
        b: columnLoader(module, "b", b, windows, cut.policy, true),
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
}
