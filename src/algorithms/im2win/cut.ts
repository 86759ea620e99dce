import { windowVector } from "../../kernels/loaders/im2win.ts";
import { packedElements } from "../../kernels/pack_strided.ts";
import { batchChunks, type Chunk, chunkBufferBytes, leastChunkFits } from "../chunks.ts";
import { type Cut, cutProduct, partialResultElements, type Product } from "../cut.ts";
import { streamsOf } from "../cut_passes.ts";
import type { PlanRequest } from "../request.ts";
import { resultElements } from "../tensors.ts";
import {
  windowBytes,
  windowColumns,
  windowDepth,
  windowFilter,
  type WindowGeometry,
  windowGeometry,
  windowShape,
} from "./geometry.ts";

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
export function cutWindows(request: PlanRequest): WindowCut {
  const geometry = windowGeometry(request);
  const four = fitted(request, geometry);
  const { cut, needs } = geometry.interleave === 1 || leastChunkFits(four.needs)
    ? four
    : fitted(request, { ...geometry, interleave: 1 });
  const interleave = needs.multiple === 1 ? 1 : 4;
  return { geometry: { ...geometry, interleave }, cut, chunks: batchChunks(needs) };
}

/** The cut of the whole batch, where that fits, else one that takes chunks, and what these need. */
function fitted(request: PlanRequest, geometry: WindowGeometry) {
  const { problem, limits, maxWorkspaceBytes } = request;
  const depth = windowDepth(geometry);
  const bytes = (images: number) => windowBytes(windowShape(request, geometry, images, false));
  const maxBufferBytes = chunkBufferBytes(limits, [bytes(geometry.interleave)]);
  const product: Product = {
    rows: geometry.rows,
    columns: windowColumns(geometry, problem.batch),
    batches: problem.groups,
    steps: (policy) => Math.ceil(depth / policy.depth),
    elements: resultElements(problem),
    streams: streamsOf(request),
    a: { along: "place", vector: 4 },
    b: windowAccess(request, geometry),
  };
  const fixedBytes = (cut: Cut) =>
    4 * packedElements(windowFilter(request, geometry, cut.policy)) +
    4 * partialResultElements(cut, product);
  const best = cutProduct(request, product);
  const whole = bytes(problem.batch) <= maxBufferBytes &&
    fixedBytes(best) + bytes(problem.batch) <= (maxWorkspaceBytes ?? Infinity);
  const cut = whole || best.splits === 1
    ? best
    : cutProduct({ ...request, splits: 1, balance: "none" }, product);
  const needs = {
    algorithm: "im2win",
    batch: problem.batch,
    multiple: geometry.interleave,
    bytes: (images: number) => [bytes(images)],
    fixedBytes: fixedBytes(cut),
    maxBufferBytes,
    maxWorkspaceBytes,
  };
  return { cut, needs };
}

function windowAccess(request: PlanRequest, geometry: WindowGeometry) {
  return geometry.interleave === 4
    ? { along: "depth", vector: 4, vectorAlong: "place" } as const
    : {
      along: "depth",
      vector: windowVector(windowShape(request, geometry, 1, false)),
    } as const;
}
