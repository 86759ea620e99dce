import { windowVector } from "../../kernels/loaders/im2win.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import { packedElements } from "../../kernels/pack_strided.ts";
import { elementsOf } from "../../elements/elements.ts";
import { batchChunks, type Chunk, chunkBufferBytes, fourElseOne } from "../chunks.ts";
import { type Cut, cutProduct, partialResultElements } from "../cut.ts";
import { type Product, stepsOf } from "../product.ts";
import { streamsOf } from "../cut_passes.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { operandBytes, partialBytes, resultElements, wholeBytes } from "../tensors.ts";
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
