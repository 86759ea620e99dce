import type { TilePolicy } from "../../kernels/policy.ts";
import { batchChunks, type Chunk, chunkBufferBytes } from "../chunks.ts";
import { type Cut, cutProduct, partialResultElements } from "../cut.ts";
import type { Product } from "../product.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { partialBytes, wholeBytes } from "../tensors.ts";

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

/** A cut product and its chunks. */
export interface Im2colCut {
  readonly cut: Cut;
  readonly chunks: readonly Chunk[];
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
