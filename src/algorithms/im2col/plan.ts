import { elementsOf } from "../../elements/elements.ts";
import { scalarBytes } from "../../elements/scalar.ts";
import { matrixElements } from "../../kernels/im2col.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { mainLoopWorkgroups } from "../../kernels/main_loop.ts";
import type { SizeMode } from "../../kernels/module.ts";
import { packedElements } from "../../kernels/pack.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import { batchChunks, chunkBufferBytes, fourElseOne } from "../chunks.ts";
import { cutArithmetic, cutProduct, partialResultElements } from "../cut.ts";
import { cutNotes } from "../cut_note.ts";
import { streamsOf } from "../cut_passes.ts";
import type { Plan } from "../plan.ts";
import { type Product, stepsOf } from "../product.ts";
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
  im2colFilter,
  type Im2colGeometry,
  im2colGeometry,
  matrixAccess,
  windowMatrix,
} from "./geometry.ts";
import { type Im2colContext, type Im2colCut, im2colPasses } from "./passes.ts";

/** Plans im2col and a product: an explicit matrix, in chunks of the batch where it exceeds a limit. */
export function planIm2col(request: PlanRequest, mode: SizeMode): Planned<Plan> {
  const { problem } = request;
  const matrices = cutMatrices(request);
  if (isRefusal(matrices)) return matrices;
  const { geometry, needs, cut } = matrices;
  const elements = resultElements(problem);
  const chunked = cut.chunks.length > 1;
  const tensors = problemBuffers(request);
  const { buffers } = tensors;
  const context: Im2colContext = {
    request,
    mode,
    geometry,
    cut,
    tensors,
    windows: (images) => windowMatrix(request, geometry, images, chunked),
  };
  const { passes, cut: used } = im2colPasses(context);
  const main = passes.find((one) => one.multiplications > 0) ?? passes.at(-1);
  const { cut: { policy }, chunks } = cut;
  const { rows, columns } = needs.product(chunks[0]!.images);
  const tiles = mainLoopWorkgroups(
    { rows, columns, batches: problem.groups, splits: 1 },
    policy,
  );
  return buffers.plan({
    kernel: main === undefined ? "im2col" : canonicalName(main.kernel),
    algorithm: "im2col",
    passes: elements === 0 ? [] : passes,
    multiplications: passes.reduce((sum, one) => sum + one.multiplications, 0),
    arithmetic: cutArithmetic(
      { ...used, splits: used.splits * chunks.length },
      needs.product(problem.batch).steps(policy),
    ),
    notes: [
      `explicit matrices${chunked ? `, in ${chunks.length} chunks of the batch` : ""}`,
      ...cutNotes(used, tiles, request),
    ],
  });
}

/** Order and cut: four images a vector, or single ones where the matrices of four exceed a limit. */
export function cutMatrices(request: PlanRequest) {
  const preferred = im2colGeometry(request);
  return fourElseOne(preferred.interleave, (interleave) => {
    const geometry: Im2colGeometry = { ...preferred, interleave };
    const needs = needsOf(request, geometry);
    const cut = cutIm2col(request, needs);
    return isRefusal(cut) ? cut : { geometry, needs, cut };
  });
}

/** Bytes and product of a chunk. */
function needsOf(request: PlanRequest, geometry: Im2colGeometry): Im2colNeeds {
  const { problem, variant } = request;
  const windows = (images: number) => windowMatrix(request, geometry, images, false);
  const { inChannels, outChannels, taps, spots } = geometry;
  const { storage, tile: value } = elementsOf(request);
  return {
    multiple: geometry.interleave,
    bytes: (images) => scalarBytes(storage) * matrixElements(windows(images)),
    fixedBytes: (policy) =>
      operandBytes(request) * packedElements(im2colFilter(request, geometry, policy)),
    product: (images) => ({
      batches: problem.groups,
      elements: resultElements(problem),
      streams: streamsOf(request),
      rows: outChannels,
      columns: images * spots,
      ...stepsOf(() => taps * inChannels, variant),
      a: { along: "place", vector: 4, value },
      b: matrixAccess(windows(images), value),
    }),
  };
}

/** What a plan of im2col is cut by. */
export interface Im2colNeeds {
  readonly multiple: number;
  /** Bytes of the matrix of a chunk. */
  bytes(images: number): number;
  /** Workspace beside it, partial results not counted. */
  fixedBytes(policy: TilePolicy): number;
  /** The product of a chunk. */
  product(images: number): Product;
}

/** Chooses chunks, policy and splits, partial results included in the workspace. Chunks have no splits. */
export function cutIm2col(request: PlanRequest, needs: Im2colNeeds): Planned<Im2colCut> {
  const { problem: { batch }, limits, maxWorkspaceBytes } = request;
  const plain = cutProduct({ ...request, splits: 1, balance: "none" }, needs.product(batch));
  if (isRefusal(plain)) return plain;
  const chunks = batchChunks({
    algorithm: "im2col",
    batch,
    multiple: needs.multiple,
    bytes: (images) => [wholeBytes(needs.bytes(images))],
    fixedBytes: needs.fixedBytes(plain.policy),
    maxBufferBytes: chunkBufferBytes(limits, [needs.bytes(needs.multiple)]),
    maxWorkspaceBytes,
  });
  if (isRefusal(chunks) || chunks.length > 1) {
    return isRefusal(chunks) ? chunks : { cut: plain, chunks };
  }
  const bytes = partialBytes(request);
  const { images } = chunks[0]!;
  const product = {
    ...needs.product(images),
    partialBytes: bytes,
    workspaceBytes: (policy: TilePolicy) =>
      needs.fixedBytes(policy) + wholeBytes(needs.bytes(images)),
  };
  const cut = cutProduct(request, product);
  if (isRefusal(cut)) return cut;
  const largest = Math.min(limits.maxBufferSize, limits.maxStorageBufferBindingSize);
  const room = (maxWorkspaceBytes ?? Infinity) - product.workspaceBytes(cut.policy);
  const fits = bytes * partialResultElements(cut, product) <= Math.min(largest, room);
  return { cut: cut.splits === 1 || fits ? cut : plain, chunks };
}
