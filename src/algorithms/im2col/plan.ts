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
  gradientMatrix,
  im2colFilter,
  type Im2colGeometry,
  im2colGeometry,
  matrixAccess,
  windowMatrix,
} from "./geometry.ts";
import {
  backwardData,
  backwardFilter,
  forward,
  type Im2colContext,
  windowScalar,
} from "./passes.ts";

/** Plans im2col and a product: explicit matrices, in chunks of the batch where they exceed a limit. */
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
    gradient: (images) => gradientMatrix(request, geometry, images, chunked),
  };
  const { passes, cut: used } = problem.op === "fwd" ? forward(context) : {
    passes: problem.op === "bwd-data" ? backwardData(context) : backwardFilter(context),
    cut: cut.cut,
  };
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
    // Backward-data sums the products of each tap before col2im adds the taps.
    arithmetic: problem.op === "bwd-data"
      ? { chain: problem.outChannels / problem.groups }
      : cutArithmetic(
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

/** Bytes and product of a chunk, by operation. */
function needsOf(request: PlanRequest, geometry: Im2colGeometry): Im2colNeeds {
  const { problem } = request;
  const windows = (images: number) => windowMatrix(request, geometry, images, false);
  const gradient = (images: number) => gradientMatrix(request, geometry, images, false);
  const filterBytes: Im2colNeeds["fixedBytes"] = (policy) =>
    operandBytes(request) * packedElements(im2colFilter(request, geometry, policy));
  const { inChannels, outChannels, taps, spots } = geometry;
  const batches = problem.groups;
  const elements = resultElements(problem);
  const value = elementsOf(request).tile;
  const packed = { along: "place", vector: 4, value } as const;
  const { op } = problem;
  return {
    multiple: geometry.interleave,
    summed: op === "bwd-filter",
    splittable: op !== "bwd-data",
    bytes: (images) => [
      scalarBytes(windowScalar(request)) * matrixElements(windows(images)),
      ...(op === "fwd" ? [] : [operandBytes(request) * matrixElements(gradient(images))]),
    ],
    fixedBytes: (policy) => op === "bwd-filter" ? 0 : filterBytes(policy),
    product(images) {
      const columns = images * spots;
      const depths = { "fwd": taps * inChannels, "bwd-data": outChannels, "bwd-filter": columns };
      return {
        batches,
        elements,
        streams: op === "fwd" && streamsOf(request),
        rows: op === "bwd-data" ? taps * inChannels : outChannels,
        columns: op === "bwd-filter" ? taps * inChannels : columns,
        ...stepsOf(() => depths[op], request.variant),
        a: op === "bwd-filter" ? matrixAccess(gradient(images), value, true) : packed,
        b: op === "fwd"
          ? matrixAccess(windows(images), value)
          : op === "bwd-data"
          ? matrixAccess(gradient(images), value)
          : matrixAccess(windows(images), value, true),
      };
    },
  };
}
