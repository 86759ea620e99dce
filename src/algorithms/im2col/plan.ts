import { elementsOf } from "../../elements/elements.ts";
import { scalarBytes } from "../../elements/scalar.ts";
import { matrixElements } from "../../kernels/im2col.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { mainLoopWorkgroups } from "../../kernels/main_loop.ts";
import type { SizeMode } from "../../kernels/module.ts";
import { packedElements } from "../../kernels/pack_strided.ts";
import { fourElseOne } from "../chunks.ts";
import { cutArithmetic } from "../cut.ts";
import { cutNotes } from "../cut_note.ts";
import { streamsOf } from "../cut_passes.ts";
import type { Plan } from "../plan.ts";
import { stepsOf } from "../product.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { operandBytes, problemBuffers, resultElements } from "../tensors.ts";
import { cutIm2col, type Im2colNeeds } from "./cut.ts";
import {
  im2colFilter,
  type Im2colGeometry,
  im2colGeometry,
  matrixAccess,
  windowMatrix,
} from "./geometry.ts";
import { type Im2colContext, im2colPasses } from "./passes.ts";

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
