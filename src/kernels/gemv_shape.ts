/** How a matrix times a few vectors is dealt to threads, and what of it each of them has. */
import type { SizeMode } from "./module.ts";

/** How a product's matrix is dealt to the threads of a workgroup. */
export interface GemvThreads {
  /** Threads that share a place, each of which takes blocks of the depth in turn; a power of two. */
  readonly lanes: number;
  /** Places, or vectors of four, that threads take side by side; a power of two. */
  readonly groups: number;
  /** Of those a thread has so many, `groups` apart. */
  readonly each: number;
  /** Blocks that a thread loads at once. */
  readonly ahead: number;
}

/** A matrix times a few vectors, which are rows of A or columns of B; the matrix is the other operand. */
export interface GemvShape {
  readonly side: "rows" | "columns";
  readonly vectors: number;
  /** Results of a vector: columns of B, or rows of A. */
  readonly places: number;
  /** Values that a result goes over, one at least. */
  readonly depth: number;
  /** Products along the depth of a value: four of int8 in words, which lie along the depth of both operands. */
  readonly word: 1 | 4;
  readonly batches: number;
  /** Workgroups that share the depth; of more than one the result has as many parts, one after the other. */
  readonly splits: number;
  /** Which side of the matrix is contiguous. */
  readonly matrix: "depth" | "place";
  /** Which side of the vectors is; of a single one both are. */
  readonly vector: "depth" | "place";
  readonly threads: GemvThreads;
}

/** By how many values operands are loaded: by fours where these are whole. */
export interface GemvLoads {
  /** Values of a result along the depth of a block. */
  readonly block: 1 | 4;
  /** Places of a load of the matrix. */
  readonly width: 1 | 4;
}

export function gemvLoads(
  { depth, places, matrix }: Pick<GemvShape, "depth" | "places" | "matrix">,
): GemvLoads {
  return {
    block: depth % 4 === 0 ? 4 : 1,
    width: matrix === "place" && places % 4 === 0 ? 4 : 1,
  };
}

/** Places, or vectors of four, of a workgroup. */
export function gemvTile({ groups, each }: GemvThreads): number {
  return groups * each;
}

/** Tiles that all places take. */
export function gemvTiles(shape: Omit<GemvShape, "splits">): number {
  return Math.ceil(shape.places / gemvLoads(shape).width / gemvTile(shape.threads));
}

/** Workgroups of the kernel. */
export function gemvWorkgroups(shape: GemvShape): number {
  return gemvTiles(shape) * shape.splits * shape.batches;
}

/** Blocks of the depth, and of a split at most. */
export function gemvBlocks(
  shape: Pick<GemvShape, "depth" | "places" | "matrix" | "splits">,
): { readonly blocks: number; readonly perSplit: number } {
  const blocks = shape.depth / gemvLoads(shape).block;
  return { blocks, perSplit: Math.ceil(blocks / shape.splits) };
}

/** Rounds of loads that a thread takes at most. */
export function gemvRounds(shape: GemvShape): number {
  const { lanes, ahead } = shape.threads;
  return Math.ceil(gemvBlocks(shape).perSplit / (lanes * ahead));
}

/** Whether every thread has whole rounds, as a text knows that has its sizes baked in. */
export function hasWholeRounds(shape: GemvShape, mode: SizeMode): boolean {
  const { blocks, perSplit } = gemvBlocks(shape);
  const { lanes, ahead } = shape.threads;
  return mode === "constant" && perSplit * shape.splits === blocks &&
    perSplit % (lanes * ahead) === 0;
}

/** Sums that a thread keeps in fours along the depth at most: more take more registers than they save waiting. */
const MOST_FOURS = 4;

/** Sums of a place and vector that a thread has along the depth, each of every so manieth value. */
export function gemvChains(shape: Omit<GemvShape, "splits">): 1 | 4 {
  const few = shape.threads.each * shape.vectors <= MOST_FOURS;
  return shape.matrix === "depth" && few ? gemvLoads(shape).block : 1;
}

/** Products that the kernel computes, those of places and blocks that are not there included. */
export function gemvMultiplications(shape: GemvShape): number {
  const { lanes, ahead } = shape.threads;
  const { block, width } = gemvLoads(shape);
  const results = gemvWorkgroups(shape) * gemvTile(shape.threads) * width * shape.vectors;
  return results * gemvRounds(shape) * lanes * ahead * block * shape.word;
}
