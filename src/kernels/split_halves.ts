import template from "../../shaders/split_halves.wgsl" with { type: "text" };
import { type HighRounding, SPLIT_ROUNDING } from "../problem/split_rounding.ts";
import {
  loopIterations,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
} from "./module.ts";
import { HIGH_ROUNDING, SPLIT_FACTOR } from "./split_marks.ts";
import { FINE_BASE } from "./split_maxima.ts";

const { top: TOP, smallBits, largeBits, wholeBits } = SPLIT_ROUNDING;

/** An operand in f32 and where its halves go: [batch][depth][places], both padded, or [batch][places][depth], of which the depth is. */
export interface SplitHalves {
  readonly batches: number;
  /** Rows of A or columns of B. */
  readonly places: number;
  readonly depth: number;
  /** From one to the next, in elements. */
  readonly strides: { readonly batch: number; readonly place: number; readonly depth: number };
  /** Words of the largest value that a place is scaled by: the first, from a batch to the next, and from a place. */
  readonly largest: { readonly first: number; readonly batch: number; readonly place: number };
  /**
   * Words, in the order of those of largest values, that say how fine values are (`SplitMaxima.firstFine`): of places that are finer
   * than whole numbers of `wholeBits` values that a high half holds have low ones too. None do where absent.
   */
  readonly firstFine?: number | undefined;
  /**
   * Words that count what is small of a place, then, so many words on, what is large: the first, and from a batch to the next. Large ones
   * are not counted where `kind` is absent, since products may not meet them.
   */
  readonly counts: { readonly first: number; readonly batch: number; readonly kind?: number };
  /** Whether the depth lies innermost. */
  readonly depthInner?: boolean;
  /** To be cleared; 0 for none. */
  readonly flags: number;
  /** Values along the depth of a matrix unit: so many high halves are followed by as many low ones. */
  readonly unitDepth: number;
  /** Padded: whole tiles, and whole matrices of high and low halves. */
  readonly padded: { readonly places: number; readonly depth: number };
  readonly rounding: HighRounding;
}

/** What a main loop loads of operands in halves. */
export const HALVES = { storage: "f16", tile: "f16" } as const;

/** Values along the depth of an operand in halves: whole matrices of high ones and of low ones. */
export function halvesDepth(depth: number, unitDepth: number): number {
  return 2 * Math.ceil(depth / unitDepth) * unitDepth;
}

/** Places and depth of a workgroup's part. */
const EXTENT = 64;

/** Depth of a batch in a workgroup's part: less than its extent where several batches that are scaled and counted alike share it. */
function depthEach({ padded, largest, counts, depthInner }: SplitHalves): number {
  const alike = !depthInner && largest.batch === 0 && counts.batch === 0;
  return alike
    ? Math.min(EXTENT, 2 ** Math.ceil(Math.log2(Math.max(8, padded.depth / 2))))
    : EXTENT;
}

/** Workgroups of a {@linkcode splitHalvesKernel}. */
export function splitHalvesWorkgroups(shape: SplitHalves): number {
  const { batches, padded } = shape;
  const together = EXTENT / depthEach(shape);
  return Math.ceil(batches / together) * Math.ceil(padded.places / EXTENT) *
    Math.ceil(padded.depth / 2 / EXTENT);
}

/** Bits of a power of two in f32. */
function powerBits(exponent: number): number {
  return (127 + exponent) * 2 ** 23;
}

/**
 * Multiplies an operand by its places' powers of two and splits it into high and low halves, for {@linkcode packedLoader}. Binds
 * `operand`, `marks`, which have the largest value of each place, `halves`, and `flags` where there are some to be cleared.
 */
export function splitHalvesKernel(
  shape: SplitHalves,
  mode: SizeMode,
  operand: TensorSplit,
  halves: TensorSplit,
): SizedKernel {
  const module = moduleBuilder(mode);
  const { places, depth, strides, padded, unitDepth, rounding, flags, depthInner = false } = shape;
  const along = strides.place < strides.depth ? "place" : "depth";
  const [near, far, run] = along === "place"
    ? [strides.place, strides.depth, places]
    : [strides.depth, strides.place, depth];
  const whole = near === 1 && [run, far, strides.batch].every((one) => one % 4 === 0);
  const vector = whole ? 4 : 1;
  const from = module.tensor("operand", "read", vector, operand);
  const marks = module.atomics("marks");
  const to = module.tensor("halves", "write", 4, halves, "u32", "u32");
  const clear = flags === 0 ? "" : module.atomics("flags").store("flag", "0u");
  const each = depthEach(shape);
  const name = `split_halves${unitDepth}_${along}_x${vector}${
    depthInner ? "_inner" : each < EXTENT ? `_deep${each}` : ""
  }${shape.counts.kind === undefined ? "_small" : ""}_${rounding}${
    shape.firstFine === undefined ? "" : "_fine"
  }${flags === 0 ? "" : "_clear"}${splitTrait(operand, halves)}`;
  const workgroups = splitHalvesWorkgroups(shape);
  const values = {
    name,
    unitDepth,
    along,
    vector,
    rounding: HIGH_ROUNDING[rounding],
    // Of the largest value as it is scaled.
    smallBelow: powerBits(TOP - smallBits),
    largeFrom: powerBits(TOP - largeBits),
    fine: shape.firstFine !== undefined,
    firstFine: shape.firstFine === undefined ? "" : module.size("first_fine", shape.firstFine),
    // Bits from the first of the largest value to the last of any.
    finer: FINE_BASE - 24 + wholeBits,
    workgroups: module.size("workgroups", workgroups),
    flags: flags === 0 ? "" : module.size("flags", flags),
    clear,
    placeTiles: module.size("place_tiles", Math.ceil(padded.places / EXTENT)),
    depthTiles: module.size("depth_tiles", Math.ceil(padded.depth / 2 / EXTENT)),
    batchStride: module.size("batch_stride", strides.batch),
    places: module.size("places", places),
    depth: module.size("depth", depth),
    paddedPlaces: module.size("padded_places", padded.places),
    paddedDepth: module.size("padded_depth", padded.depth),
    depthInner,
    each,
    batches: module.size("batches", shape.batches),
    placeStride: module.size("place_stride", strides.place),
    depthStride: module.size("depth_stride", strides.depth),
    firstLargest: module.size("first_largest", shape.largest.first),
    largestOfBatch: module.size("largest_of_batch", shape.largest.batch),
    largestOfPlace: module.size("largest_of_place", shape.largest.place),
    firstCount: module.size("first_count", shape.counts.first),
    countsOfBatch: module.size("counts_of_batch", shape.counts.batch),
    countKind: shape.counts.kind === undefined ? "" : module.size("count_kind", shape.counts.kind),
    load: from.load,
    largest: marks.load,
    add: marks.add,
    or: marks.or,
    store: to.store,
  };
  const declarations = `${module.declarations()}\n${SPLIT_FACTOR}`;
  const wgsl = render(template, { ...values, declarations });
  const bytes = (EXTENT * (EXTENT + 1) + 3 * EXTENT) * 4;
  const iterations = 16 + loopIterations(Math.ceil(flags / (256 * Math.max(1, workgroups))));
  const sized = sizedKernel(name, mode, wgsl, module, [256, 1, 1], bytes, iterations);
  const { kernel } = sized;
  return { ...sized, kernel: { ...kernel, features: [...kernel.features, "shader-f16"] } };
}
