import type { TilePolicy } from "../../kernels/policy.ts";
import { batchChunks, type Chunk, chunkBufferBytes, type ChunkNeeds } from "../chunks.ts";
import { type Cut, cutProduct, partialResultElements } from "../cut.ts";
import type { Product } from "../product.ts";
import { partialBytes, wholeBytes } from "../tensors.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";

/** What a plan of im2col is cut by. */
export interface Im2colNeeds {
  readonly multiple: number;
  /** Bytes of each buffer that a chunk takes. */
  bytes(images: number): readonly number[];
  /** Workspace beside them, partial results not counted. */
  fixedBytes(policy: TilePolicy): number;
  /** The product of a chunk. */
  product(images: number): Product;
  /** Whether chunks add up to one result instead of each having its own part of it. */
  readonly summed: boolean;
  /** Whether the product's depth can be split, its results being the operation's. */
  readonly splittable: boolean;
}

/** A cut product and its chunks. */
export interface Im2colCut {
  readonly cut: Cut;
  readonly chunks: readonly Chunk[];
  /** Partial results of backward-filter, which chunks and splits share out; 1 for none. */
  readonly partials: number;
}

function unsplitCut(request: PlanRequest, needs: Im2colNeeds): Planned<Cut> {
  const unsplit = { ...request, splits: 1, balance: "none" } as const;
  return cutProduct(unsplit, needs.product(request.problem.batch));
}

function chunkNeeds(
  { problem, limits, maxWorkspaceBytes }: PlanRequest,
  needs: Im2colNeeds,
  cut: Cut,
  more: number,
): ChunkNeeds {
  return {
    algorithm: "im2col",
    batch: problem.batch,
    multiple: needs.multiple,
    bytes: (images) => needs.bytes(images).map(wholeBytes),
    fixedBytes: needs.fixedBytes(cut.policy) + more,
    maxBufferBytes: chunkBufferBytes(limits, needs.bytes(needs.multiple)),
    maxWorkspaceBytes,
  };
}

/** Chooses chunks, policy and splits, partial results included in the workspace. */
export function cutIm2col(request: PlanRequest, needs: Im2colNeeds): Planned<Im2colCut> {
  const { problem, limits, maxWorkspaceBytes } = request;
  const elements = needs.product(problem.batch).elements;
  const attempt = (cut: Cut, more: number) => batchChunks(chunkNeeds(request, needs, cut, more));
  const done = (cut: Cut, chunks: readonly Chunk[], partials: number): Im2colCut => ({
    cut,
    chunks,
    partials,
  });

  // One split: the fewest bytes. Chunks that are summed have partial results of their own.
  const plain = unsplitCut(request, needs);
  if (isRefusal(plain)) return plain;
  let chunks = attempt(plain, 0);
  if (isRefusal(chunks)) return chunks;
  for (let again = 0; needs.summed && chunks.length > 1 && again < 8; again++) {
    const more = attempt(plain, partialBytes(request) * chunks.length * elements);
    if (isRefusal(more)) return more;
    if (more.length === chunks.length) break;
    chunks = more;
  }
  const counted = needs.summed ? chunks.length : 1;
  const splittable = needs.splittable && (needs.summed || chunks.length === 1);
  if (splittable) {
    const bytes = partialBytes(request);
    const chunkBytes = needs.bytes(chunks[0]!.images).map(wholeBytes)
      .reduce((all, one) => all + one, 0);
    const product = {
      ...needs.product(chunks[0]!.images),
      partialBytes: bytes * counted,
      workspaceBytes: (policy: TilePolicy) => needs.fixedBytes(policy) + chunkBytes,
    };
    const cut = cutProduct(request, product);
    if (isRefusal(cut)) return cut;
    const partials = cut.splits * counted;
    const splitBytes = needs.summed
      ? bytes * partials * elements
      : bytes * partialResultElements(cut, product);
    const largest = Math.min(limits.maxBufferSize, limits.maxStorageBufferBindingSize);
    const room = (maxWorkspaceBytes ?? Infinity) - product.workspaceBytes(cut.policy);
    if (partials === 1 || splitBytes <= Math.min(largest, room)) {
      return done(cut, chunks, needs.summed ? partials : 1);
    }
  }
  return done(plain, chunks, counted);
}
